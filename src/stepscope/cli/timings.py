"""``--timings``: where a command's own time and memory went, stage by stage, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from stepscope.cli.streams import to_stderr
from stepscope.units import format_bytes, format_ns

_KEPT: list[_Stages] = []
"""The stages of the command that runs, where it was asked for them."""
_UNKNOWN = "not recorded"


class _Stages:
    """Time since the process began, booked to the stage that was current, and the peak of memory until each ended."""

    def __init__(self) -> None:
        self._stage = "start"
        self._cpu, self._wall = 0, time.perf_counter_ns()
        self._began = self._wall
        self._booked: dict[str, tuple[int, int, int | None]] = {}

    def begin(self, stage: str) -> None:
        cpu, wall = _cpu_ns(), time.perf_counter_ns()
        before = self._booked.get(self._stage, (0, 0, None))
        self._booked[self._stage] = (before[0] + cpu - self._cpu, before[1] + wall - self._wall, _peak_bytes())
        self._stage, self._cpu, self._wall = stage, cpu, wall

    def text(self) -> str:
        """A table; of the start, which was over before a clock ran, only the CPU time is known."""
        lines = [f"{'stage':12}{'CPU time':>14}{'wall time':>14}{'peak memory':>14}"]
        for stage, (cpu, wall, peak) in self._booked.items():
            shown = _UNKNOWN if stage == "start" else format_ns(wall)
            memory = _UNKNOWN if peak is None else format_bytes(peak)
            lines.append(f"{stage:12}{format_ns(cpu):>14}{shown:>14}{memory:>14}")
        lines.append(f"{'all':12}{format_ns(self._cpu):>14}{format_ns(self._wall - self._began):>14}")
        return "\n".join(lines) + "\n"


def now(stage: str) -> None:
    """What runs from here on is of this stage."""
    for stages in _KEPT:
        stages.begin(stage)


def watched(progress: Callable[[str, int, int], None]) -> Callable[[str, int, int], None]:
    """A progress that also sees when all of a file is read, and the trace is built of it."""
    if not _KEPT:
        return progress

    def seen(stage: str, done: int, total: int) -> None:
        progress(stage, done, total)
        if stage == "reading" and total and done >= total:
            now("building")

    return seen


def _begin(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    stages = _Stages()
    _KEPT[:] = [stages]

    def end() -> None:
        _KEPT.clear()
        stages.begin("end")
        to_stderr(stages.text())

    context.call_on_close(end)


timings_option = click.option(
    "--timings", is_flag=True, expose_value=False, callback=_begin, is_eager=True,
    help="Say on standard error where the command's own time went, stage by stage, and how much memory it took.",
)  # fmt: skip


def _cpu_ns() -> int:
    """Of this process, and of those that it started and that have ended."""
    try:
        import resource
    except ImportError:  # Windows has none.
        return time.process_time_ns()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int((used.ru_utime + used.ru_stime) * 1e9)


def _peak_bytes() -> int | None:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    used: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used * (1 if sys.platform == "darwin" else 1024)
