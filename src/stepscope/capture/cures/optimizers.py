"""PyTorch's optimizers in one kernel, or in few."""

from __future__ import annotations

import inspect
from typing import Any

from ..hooking import replace
from .cure import Applying, Cure, Keywords


def _with(argument: str, other: str) -> Any:
    def into(applying: Applying, torch: Any, recorder: Any) -> None:
        def changed(optimizer: Any, given: dict[str, Any]) -> dict[str, Any] | str:
            if given[argument]:
                return f"the optimizer is {argument} already"
            return {argument: True, **({other: None} if other in given else {})}

        for kind in vars(torch.optim).values():
            if isinstance(kind, type) and argument in inspect.signature(kind).parameters:
                applying.constructor(kind, changed, lambda *put: replace(recorder, *put))

    return into


FUSED_OPTIMIZER = Cure(
    name="fused-optimizer",
    title="the optimizer's step in one kernel",
    answers=("launch_bound", "too_little_work", "memory_bound_chain", "optimizer_loop", "python_overhead"),
    sets="fused=True for every optimizer that takes it",
    may_break="parameters of several kinds of device in one optimizer; results within rounding",
    undone="leave fused out",
    module="torch",
    into=_with("fused", "foreach"),
    patch=lambda _: (Keywords((("fused", "True"), ("foreach", None))),),
)

FOREACH_OPTIMIZER = Cure(
    name="foreach-optimizer",
    title="the optimizer's step over all parameters at once",
    answers=("launch_bound", "too_little_work", "optimizer_loop", "python_overhead"),
    sets="foreach=True for every optimizer that takes it",
    may_break="peak memory: it grows by about the size of the parameters",
    undone="leave foreach out",
    module="torch",
    into=_with("foreach", "fused"),
    patch=lambda _: (Keywords((("foreach", "True"), ("fused", None))),),
)
