"""What the tool that recorded a profile says of the run: what recording cost, and the machine it ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.record import record


@record
class RecordedRun:
    """Of the manifest of ``stepscope run``; None is what it does not say."""

    recorded_ns: int | None = None
    """The mean step while it was recorded."""
    unrecorded_ns: int | None = None
    """The mean step right before or after."""
    cores: int | None = None
    """Processor cores that the process may use."""
    machine_cores: int | None = None
    ranks_here: int | None = None
    """Processes of the job on this machine."""
    workers: int | None = None
    """Child processes (of ``multiprocessing``) that the process had while it was recorded."""
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
    return RecordedRun(
        ours=True,
        recorded_ns=_count(times.get("recorded")),
        unrecorded_ns=_count(times.get("unrecorded")),
        cores=_count(machine.get("cores")),
        machine_cores=_count(machine.get("machine_cores")),
        ranks_here=_count(machine.get("ranks_here")),
        workers=_count(machine.get("workers"), least=0),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object, least: int = 1) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= least else None
