"""A progress bar on stderr for what takes longer than a second, shown to people only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from stepscope.cli.streams import to_stderr

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SHOW_AFTER_S = 1.0

_COMPILE = "compiling (first run only, a few seconds) …"


class ProgressBar:
    """Shows calls of ``progress(stage, done, total)``; nothing where stderr is no terminal or work is quick.

    Used as a context manager around the work. A stage is a word for people ("reading"). ``compile`` happens
    in a first run only and is announced at once, since nothing can be counted while it lasts.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._enabled = sys.stderr.isatty()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` units of a stage are done; a total of 0 is not known."""
        if not self._enabled:
            if stage == "compile":  # A wait of seconds is worth a line in a log, too.
                to_stderr(f"stepscope: {_COMPILE}\n")
            return
        if self._bar is None:
            if stage != "compile" and time.monotonic() - self._began < _SHOW_AFTER_S:
                return
            self._bar = _start()
        task = self._tasks.get(stage)
        if task is None:
            words = _COMPILE if stage == "compile" else stage
            task = self._tasks[stage] = self._bar.add_task(words, total=total or None)
        self._bar.update(task, completed=done, total=total or None)


def _start() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.start()
    return bar
