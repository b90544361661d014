"""What the kernels, copies and memsets in GPU rows of StepStats are, from the texts about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stepscope.formats.tf1.recording import Tf1Recording
from stepscope.names import tf_graph as names
from stepscope.names.kernels import describe
from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder

_WAYS = {
    "hd": t.Direction.H2D,
    "dh": t.Direction.D2H,
    "dd": t.Direction.D2D,
    "pp": t.Direction.P2P,
    "hh": t.Direction.H2H,
}
_MEMORY = {kind.name.lower(): kind for kind in t.MemoryKind}


@record
class Activity:
    """What an entry of a GPU row is."""

    kind: t.Kind
    name: str
    node: str | None
    op: str | None
    label: names.KernelLabel
    copy: names.CopyLabel | None = None


def activity_of(row: names.DeviceRow, name: str, label: str, copied: bool) -> Activity:
    """What an entry is; ``copied`` says that the row of copies lists it too."""
    node, op = names.parse_annotation(name, label)
    kernel = names.parse_kernel(label)
    if copied or row.kind is names.RowKind.COPIES or names.is_copy(name, label, row.about):
        called = row.about or _copy_name(name, label) or op or name
        return Activity(t.Kind.COPY, called, node, op, kernel, names.parse_copy(name, label, row.about))
    called = kernel.name or op or name
    return Activity(_kind(row, name, label, called), called, node, op, kernel)


def _kind(row: names.DeviceRow, name: str, label: str, called: str) -> t.Kind:
    if names.is_memset(name, label, row.about):
        return t.Kind.MEMSET
    if row.kind is names.RowKind.STREAM and row.stream is None:
        return t.Kind.OTHER  # the row of what TensorFlow itself could not name
    return t.Kind.KERNEL if describe(called).collective is None else t.Kind.COLLECTIVE


def _copy_name(name: str, label: str) -> str | None:
    """The word for the copy: the label's first or the name's last."""
    words = (label.split(" ", 1)[0], name.rpartition(":")[2])
    return next((word for word in words if names.is_copy(word, "", None)), None)


@record
class DeviceSlices:
    """The slices of GPU rows; ``distinct`` answers, and which of them holds for each slice."""

    ops: t.Rows
    """Positions of the executions."""
    distinct: Sequence[Activity]
    which: t.Rows

    @classmethod
    def of(cls, builder: TraceBuilder, recording: Tf1Recording, ops: t.Rows, copied: t.Bools) -> DeviceSlices:
        """Judge the executions ``ops``, once per distinct text."""
        runs, labels, text = recording.executions, [*recording.labels, ""], builder.string
        rows = [names.parse_row(name) for name in recording.rows]
        keys = np.stack((runs.row[ops], runs.name[ops], runs.label[ops], copied[ops]))
        distinct, which = np.unique(keys, axis=1, return_inverse=True)
        slices = [
            activity_of(rows[row], text(name), labels[label], bool(copy))
            for row, name, label, copy in distinct.T.tolist()
        ]
        return cls(ops, slices, which.ravel())

    def busy(self) -> DeviceSlices:
        """Those that occupy the device."""
        chosen = np.array([a.kind in t.DEVICE_BUSY_KINDS for a in self.distinct], np.bool_)[self.which]
        return DeviceSlices(self.ops[chosen], self.distinct, self.which[chosen])

    @property
    def kind(self) -> t.U8:
        """Kind of each slice."""
        return np.array([a.kind for a in self.distinct], np.uint8)[self.which]

    def codes(self, builder: TraceBuilder, text: Callable[[Activity], str | None]) -> t.I32:
        """A text of each slice as a dictionary code, -1 for none."""
        return np.array([builder.text(text(a)) for a in self.distinct], np.int32)[self.which]

    def counts(self, number: Callable[[Activity], int | None]) -> t.I64:
        """A number of each slice, NULL for none."""
        numbers = map(number, self.distinct)
        return np.array([t.NULL if n is None else n for n in numbers], np.int64)[self.which]

    def table(self, builder: TraceBuilder, slice_ids: t.I32, placed: tuple[t.I32, t.I64], launch: t.I32) -> t.DeviceOps:
        """The device ops; ``placed`` holds device and stream."""
        copies = [a.copy or names.CopyLabel(None, "", "", "") for a in self.distinct]
        ways = [_WAYS.get(copy.way, t.Direction.UNKNOWN) for copy in copies]
        source, target = (
            [_MEMORY.get(end, t.MemoryKind.UNKNOWN) for end in ends]
            for ends in ([c.source for c in copies], [c.target for c in copies])
        )
        occupancy = [np.nan if a.label.occupancy_pct is None else a.label.occupancy_pct for a in self.distinct]
        no_text, no_number = np.full(self.ops.size, -1, np.int32), np.full(self.ops.size, t.NULL, np.int64)
        return t.DeviceOps(
            slice=slice_ids,
            device=placed[0],
            stream=placed[1],
            launch=launch,
            bytes=self.counts(lambda a: a.copy.bytes if a.copy else None),
            direction=np.array(ways, np.uint8)[self.which],
            source_memory=np.array(source, np.uint8)[self.which],
            target_memory=np.array(target, np.uint8)[self.which],
            grid=self.codes(builder, lambda a: a.label.grid),
            block=self.codes(builder, lambda a: a.label.block),
            registers=self.counts(lambda a: a.label.registers),
            shared_memory=self.counts(lambda a: a.label.shared_memory),
            occupancy_pct=np.array(occupancy, np.float64)[self.which],
            graph=no_number,
            collective=no_text,
            process_group=no_text,
            dtype=no_text,
            message_elements=no_number,
            group_size=no_number,
        )
