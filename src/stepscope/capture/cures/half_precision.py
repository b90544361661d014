"""PyTorch models in float16, with losses scaled so that small gradients are kept."""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any

from ..hooking import replace
from ..steps import OPTIMIZER
from ..torch_hooks import optimizer_key
from .cure import Applying, ByHand, Cure
from .models import before_first_call, cast
from .places import Place, nearest_place


class _Scaled:
    """What ``torch.amp.GradScaler`` is told in place of the job: its one optimizer and what it does to gradients."""

    def __init__(self, applying: Applying, torch: Any, recorder: Any) -> None:
        self._applying, self._torch, self._recorder = applying, torch, recorder
        self._scaler: Any = None
        """None until a model computes in float16."""
        self._optimizer: Any = None
        self._place: Place | None = None
        self._is_scaled = self._is_unscaled = self._steps = self._has_stepped = self._gives_up = False

    def casts(self, device: str, place: Place | None) -> None:
        self._scaler = self._scaler or self._torch.amp.GradScaler(device)
        self._place = place
        if self._optimizer is None:  # It only infers.
            self._applying.applied(place)

    def made(self, optimizer: Any) -> None:
        """An optimizer was made: its step becomes the scaler's."""
        if self._optimizer is not None:
            self._give_up("the job has several optimizers: which loss is whose cannot be seen from outside")
            return
        self._optimizer, own = optimizer, type(optimizer).step

        def step(self_: Any, closure: Any = None) -> Any:
            if closure is not None:
                self._give_up("the optimizer computes the loss itself, where it cannot be scaled")
                return own(self_, closure)
            if self._steps or not self._is_scaled:  # The scaler's call, or a step without a scaled loss.
                self._has_stepped = True
                return own(self_)
            self._steps, self._has_stepped = True, False
            try:
                made = self._scaler.step(self_)
            finally:
                self._steps = False
            self._scaler.update()
            if not self._has_stepped:  # Gradients overflowed: a step of the job all the same.
                self._recorder.call(OPTIMIZER, ("torch", optimizer_key(self_)))
            self._is_scaled = self._is_unscaled = False
            self._applying.applied(self._place)
            return made

        optimizer.step = MethodType(step, optimizer)  # Schedulers of learning rates ask for a method.

    def _give_up(self, why: str) -> None:
        self._gives_up = True
        self._applying.refused(why)

    def scaled(self, loss: Any) -> Any:
        """What to call ``backward`` on."""
        if self._scaler is None or self._optimizer is None or self._gives_up or loss.numel() != 1:
            return loss
        self._is_scaled = True
        return self._scaler.scale(loss)

    def unscale(self) -> None:
        """The job is about to look at its gradients."""
        if self._is_scaled and not self._is_unscaled:
            self._is_unscaled = True
            self._scaler.unscale_(self._optimizer)


def _into(applying: Applying, torch: Any, recorder: Any) -> None:
    if not hasattr(getattr(torch, "amp", None), "GradScaler"):
        applying.refused("this PyTorch has no torch.amp.GradScaler: 2.3 and later have")
        return
    scaled = _Scaled(applying, torch, recorder)

    def casts(model: Any, caller: Any) -> None:
        device, why = cast(torch, model, torch.float16)
        if why is not None:
            applying.refused(why)
        else:
            scaled.casts(device, nearest_place(caller))

    before_first_call(torch, recorder, casts)
    makes, backs = torch.optim.Optimizer.__init__, torch.Tensor.backward

    @functools.wraps(makes)
    def making(self: Any, *arguments: Any, **named: Any) -> None:
        makes(self, *arguments, **named)
        scaled.made(self)

    @functools.wraps(backs)
    def backward(loss: Any, *arguments: Any, **named: Any) -> Any:
        return backs(scaled.scaled(loss), *arguments, **named)

    replace(recorder, torch.optim.Optimizer, "__init__", making)
    replace(recorder, torch.Tensor, "backward", backward)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        clips = getattr(torch.nn.utils, name)

        @functools.wraps(clips)
        def clipping(*arguments: Any, clips: Any = clips, **named: Any) -> Any:
            scaled.unscale()
            return clips(*arguments, **named)

        replace(recorder, torch.nn.utils, name, clipping)


FP16 = Cure(
    name="fp16",
    title="the model's forward in float16, losses scaled",
    answers=("tensor_cores_unused", "low_precision_share", "amp_partial", "memory_bound_chain"),
    sets="torch.autocast(dtype=torch.float16) and torch.amp.GradScaler",
    may_break="results have three digits; steps whose gradients overflow are left out; code that reads .grad, but for "
    "clip_grad_norm_ and clip_grad_value_, sees scaled ones",
    undone="leave autocast and the scaler out",
    module="torch",
    into=_into,
    changes_numbers=True,
    device_only=True,
    patch=lambda _: (
        ByHand(
            'scaler = torch.amp.GradScaler("cuda")  # Once, before the loop.\n'
            "\n"
            'with torch.autocast("cuda", dtype=torch.float16):  # In the loop.\n'
            "    loss = ...\n"
            "scaler.scale(loss).backward()\n"
            "scaler.unscale_(optimizer)  # Only where gradients are clipped.\n"
            "scaler.step(optimizer)\n"
            "scaler.update()"
        ),
    ),
)
