"""What stepscope's own writer of Kineto JSON adds, so that reading its files gives the trace back.

One root key names the tracks (slices that overlap were drawn on several threads of the file) and the run; arguments
say what Kineto has no word for. Files of others have none of this. Everything here is input: what does not hold
together is left aside, and the file is read like any other.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np

from stepscope.formats.chrome.conversion import Conversion, Lane
from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.restated import OwnRun
from stepscope.trace import tables as t
from stepscope.trace.check import LONGEST_NS
from stepscope.trace.codes import mapped
from stepscope.trace.trace import Trace

ROOT = "stepscope"
KIND = "stepscope kind"
"""Kind of the slice, where category and name do not give it."""
LAUNCH = "stepscope launch"
"""Number that a call shares with the ops it launched where no correlation id tells, and how they were matched."""
MARKER = "stepscope marker"
"""What says that the slice is a step, beside its name."""
MEMORY = "stepscope memory"
"""Memory at both ends of a copy whose name does not tell."""
CALL_LINE = "stepscope call line"
BEGUN = "stepscope begun"
"""Line at which a Python frame was called, and whether it ran when recording began."""
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


class OwnLooks(msgspec.Struct, omit_defaults=True):
    """Looks at threads, in columns; times are the file's."""

    time_ns: list[Annotated[int, msgspec.Meta(ge=-LONGEST_NS, le=LONGEST_NS)]]
    track: list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]]
    place: list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]]
    places: list[tuple[str, Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)], str]]
    """File, line and function."""
    core_wait_ns: list[Annotated[int, msgspec.Meta(ge=t.NULL, le=LONGEST_NS)]] | None = None
    """Absent where no look has it."""


class OwnRoot(OwnRun, omit_defaults=True, kw_only=True):
    """The root key."""

    tracks: list[OwnTrack]
    device_kinds: dict[str, str] = msgspec.field(default_factory=dict)
    looks: OwnLooks | None = None


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
    looks = root.looks
    if looks is not None:
        sound = sound and len(looks.time_ns) == len(looks.track) == len(looks.place)
        sound = sound and (looks.core_wait_ns is None or len(looks.core_wait_ns) == len(looks.place))
        sound = sound and max(looks.track, default=-1) < len(root.tracks)
        sound = sound and max(looks.place, default=-1) < len(looks.places)
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


def looks_root(trace: Trace) -> OwnLooks | None:
    """The looks of a trace as the root key holds them; None for none."""
    looks, strings = trace.looks, trace.strings
    if not len(looks):
        return None
    numbers: dict[tuple[int, int, int], int] = {}
    rows = zip(looks.file.tolist(), looks.line.tolist(), looks.function.tolist(), strict=True)
    place = [numbers.setdefault(row, len(numbers)) for row in rows]
    places = [(strings[file], line, strings[function]) for file, line, function in numbers]
    waited = looks.core_wait_ns.tolist() if (looks.core_wait_ns != t.NULL).any() else None
    return OwnLooks(looks.time_ns.tolist(), looks.track.tolist(), place, places, waited)


def stated_looks(conversion: Conversion, looks: OwnLooks) -> t.Looks:
    """The looks again."""
    text, place = conversion.builder.text, np.array(looks.place, np.int64)
    files = np.array([text(file) for file, _, _ in looks.places], np.int32)
    lines = np.array([line for _, line, _ in looks.places], np.int64)
    functions = np.array([text(function) for _, _, function in looks.places], np.int32)
    times = np.array(looks.time_ns, np.int64) - conversion.origin
    waited = [t.NULL] * place.size if looks.core_wait_ns is None else looks.core_wait_ns
    columns = files[place], lines[place], functions[place], np.array(waited, np.int64)
    return t.Looks(times, np.array(looks.track, np.int32), *columns)


def restate_kinds(events: RawEvents, kinds: t.U8) -> None:
    """Set the kinds that events state themselves."""
    stated = events.argument(KIND)
    known = mapped(stated.texts, events.raws, lambda raw: KINDS.get(raw.strip('"'), len(KINDS)), np.uint8)
    sound = (stated.texts >= 0) & (known < len(KINDS))
    kinds[stated.rows[sound]] = known[sound]


def stated_launches(conversion: Conversion, ops: t.Rows, call: t.I64, basis: t.U8) -> None:
    """Set the calls of the ops that share a launch number with one."""
    if not conversion.columns.rows(LAUNCH).size:
        return
    numbers = conversion.columns.at(LAUNCH, conversion.rows)
    busy = np.isin(conversion.kinds[conversion.rows], t.DEVICE_BUSY_KINDS)
    calls = np.flatnonzero((numbers != t.NULL) & ~busy)
    known, first = np.unique(numbers[calls], return_index=True)
    if known.size == 0:
        return
    wanted = conversion.columns.at(LAUNCH, ops)
    at = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    is_known = known[at] == wanted
    call[is_known] = conversion.rows[calls[first[at[is_known]]]]
    basis[is_known] = wanted[is_known] % BASES


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
