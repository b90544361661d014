"""Steps of JAX."""

from __future__ import annotations

import functools
import types
from collections import Counter
from collections.abc import Callable, Hashable
from importlib import import_module
from typing import Any

from .hooking import replace
from .own_profilers import make_way
from .recorder import Recorder
from .steps import CALL
from .stretches import record_where_nothing_repeats

GRADIENTS = ("grad", "value_and_grad", "vmap")
"""A job that compiles nothing still asks for gradients in each step; a mapped function hides the one in it."""
MOST_OF_ONE_CODE = 16
"""Functions of the same code beyond which they are taken for one that is compiled anew in each step."""


class Announced:
    """A function made by JAX that tells the recorder of its calls, and is otherwise the function."""

    def __init__(self, made: Any, called: Callable[[Hashable], None], key: Hashable = None) -> None:
        functools.update_wrapper(self, made)  # What it takes over may be of another one of these, which it wraps.
        self._made = made
        self._called = called
        self.key = ("jax", id(self)) if key is None else key

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.told()
        return self._made(*arguments, **named)

    def told(self) -> None:
        """It is about to be called."""
        self._called(self.key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


class Watched(Announced):
    """A compiled one."""

    def lower(self, *arguments: Any, **named: Any) -> Any:
        """The compiled function's own."""
        return self._made.lower(*arguments, **named)

    def trace(self, *arguments: Any, **named: Any) -> Any:
        """The compiled function's own."""
        return self._made.trace(*arguments, **named)


def code_key(function: Any) -> Hashable:
    """What stays the same of a function that is made anew in each step: its code."""
    while isinstance(function, functools.partial):
        function = function.func
    return "jax", id(getattr(function, "__code__", function))


def into_jax(recorder: Recorder, jax: Any) -> None:
    """Calls of functions that the job compiles with ``jax.jit`` or ``jax.pmap``, and of gradients that it has computed
    op by op; outside of tracing."""
    core: Any = import_module("jax._src.core")
    clean: Callable[[], bool] = getattr(core, "trace_state_clean", lambda: True)
    made: Counter[Hashable] = Counter()

    def called(key: Any) -> None:
        if clean():
            recorder.call(CALL, key)

    def watched(jitted: Any, function: Any) -> Watched:
        key = code_key(function)
        made[key] += 1
        # Several may be made of one code, which do not run in the same step: each is its own, but for too many.
        return Watched(jitted, called, key if made[key] > MOST_OF_ONE_CODE else None)

    def watching(compiles: Any) -> Any:
        @functools.wraps(compiles)
        def compiled(*arguments: Any, **named: Any) -> Any:
            result = compiles(*arguments, **named)
            if hasattr(result, "lower"):
                return watched(result, arguments[0] if arguments else named.get("fun"))
            return lambda function: watched(result(function), function)  # Options alone: a decorator.

        return compiled

    def telling(transforms: Any) -> Any:
        @functools.wraps(transforms)
        def transformed(*arguments: Any, **named: Any) -> Any:
            result = transforms(*arguments, **named)
            return Announced(result, called, code_key(arguments[0] if arguments else named.get("fun")))

        return transformed

    for name in ("jit", "pmap"):
        if hasattr(jax, name):
            replace(recorder, jax, name, watching(getattr(jax, name)))
    for name in GRADIENTS:
        replace(recorder, jax, name, telling(getattr(jax, name)))
    make_way(recorder, "jax")
    record_where_nothing_repeats(recorder, "jax")
