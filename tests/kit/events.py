"""Neutral events: what every part of the kit makes and the writers write.

An event is what happened, before any profile format spells it. Categories are the ones PyTorch's current
profiler uses; times are integer nanoseconds from the kit's own zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Category = Literal[
    "cpu_op",
    "user_annotation",
    "python_function",
    "cuda_runtime",
    "cuda_driver",
    "overhead",
    "memory",
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_sync",
    "gpu_user_annotation",
]

DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories that occupy a device."""

CALLS = ("cuda_runtime", "cuda_driver")
"""Categories of calls into the device runtime."""

US = 1_000
MS = 1_000_000


@dataclass(frozen=True, slots=True, order=True)
class Thread:
    """A host thread, by name. ``overhead`` is the profiler's own lane."""

    name: str = "main"


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """A stream of a device."""

    device: int = 0
    stream: int = 7


Track = Thread | Stream


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """One end of an arrow between two events: the id both ends share, and which end this is."""

    id: int
    starts: bool
    kind: Literal["fwdbwd"] = "fwdbwd"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened on a track.

    ``dur_ns`` is None for an instant. ``correlation`` joins a call to the device work it launched. ``args``
    hold what else the profiler records, under the names it uses; of a copy they hold ``direction`` (``HtoD``
    …), ``memory`` (the kind of the host side: ``Pageable`` or ``Pinned``) and ``bytes``, which a writer
    spells its own way.
    """

    cat: Category
    name: str
    track: Track
    start_ns: int
    dur_ns: int | None
    correlation: int | None = None
    flows: tuple[FlowEnd, ...] = ()
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        """Where the event ends; an instant ends where it starts."""
        return self.start_ns + (self.dur_ns or 0)


def in_time_order(events: Iterable[Event]) -> list[Event]:
    """Events by start, the longer first, otherwise in the order given."""
    return sorted(events, key=lambda event: (event.start_ns, -(event.dur_ns or 0)))


def enclosing(events: Iterable[Event], wanted: tuple[str, ...]) -> dict[int, int]:
    """The position of the innermost event of the wanted categories around each event of the same track.

    Positions count through ``events`` as given; events without such a parent are absent. Of ranges that
    cross, the one opened last that is still open counts.
    """
    listed = list(events)
    order = sorted(range(len(listed)), key=lambda i: (listed[i].start_ns, -(listed[i].dur_ns or 0)))
    open_on: dict[Track, list[int]] = {}
    parents: dict[int, int] = {}
    for position in order:
        event = listed[position]
        stack = open_on.setdefault(event.track, [])
        stack[:] = [other for other in stack if listed[other].end_ns > event.start_ns]
        if stack:
            parents[position] = stack[-1]
        if event.cat in wanted and event.dur_ns:
            stack.append(position)
    return parents
