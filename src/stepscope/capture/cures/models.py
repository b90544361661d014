"""The models of a PyTorch job: what is done to each once, before it is called the first time."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..hooking import replace
from .places import Place, nearest_place

MOST_CALLS = 64
"""Calls of outermost modules after which no further model is looked for."""


class Made:
    """Where the modules of a job were made."""

    def __init__(self, torch: Any, recorder: Any) -> None:
        self._module = torch.nn.Module
        self._places: weakref.WeakKeyDictionary[Any, Place | None] = weakref.WeakKeyDictionary()
        makes = self._module.__init__

        @functools.wraps(makes)
        def making(self_: Any, *arguments: Any, **named: Any) -> None:
            makes(self_, *arguments, **named)
            self._places[self_] = nearest_place(sys._getframe(1), passes=self._is_constructor)

        replace(recorder, self._module, "__init__", making)

    def place(self, model: Any) -> Place | None:
        """Of the statement that makes it."""
        return self._places.get(model)

    def _is_constructor(self, frame: FrameType) -> bool:
        code = frame.f_code
        if code.co_name != "__init__" or not code.co_varnames:
            return False
        return isinstance(frame.f_locals.get(code.co_varnames[0]), self._module)


def before_first_call(torch: Any, recorder: Any, does: Callable[[Any, FrameType], None]) -> None:
    """Call ``does`` with each model, and the frame that calls it, before it computes the first time.

    A model is a module with parameters that no other module calls. Calls are looked at until one model is called the
    second time: then all that a step calls have been seen.
    """
    module = torch.nn.Module
    calls = module.__call__
    seen: weakref.WeakSet[Any] = weakref.WeakSet()
    left = [MOST_CALLS]

    def calling(self: Any, *arguments: Any, **named: Any) -> Any:
        # While a model computes the modules within it are called as ever: neither they nor a compiler see us.
        module.__call__ = calls
        if self in seen:
            return calls(self, *arguments, **named)
        left[0] -= 1
        if next(self.parameters(), None) is not None:
            seen.add(self)
            does(self, sys._getframe(1))
        try:
            return self(*arguments, **named)
        finally:
            if left[0] > 0 and module.__call__ is calls:
                module.__call__ = calling

    replace(recorder, module, "__call__", calling)


def cast(torch: Any, model: Any, dtype: Any) -> tuple[str, str | None]:
    """Have a model computed in another precision by autocast. Its kind of device, and why that would change nothing;
    None where it computes in float32."""
    device = next(model.parameters()).device.type
    if torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled():
        return device, "the model is called within autocast already"
    kinds = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    if kinds and torch.float32 not in kinds:
        return device, f"the model's parameters are {min(map(str, kinds))} already"
    model.forward = torch.autocast(device, dtype=dtype)(model.forward)
    return device, None
