"""Ranges around Keras's callbacks, by class and line, while a recorder records: its profiler sees no Python code there.

Each callback's own methods are replaced in the callback itself, and put back when the window is over; one that runs
while nothing records is as fast as ever.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .annotation import annotate

METHODS = tuple(
    f"on_{when}_{edge}"
    for when in ("train_batch", "test_batch", "predict_batch", "batch", "epoch", "train", "test", "predict")
    for edge in ("begin", "end")
)


class NamedCallbacks:
    """Knows which callbacks carry ranges, and takes the ranges away."""

    def __init__(self, base: type) -> None:
        self._base = base
        self._put_back: list[Callable[[], None]] = []

    def follow(self, callbacks: Any, *, recording: bool) -> None:
        """Put ranges around the methods of a list's callbacks, or take them away. Never raises."""
        if recording == bool(self._put_back):
            return
        if not recording:
            self.clear()
            return
        for callback in list(getattr(callbacks, "callbacks", ())):
            for method in METHODS:
                with suppress(Exception):  # A callback of another make is left as it is.
                    self._name(callback, method)
        self._put_back.append(lambda: None)  # So that a list without any is not looked at again.

    def clear(self) -> None:
        """Take all ranges away."""
        put_back, self._put_back = self._put_back, []
        for each in put_back:
            with suppress(Exception):
                each()

    def _name(self, callback: Any, method: str) -> None:
        own = vars(callback).get(method)
        function = own or getattr(type(callback), method)
        if own is None and function is getattr(self._base, method, None):
            return  # It does nothing.
        code = _code(function)
        if code is None:
            return
        called = getattr(callback, method)
        line = f"{_shown(code.co_filename)}:{code.co_firstlineno}"
        name = f"keras.callback: {type(callback).__qualname__}.{method} ({line})"

        @functools.wraps(called)
        def within(*arguments: Any, **named: Any) -> Any:
            with annotate(name):
                return called(*arguments, **named)

        def put_back() -> None:
            if vars(callback).get(method) is not within:
                return
            if own is None:
                delattr(callback, method)
            else:
                setattr(callback, method, own)

        setattr(callback, method, within)
        self._put_back.append(put_back)


def _code(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(function, "__code__", None)


def _shown(path: str) -> str:
    """A file as people call it: below the working directory by its path from there."""
    with suppress(OSError, ValueError):
        below = os.path.relpath(path)
        if not below.startswith(os.pardir):
            return below
    return path
