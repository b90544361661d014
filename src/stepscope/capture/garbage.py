"""Python's collections of garbage while a window is recorded, as ranges of the profile: frameworks' profilers, as they
are set, leave out those that Python begins by itself."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

NAME = "gc"
"""What the ranges are called, as diagnosis knows them (``names/hosts.py``)."""
OLDEST = 2 if sys.version_info < (3, 14) else 1
"""The generation whose collection takes milliseconds: all there is, since Python 3.14 a part of it at a time. Younger
ones take microseconds, and there are many."""


class Collections:
    """Marks collections, each by a range that ``make`` begins by entering it and ends by leaving it."""

    def __init__(self) -> None:
        self._make: Callable[[], Any] | None = None
        self._range: Any = None

    def start(self, make: Callable[[], Any] | None) -> None:
        """Mark them from here on; None where the framework has nothing to mark with."""
        if make is not None and self._make is None:
            self._make = make
            gc.callbacks.append(self._collects)

    def stop(self) -> None:
        """Mark no more."""
        self._make = None
        with suppress(ValueError):
            gc.callbacks.remove(self._collects)

    def _collects(self, phase: str, about: dict[str, int]) -> None:
        # Called wherever Python allocates, one collection at a time; what it raises would be printed.
        with suppress(Exception):
            if phase == "start" and self._make is not None and about["generation"] >= OLDEST:
                opened = self._make()
                opened.__enter__()
                self._range = opened
            elif phase == "stop" and self._range is not None:
                opened, self._range = self._range, None
                opened.__exit__(None, None, None)
