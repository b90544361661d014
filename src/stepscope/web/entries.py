"""What can be opened in the pages: profiles, each read when it is first looked at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.comparison.side import Side
from stepscope.record import record
from stepscope.web.assemble import ShownRun

if TYPE_CHECKING:
    import polars as pl

Arguments = Callable[[Sequence[int]], list[dict[str, Any]]]


@record
class Opened:
    """A profile's pages, what its file says of slices beyond its tables, and what it is compared by."""

    run: ShownRun
    arguments: Arguments
    side: Callable[[], Side] | None = None
    query: Callable[[str], pl.DataFrame] | None = None
    """The rows of a SELECT over its tables, within the bounds of ``stepscope.sql``."""


class ReadingProgress:
    """How far a profile is read, for the page that waits for it; ``also`` is told too."""

    def __init__(self) -> None:
        self.also: Callable[[str, int, int], None] | None = None
        self._now: tuple[str, int, int] | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` units of a stage are done; a total of 0 is not known."""
        self._now = stage, done, total
        if self.also is not None:
            self.also(stage, done, total)

    def state(self) -> dict[str, Any]:
        """What the page shows."""
        return dict(zip(("stage", "done", "total"), self._now or ("", 0, 0), strict=True))


@dataclass(slots=True)
class Entry:
    """A profile that is read when it is first looked at; reading that failed is tried again."""

    title: str
    read: Callable[[], Opened]
    reading: ReadingProgress = field(default_factory=ReadingProgress)
    _opened: Opened | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self) -> Opened:
        """The profile. Raises StepscopeError where it cannot be read."""
        with self._lock:
            if self._opened is None:
                self._opened = self.read()
            return self._opened
