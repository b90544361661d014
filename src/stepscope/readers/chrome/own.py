"""What stepscope's own writer of Kineto JSON adds, so that reading its files gives the trace back.

One root key names the tracks (slices that overlap were drawn on several threads of the file) and the run; arguments
say what Kineto has no word for. Files of others have none of this. Everything here is input: what does not hold
together is left aside, and the file is read like any other.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from stepscope.readers.chrome.conversion import Conversion, Lane
from stepscope.readers.events import RawEvents
from stepscope.readers.restated import OwnRun
from stepscope.trace import tables as t
from stepscope.trace.codes import mapped

ROOT = "stepscope"
KIND = "stepscope kind"
"""Kind of the slice, where category and name do not give it."""
LAUNCH = "stepscope launch"
"""Number that a call shares with the ops it launched where no correlation id tells, and how they were matched."""
MARKER = "stepscope marker"
"""What says that the slice is a step, beside its name."""
MEMORY = "stepscope memory"
"""Memory at both ends of a copy whose name does not tell."""
NODE_TIMES = (
    ("scheduled_ns", "stepscope scheduled ns"),
    ("op_start_ns", "stepscope op start ns"),
    ("op_end_ns", "stepscope op end ns"),
)
"""Times of TensorFlow's nodes, from the trace's origin: columns and arguments."""

BASES = len(t.LaunchBasis)
KINDS = {kind.name.lower(): kind for kind in t.Kind}
MARKERS = {source.name.lower(): source for source in t.MarkerSource}


class OwnTrack(msgspec.Struct, omit_defaults=True):
    """A track, and the threads of the file that hold its slices."""

    kind: str
    lanes: list[tuple[int, int]]
    process: str | None = None
    thread: str | None = None
    label: str | None = None
    device: int | None = None
    stream: int | None = None


class OwnRoot(OwnRun, omit_defaults=True, kw_only=True):
    """The root key."""

    tracks: list[OwnTrack]
    device_kinds: dict[str, str] = msgspec.field(default_factory=dict)


def root_of(header: dict[str, Any]) -> OwnRoot | None:
    """The root key, None where the file has none that makes sense."""
    try:
        root = msgspec.convert(header[ROOT], OwnRoot)
    except (KeyError, msgspec.ValidationError):
        return None
    kinds = {kind.name.lower() for kind in t.TrackKind}
    sound = all(
        track.kind in kinds and -1 < (track.device or 0) < 1 << 31 and -1 << 63 < (track.stream or 0) < 1 << 63
        for track in root.tracks
    )
    return root if sound else None


def restored_tracks(conversion: Conversion, root: OwnRoot) -> t.I32:
    """Make the tracks that the root key names; returns lane -> track. Any other thread gets a track of its own."""
    builder = conversion.builder
    of_lane: dict[Lane, int] = {}
    for given in root.tracks:
        kind = t.TrackKind[given.kind.upper()]
        number = builder.track(
            kind, given.process, given.thread, label=given.label, device=given.device, stream=given.stream
        )
        of_lane |= dict.fromkeys(given.lanes, number)
    for lane in conversion.events.lanes:
        if lane not in of_lane:
            pid, tid = (None if part is None else str(part) for part in lane)
            of_lane[lane] = builder.track(t.TrackKind.OTHER, pid, tid)
    return np.array([of_lane[lane] for lane in conversion.events.lanes], np.int32)


def restate_kinds(events: RawEvents, kinds: t.U8) -> None:
    """Set the kinds that events state themselves."""
    stated = events.argument(KIND)
    known = mapped(stated.texts, events.raws, lambda raw: KINDS.get(raw.strip('"'), len(KINDS)), np.uint8)
    sound = (stated.texts >= 0) & (known < len(KINDS))
    kinds[stated.rows[sound]] = known[sound]


def stated_launches(conversion: Conversion, ops: t.Rows, call: t.I64, basis: t.U8) -> None:
    """Set the calls of the ops that share a launch number with one."""
    numbers = conversion.columns.at(LAUNCH, conversion.rows)
    busy = np.isin(conversion.kinds[conversion.rows], t.DEVICE_BUSY_KINDS)
    calls = np.flatnonzero((numbers != t.NULL) & ~busy)
    known, first = np.unique(numbers[calls], return_index=True)
    if known.size == 0:
        return
    wanted = conversion.columns.at(LAUNCH, ops)
    at = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    found = known[at] == wanted
    call[found] = conversion.rows[calls[first[at[found]]]]
    basis[found] = wanted[found] % BASES


def stated_marks(conversion: Conversion) -> t.StepMarks:
    """Steps by what events say beside their names."""
    columns, strings = conversion.columns, conversion.builder.string
    steps = conversion.rows_with(MARKER)
    label = columns.text(MARKER, steps)
    steps, label = steps[label >= 0], label[label >= 0]
    source = np.array([MARKERS.get(strings(code), -1) for code in label.tolist()], np.int64)
    steps, source = steps[source >= 0], source[source >= 0]
    return t.StepMarks(conversion.slice_id[steps], source.astype(np.uint8), columns.at("step_num", steps))


def stated_nodes(conversion: Conversion) -> t.Nodes:
    """The nodes of a TensorFlow graph."""
    columns = conversion.columns
    rows = conversion.rows_with("node")
    rows = rows[columns.text("node", rows) >= 0]
    return t.Nodes(
        slice=conversion.slice_id[rows],
        node=columns.text("node", rows),
        op=columns.text("op", rows),
        inputs=columns.text("inputs", rows),
        placement=columns.text("placement", rows),
        **{column: columns.at(argument, rows) for column, argument in NODE_TIMES},
    )
