"""From the tables of an export to a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stepscope.formats.chrome.scan.damage import TEXTS
from stepscope.formats.nsys import about, schema
from stepscope.formats.nsys.device import add_device_work, add_waits
from stepscope.formats.nsys.draft import Draft
from stepscope.formats.nsys.export import Export, Losses
from stepscope.formats.nsys.host import ApiCalls, Marks, add_calls, add_nvtx, add_ranges, correlations
from stepscope.formats.nsys.sqlite import Database
from stepscope.formats.nsys.strings import StringIds
from stepscope.inputs.inflate import Fault
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Completeness, Loss, Trace


def to_trace(database: Database, fault: Fault | None, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Make a trace of the process that did most on devices."""
    losses = Losses()
    _note_damage(database, fault, losses)
    builder = TraceBuilder()
    strings = StringIds(database.read(schema.STRINGS, ["id"], ["value"]), builder)
    export = Export(database, losses, progress)
    session = about.Session(database, strings)
    draft = Draft(builder, strings, session.threads())

    calls = add_calls(export, draft)
    add_ranges(export, draft)
    marks = add_nvtx(export, draft)
    ops, launches = add_device_work(export, draft, calls)
    waits = add_waits(export, draft, calls)
    memory = _memory(export, draft, calls)

    about.note_others(export, losses, about.process_names(database))
    about.note_unread(database, losses)
    about.note_messages(database, losses)
    return _Assembly(export, session, draft).trace((ops, launches, waits, memory), marks)


def _note_damage(database: Database, fault: Fault | None, losses: Losses) -> None:
    if fault is not None:
        losses.add(Loss(fault.code, 1, TEXTS[fault.code], fault.offset, lost_bytes=fault.lost_bytes, damaged=True))
    elif database.missing_bytes:
        size, missing = len(database.data), database.missing_bytes
        losses.add(Loss("truncated", 1, "the file is cut off", size, lost_bytes=missing, damaged=True))


class _Assembly:
    """Puts the parts together, with all times from the first slice on."""

    def __init__(self, export: Export, session: about.Session, draft: Draft) -> None:
        self.export, self.session, self.draft = export, session, draft

    def trace(self, parts: tuple[t.DeviceOps, t.Launches, t.DeviceWaits, t.Memory], marks: Marks) -> Trace:
        builder = self.draft.builder
        ops, launches, waits, memory = parts
        names = ("track", "start_ns", "dur_ns", "name", "kind", "category", "correlation", "offset")
        columns = dict(zip(names, self.draft.columns(), strict=True))
        start, size = columns["start_ns"], len(columns["track"])
        origin = int(start.min()) if size else 0
        columns["dur_ns"] -= start
        start -= origin
        builder.slices(**columns)
        del columns, start  # The builder drops each once it is sorted.
        for table in (ops, launches, waits, marks.host_ops):
            builder.table(table)
        builder.table(replace(memory, time_ns=memory.time_ns - origin))
        builder.table(replace(marks.instants, time_ns=marks.instants.time_ns - origin))
        naming = marks.naming + len(self.export.raw(schema.EVENTS))
        counts = {
            "slices": size, "instants": len(marks.instants), "memory": len(memory), "metadata": naming,
        }  # fmt: skip
        framework = "PyTorch" if marks.has_ops else None
        info = self.session.info(self.export, origin, np.unique(ops.device).tolist(), framework)
        rows = {table: count for table, count in counts.items() if count}
        return builder.build(info, Completeness(self.export.count, rows, self.export.losses.all()))


def _memory(export: Export, draft: Draft, calls: ApiCalls) -> t.Memory:
    """Allocations and frees of device memory (``cudaMalloc``), on the thread whose call made them where it is known."""
    events = export.events(schema.MEMORY)
    size = len(events)
    call = calls.by_id(correlations(events))
    track = draft.host_tracks(np.full(size, NULL, np.int64), "memory")
    track[call >= 0] = calls.track[call[call >= 0]]
    kind, amount = events.number("memKind"), events.number("bytes")
    frees = events.number("memoryOperationType") == schema.FREES
    absent = np.full(size, NULL, np.int64)
    return t.Memory(
        time_ns=events.start,
        track=track,
        # PyTorch's numbering of kinds of devices, as the column wants it.
        device_type=np.where(kind == NULL, NULL, np.where(np.isin(kind, schema.HOST_MEMORY), 0, 1)),
        device=events.number("deviceId"),
        address=events.number("address"),
        bytes=np.where(frees & (amount != NULL), -amount, amount),
        allocated=absent,
        reserved=absent,
        allocator=np.full(size, -1, np.int32),
        **t.Memory.untold(size),
    )
