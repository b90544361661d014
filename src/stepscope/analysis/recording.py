"""What the tool that recorded a profile says of the run: what recording cost, and the machine it ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.analysis.loader_workers import LoaderWorkers, loader_workers_of
from stepscope.record import record


@record
class ThreadBeside:
    """A thread of the program beside the one that makes the steps."""

    name: str
    share: float
    """Of the time in which it ran on a core."""
    function: str | None = None
    """The outermost function of the program that it was in, with its file and first line."""
    file: str | None = None
    line: int | None = None


@record
class RecordedRun:
    """Of the manifest of ``stepscope run``; None is what it does not say."""

    recorded_ns: int | None = None
    """The mean step while it was recorded."""
    unrecorded_ns: int | None = None
    """The mean step right before or after."""
    each_recorded_ns: tuple[int, ...] = ()
    """Times of the steps of that mean."""
    each_unrecorded_ns: tuple[int, ...] = ()
    cores: int | None = None
    """Processor cores that the process may use."""
    machine_cores: int | None = None
    ranks_here: int | None = None
    """Processes of the job on this machine."""
    workers: int | None = None
    """Child processes (of ``multiprocessing``) that the process had while it was recorded."""
    double_share: float | None = None
    """Of the parameters that an optimizer changes, the share in double precision."""
    beside: tuple[ThreadBeside, ...] = ()
    """Who took most first."""
    loader_workers: LoaderWorkers | None = None
    """What those of PyTorch's loaders did meanwhile."""
    ours: bool = False
    """Whether there is one: whose job ``stepscope run`` recorded calls no profiler."""

    @property
    def cores_of_rank(self) -> int | None:
        """Cores for this process and its workers: ranks share those that they may use, unless each has its own."""
        if self.cores is None:
            return None
        ranks = self.ranks_here or 1
        own = self.machine_cores is not None and self.cores * ranks <= self.machine_cores
        return self.cores if own else max(self.cores // ranks, 1)


NOTHING_KNOWN = RecordedRun()


def run_of(manifest: Mapping[str, Any] | None) -> RecordedRun:
    """What a manifest says; nothing of one that is none of ours."""
    if manifest is None:
        return NOTHING_KNOWN
    times, machine = (_mapping(manifest.get(name)) for name in ("step_ns", "machine"))
    each = _mapping(times.get("each"))
    return RecordedRun(
        ours=True,
        recorded_ns=_count(times.get("recorded")),
        unrecorded_ns=_count(times.get("unrecorded")),
        each_recorded_ns=_counts(each.get("recorded")),
        each_unrecorded_ns=_counts(each.get("unrecorded")),
        cores=_count(machine.get("cores")),
        machine_cores=_count(machine.get("machine_cores")),
        ranks_here=_count(machine.get("ranks_here")),
        workers=_count(machine.get("workers"), least=0),
        double_share=_double_share(_mapping(manifest.get("parameters"))),
        beside=_beside(machine.get("threads")),
        loader_workers=loader_workers_of(manifest),
    )


def _double_share(counts: Mapping[str, Any]) -> float | None:
    known = {name: count for name, each in counts.items() if (count := _count(each)) is not None}
    return sum(known.get(name, 0) for name in ("float64", "complex128")) / sum(known.values()) if known else None


def _beside(told: object) -> tuple[ThreadBeside, ...]:
    threads = []
    for one in map(_mapping, told if isinstance(told, list) else ()):
        ran, passed = _count(one.get("ran_ns")), _count(one.get("passed_ns"))
        name, function, file = (_text(one.get(key)) for key in ("name", "function", "file"))
        if ran is not None and passed is not None and name is not None:
            threads.append(ThreadBeside(name, min(ran / passed, 1.0), function, file, _count(one.get("line"))))
    return tuple(sorted(threads, key=lambda one: -one.share))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object, least: int = 1) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= least else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _counts(value: object) -> tuple[int, ...]:
    """A list of counts; nothing of one that holds anything else."""
    counts = tuple(_count(one) for one in value) if isinstance(value, list) else ()
    return tuple(one for one in counts if one is not None) if None not in counts else ()
