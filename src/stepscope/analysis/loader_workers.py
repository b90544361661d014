"""What the worker processes of a loader did while the process that trains was recorded, as ``stepscope run`` saw it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.analysis.frame import Frame
from stepscope.record import record


@record
class WorkerPlace:
    """A line at which workers were."""

    frame: Frame
    share: float
    """Of the time in which they were busy."""


@record
class LoaderWorkers:
    """Of all of them together; times in ns."""

    processes: int
    passed_ns: int
    """In which they ran and waited."""
    looked_ns: int
    """The part of it between looks: the first comes late where no core is free."""
    waiting_ns: int
    """Of that they had nothing to do."""
    ran_ns: int
    """They ran on a core."""
    core_wait_ns: int | None
    """They were ready to run and had none; None where the system does not tell."""
    places: tuple[WorkerPlace, ...]
    """Where they were longest comes first."""

    @property
    def busy_share(self) -> float:
        """Of the time they had a batch to make."""
        return (self.looked_ns - self.waiting_ns) / self.looked_ns

    @property
    def _asleep(self) -> float | None:
        """Of the time they waited for something else than a core: files, a network."""
        if self.core_wait_ns is None:
            return None
        # All that ran, also before the first look: more can not be told for sure.
        asleep = self.looked_ns - self.waiting_ns - self.ran_ns - self.core_wait_ns
        return max(asleep, 0) / self.looked_ns

    @property
    def _working(self) -> float:
        return self.ran_ns / self.passed_ns + (self._asleep or 0.0)

    @property
    def asleep_share(self) -> float:
        """Of the time that a batch takes to make on a core of its own they waited for something else than a core:
        files, a network; 0 where that is not known."""
        return (self._asleep or 0.0) / self._working if self._working else 0.0

    def batch_ns(self, workers: int, step_ns: int) -> float | None:
        """What the batch of a step takes to make, each worker on a core of its own, where so many make one per step;
        None where that is not known."""
        return None if self._asleep is None else self._working * workers * step_ns


def loader_workers_of(manifest: Mapping[str, Any]) -> LoaderWorkers | None:
    """What a manifest says of them; None where that is nothing, or does not hold together."""
    told = manifest.get("worker_lines")
    if not isinstance(told, Mapping):
        return None
    names = ("processes", "passed_ns", "looked_ns", "waiting_ns", "ran_ns")
    processes, passed, looked, waiting, ran = counts = [_count(told.get(name)) for name in names]
    if min(counts) < 0 or not processes or not passed or not 0 <= waiting <= looked or not looked:
        return None
    places = told.get("places")
    listed = [one for one in map(_place, places if isinstance(places, list) else ()) if one is not None]
    busy = max(looked - waiting, 1)
    core_wait = _count(told.get("core_wait_ns"))
    return LoaderWorkers(
        processes,
        passed,
        looked,
        waiting,
        ran,
        None if core_wait < 0 else core_wait,
        tuple(WorkerPlace(frame, min(ns / busy, 1.0)) for frame, ns in listed),
    )


def _place(value: object) -> tuple[Frame, int] | None:
    if not isinstance(value, list) or len(value) != 4:
        return None
    file, line, function, ns = value
    sound = isinstance(file, str) and isinstance(function, str) and _count(line) > 0 and _count(ns) >= 0
    return (Frame(file, line, function), ns) if sound else None


def _count(value: object) -> int:
    """A count; -1 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else -1
