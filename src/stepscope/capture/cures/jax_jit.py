"""Functions of a JAX job that dispatch their ops one by one, compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from types import CodeType, FrameType, FunctionType
from typing import Any

from ..hooking import replace
from ..jax_hooks import Announced, Watched
from ..own_code import is_own
from ..steps import CALL
from .cure import Applying, Cure, Decorator
from .places import Place

LOOKED_AT = 2
"""The step whose calls are looked at, counted from the job's first: what is done once is done by then."""
MOST_FUNCTIONS = 16
_GENERATES = 0x20 | 0x80 | 0x200
"""Flags of a code object: generator, coroutine, asynchronous generator."""


class _Calls:
    """Of one step: the outermost functions of the user that get arrays and give arrays, and what is called in them."""

    def __init__(self, jax: Any) -> None:
        self._jax = jax
        self.functions: dict[CodeType, FunctionType] = {}
        self.within: dict[CodeType, list[Hashable]] = {}
        """What told the recorder of steps while each ran."""
        self._open: FrameType | None = None

    def begin(self, frame: FrameType | None) -> None:
        """Looking begins in there: a step may begin within one of these functions, which is met as it returns."""
        while frame is not None:
            function = self._candidate(frame)
            if function is not None:
                self._open, self.functions, self.within = frame, {frame.f_code: function}, {frame.f_code: []}
            frame = frame.f_back

    def look(self, frame: FrameType, event: str, result: Any) -> None:
        """For ``sys.setprofile``."""
        if self._open is None:
            if event == "call" and (function := self._candidate(frame)) is not None:
                self._open = frame
                self.functions.setdefault(frame.f_code, function)
                self.within.setdefault(frame.f_code, [])
        elif event == "call" and frame.f_code is Announced.told.__code__:
            self.within[self._open.f_code].append(frame.f_locals["self"].key)
        elif event == "return" and frame is self._open:
            self._open = None
            if not self._are_arrays(result):
                self.functions.pop(frame.f_code, None)

    def _candidate(self, frame: FrameType) -> FunctionType | None:
        code = frame.f_code
        if code.co_flags & _GENERATES or not code.co_argcount or not is_own(code.co_filename):
            return None
        function = frame.f_globals.get(code.co_name)
        if not isinstance(function, FunctionType) or function.__code__ is not code:
            return None
        given = [frame.f_locals[name] for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        named = code.co_flags & 0x0C  # *arguments or **named
        return function if not named and self._are_arrays(given) else None

    def _are_arrays(self, value: Any) -> bool:
        leaves = self._jax.tree_util.tree_leaves(value)
        are = [isinstance(leaf, (self._jax.Array, float)) or type(leaf).__module__ == "numpy" for leaf in leaves]
        return bool(are) and all(are)


def _into(applying: Applying, jax: Any, recorder: Any) -> None:
    applying.refused("no function of the job takes and gives arrays in every step, besides those that are compiled")
    calls = _Calls(jax)
    seen: list[int] = []

    def ended(step: int) -> None:
        seen.append(step)
        if len(seen) == LOOKED_AT and sys.getprofile() is None:
            calls.begin(sys._getframe())
            sys.setprofile(calls.look)
        elif len(seen) == LOOKED_AT + 1 and sys.getprofile() == calls.look:
            sys.setprofile(None)
            for code, function in list(calls.functions.items())[:MOST_FUNCTIONS]:
                if _compile(jax, recorder, function, calls.within[code]):
                    applying.applied(_place(code))

    applying.on_edge.append(ended)


def _compile(jax: Any, recorder: Any, function: FunctionType, told: list[Hashable]) -> bool:
    """Put a compiled function in the place of one, wherever the user's modules have it."""
    compiled = jax.jit(function)
    compiled = getattr(compiled, "_made", compiled)
    ours = _telling(compiled, told, recorder.call)
    places = 0
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and is_own(file):
            for name in [name for name, value in list(vars(module).items()) if value is function]:
                replace(recorder, module, name, ours)
                places += 1
    return places > 0


def _telling(compiled: Any, told: list[Hashable], call: Callable[[int, Any], None]) -> Watched:
    """The compiled function; it tells of the calls that are compiled into it, so that steps are those of before."""

    def called(_: Hashable) -> None:
        for key in told:
            call(CALL, key)

    return Watched(compiled, called)


def _place(code: CodeType) -> Place:
    return {"file": code.co_filename, "line": code.co_firstlineno, "function": code.co_name}


JIT = Cure(
    name="jax-jit",
    title="functions of arrays compiled whole",
    answers=("running_eagerly", "launch_bound", "too_little_work", "python_overhead", "hot_python"),
    sets="jax.jit for every function of yours that takes and gives arrays alone in each step",
    may_break="functions that print, draw random numbers of NumPy or keep something outside: that happens once; code "
    "that depends on values; each new shape compiles anew",
    undone="leave @jax.jit out",
    module="jax",
    framework="JAX",
    into=_into,
    on_cpu=True,
    patch=lambda _: (Decorator("@jax.jit", imported="jax"),),
)
