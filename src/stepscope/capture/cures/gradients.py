"""How PyTorch's ranks exchange gradients, and what becomes of old ones."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from ..hooking import replace
from .cure import Applying, ByHand, Cure, Keywords
from .places import calling_place


def _with(argument: str, value: Any = None) -> Any:
    def into(applying: Applying, torch: Any, recorder: Any) -> None:
        if not torch.distributed.is_available():
            applying.refused("this PyTorch has no distributed training")
            return
        parallel = import_module("torch.nn.parallel").DistributedDataParallel
        wanted = applying.value if value is None else value

        def changed(model: Any, given: dict[str, Any]) -> dict[str, Any] | str:
            return f"{argument} is {wanted} already" if given[argument] == wanted else {argument: wanted}

        applying.constructor(parallel, changed, lambda *put: replace(recorder, *put))

    return into


_EXCHANGE = ("exposed_collective", "collective_copies")

BUCKET_SIZE = Cure(
    name="bucket-size",
    title="larger buckets of gradients",
    answers=_EXCHANGE,
    sets="DistributedDataParallel(bucket_cap_mb=N)",
    may_break="nothing; sums in another order, within rounding",
    undone="leave bucket_cap_mb out (25)",
    module="torch",
    into=_with("bucket_cap_mb"),
    values=lambda _: (10, 50, 100),
    patch=lambda _: (Keywords((("bucket_cap_mb", "{value}"),)),),
)

STATIC_GRAPH = Cure(
    name="static-graph",
    title="ranks that take the graph to be the same in every step",
    answers=_EXCHANGE,
    sets="DistributedDataParallel(static_graph=True)",
    may_break="models that use other parameters from step to step",
    undone="leave static_graph out",
    module="torch",
    into=_with("static_graph", True),
    patch=lambda _: (Keywords((("static_graph", "True"),)),),
)


class _Passes:
    """Forward passes of one model from one optimizer step to the next: all but the last need exchange nothing, once it
    is known how many there are."""

    def __init__(self) -> None:
        self.made = 0
        self.before: list[int] = []
        """Of the last two optimizer steps."""

    def begins(self) -> bool:
        """A pass begins. Whether its gradients are to be exchanged."""
        self.made += 1
        known = len(set(self.before)) == 1 and len(self.before) == 2
        return not known or self.made >= self.before[0]

    def ended(self) -> None:
        """The optimizer made its step."""
        self.before = [*self.before, self.made][-2:]
        self.made = 0


def _into_no_sync(applying: Applying, torch: Any, recorder: Any) -> None:
    if not torch.distributed.is_available():
        applying.refused("this PyTorch has no distributed training")
        return
    applying.refused(
        "each optimizer step follows one pass of DistributedDataParallel, or exchanges are left out already"
    )
    parallel = import_module("torch.nn.parallel").DistributedDataParallel
    forwards, models = parallel.forward, WeakKeyDictionary()  # type: ignore[var-annotated]

    @functools.wraps(forwards)
    def forward(model: Any, *arguments: Any, **named: Any) -> Any:
        if not (torch.is_grad_enabled() and model.training and model.require_backward_grad_sync):
            return forwards(model, *arguments, **named)
        if models.setdefault(model, _Passes()).begins():
            return forwards(model, *arguments, **named)
        applying.applied()
        with model.no_sync():  # What the backward pass does is settled by the forward pass.
            return forwards(model, *arguments, **named)

    def stepped(*_: Any) -> None:
        for passes in models.values():
            passes.ended()

    replace(recorder, parallel, "forward", forward)
    import_module("torch.optim.optimizer").register_optimizer_step_post_hook(stepped)
    recorder.on_done.append(models.clear)  # The hook stays, with nothing to do: none may go while PyTorch walks them.


NO_SYNC = Cure(
    name="no-sync",
    title="gradients exchanged once for each optimizer step",
    answers=_EXCHANGE,
    sets="model.no_sync() for all passes but the last before an optimizer step",
    may_break="an optimizer step after fewer passes than before: ranks part; sums in another order, within rounding",
    undone="leave no_sync out",
    module="torch",
    into=_into_no_sync,
    patch=lambda _: (
        ByHand(
            "# Around the forward and backward pass of all batches but the last before optimizer.step():\n"
            "with model.no_sync():\n"
            "    loss = ...\n"
            "    loss.backward()"
        ),
    ),
)


def _into_set_to_none(applying: Applying, torch: Any, recorder: Any) -> None:
    zeroes = torch.optim.Optimizer.zero_grad
    applying.refused("the optimizers let go of their gradients already")

    @functools.wraps(zeroes)
    def zero_grad(self: Any, set_to_none: bool = True) -> None:
        if not set_to_none:
            applying.applied(calling_place(sys._getframe(1)))
        zeroes(self, set_to_none=True)

    replace(recorder, torch.optim.Optimizer, "zero_grad", zero_grad)


SET_TO_NONE = Cure(
    name="set-to-none",
    title="gradients let go of in place of set to zero",
    answers=("launch_bound", "too_little_work", "memory_bound_chain"),
    sets="optimizer.zero_grad(set_to_none=True)",
    may_break="code that reads .grad between zero_grad and backward",
    undone="put set_to_none=False back",
    module="torch",
    into=_into_set_to_none,
    patch=lambda _: (Keywords((("set_to_none", None),)),),
)
