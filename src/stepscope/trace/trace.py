"""``Trace``: one process's profile in columns, whatever wrote it.

Immutable; only ``TraceBuilder`` makes one, ``select`` a smaller one of it, and ``saved`` opens one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.limits import NAMES_LOST_SHARE

if TYPE_CHECKING:
    import polars as pl

CUT = (
    "truncated", "truncated_tail", "gzip_truncated", "gzip_corrupt", "zip_truncated", "zip_corrupt", "xplane_damaged",
    "step_stats_damaged",
)  # fmt: skip
"""Codes of damage that takes away the end of a file, or of a message that holds what was recorded of a device."""


@record
class Device:
    """A device as the profile describes it."""

    id: int
    name: str | None = None
    memory_bytes: int | None = None
    multiprocessors: int | None = None
    compute_capability: tuple[int, int] | None = None
    kind: str = "gpu"
    clock_khz: int | None = None
    memory_bandwidth: int | None = None
    """Bytes per second, by the memory's clock and bus."""


@record
class Loss:
    """One way in which the trace is less than the file, or the file less than the run.

    ``lost_events`` and ``lost_bytes`` count input that could not become rows; ``damaged`` says that the file itself
    was not well formed. All three are falsy for facts that were merely not recorded.
    """

    code: str
    count: int
    text: str
    first_offset: int | None = None
    lost_events: int = 0
    lost_bytes: int = 0
    damaged: bool = False


@record
class Completeness:
    """Where every event of the file went."""

    events: int
    """Events in the file."""
    rows: Mapping[str, int]
    """Events per table they became a row of (``metadata`` for those that name processes and threads)."""
    losses: tuple[Loss, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every byte and event of a well-formed file became a row."""
        return not any(loss.damaged or loss.lost_events or loss.lost_bytes for loss in self.losses)

    @property
    def nameless(self) -> bool:
        """Whether so many events lost their names with the end of a cut file that no cause can be told."""
        lost = sum(loss.count for loss in self.losses if loss.code == "names_lost")
        return lost > NAMES_LOST_SHARE * self.events

    @property
    def cut(self) -> bool:
        """Whether what cannot be found in the file may have stood in the part that was lost."""
        return any(loss.damaged and loss.code in CUT for loss in self.losses)

    @property
    def device_damaged(self) -> bool:
        """Whether part of the device activity itself is known to be lost."""
        return any(loss.code == "device_table" for loss in self.losses)


@record
class SourceFile:
    """The file a trace was read from, where everything else about its events still stands."""

    path: str
    bytes: int
    mtime_ns: int
    digest: str | None = None
    """SHA-256 of it, in a saved form: by this it is known, wherever it was copied to."""


@record
class InferredSteps:
    """The steps inferred from a profile that this one was cut out of, where its own would be others; one value per
    step, in order of time, in ns from the trace's origin."""

    source: str
    """What they were inferred from, in words."""
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    number: tuple[int | None, ...]


ANY_EVENTS = "Chrome trace JSON"
"""``Info.format`` of events that no known producer wrote."""


@record
class Info:
    """What is known about the run as a whole; absent facts are None."""

    format: str
    framework: str | None = None
    framework_oldest: tuple[int, int] | None = None
    """Major and minor version: the framework's is this or a later one."""
    framework_newest: tuple[int, int] | None = None
    """The framework's is this or an earlier one."""
    origin_epoch_ns: int | None = None
    """Unix time of the trace's origin, in ns."""
    resolution_ns: int = 1
    """The grain of the recorded times."""
    devices: tuple[Device, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    process_groups: tuple[Mapping[str, Any], ...] = ()
    host: str | None = None
    options: Mapping[str, bool] = field(default_factory=dict)
    """What the profiler was asked to record (stacks, shapes, memory, flops, modules), where it says so."""
    header: Mapping[str, Any] = field(default_factory=dict)
    """Everything else the file says about itself."""
    source: SourceFile | None = None
    """The profile as it was recorded; a saved form keeps it."""
    steps: InferredSteps | None = None
    """Of a part of a profile without step markers; a saved form keeps them."""

    def device(self, number: int) -> Device | None:
        """A device as the profile describes it; None where it does not."""
        return self._by_number.get(number)

    @cached_property
    def _by_number(self) -> dict[int, Device]:
        return {device.id: device for device in reversed(self.devices)}

    @property
    def on_cpu(self) -> bool:
        """Whether the process could use no device, as what recorded it says (``capture.torch_backend``)."""
        told = self.header.get("stepscope")
        return isinstance(told, Mapping) and told.get("accelerators") == 0 and not self.devices


@record
class Trace:
    """One process's profile: declared tables (``trace.tables``), what is known of the run, and what was lost."""

    info: Info
    completeness: Completeness
    strings: tuple[str, ...]
    tracks: t.Tracks
    slices: t.Slices
    host_ops: t.HostOps
    frames: t.Frames
    looks: t.Looks
    device_ops: t.DeviceOps
    device_waits: t.DeviceWaits
    launches: t.Launches
    flows: t.Flows
    memory: t.Memory
    counters: t.Counters
    instants: t.Instants
    step_marks: t.StepMarks
    xla_ops: t.XlaOps
    programs: t.Programs
    nodes: t.Nodes
    tensors: t.Tensors
    iterators: t.Iterators
    metrics: t.Metrics
    placements: t.Placements
    hlo: tuple[bytes, ...] = ()
    """Per row of ``programs`` the program as XLA describes it (``xla.HloProto``), empty where the profile holds none;
    no values at all where it holds none of any."""

    def table(self, name: str) -> pl.DataFrame:
        """One table as a polars frame (see ``docs/tables.md`` for the columns).

        Raises KeyError for a name that is not a table.
        """
        if name not in t.TABLES:
            raise KeyError(f"no table {name!r}; there are {', '.join(t.TABLES)}")
        table: t.Table = getattr(self, name)
        return table.frame(self.strings)

    def name_of(self, slice_id: int) -> str:
        """The recorded name of a slice."""
        return self.strings[int(self.slices.name[slice_id])]

    def end_ns(self, slice_id: int) -> int:
        """The end of a slice, in ns from the trace's origin."""
        return int(self.slices.start_ns[slice_id] + self.slices.dur_ns[slice_id])
