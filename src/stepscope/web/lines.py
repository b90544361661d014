"""What the trace viewer draws, as lines: those of the profile and those the analysis adds (steps, phases, idle time).

A line is a list of slices of one track with texts and kinds of their own. Everything here arranges what analyses
found; nothing is computed that the report does not also say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.annotation_ranges import Ranges
from stepscope.analysis.annotations import ranges_of
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.layers import Paths, layer_paths
from stepscope.analysis.phases import PHASES, Phase, device_phases, phase_code
from stepscope.record import record
from stepscope.report.labels import CATEGORIES as LABELS
from stepscope.trace.forest import levels
from stepscope.trace.tables import I32, I64, U8, Kind, TrackKind
from stepscope.trace.trace import Trace
from stepscope.whatif.critical import critical_path

NO_CATEGORY = 255
IDLE, CAUSE, WINDOW, PHASE, SCOPE, INSTANT, ANNOTATED, UNRECORDED, CRITICAL = range(len(Kind), len(Kind) + 9)
"""Kinds of what the viewer draws beside a profile's own slices."""
KINDS = (
    *(kind.name.lower() for kind in Kind),
    *("idle", "cause", "step_window", "phase", "scope", "instant", "annotated", "unrecorded", "critical"),
)

_SCOPE_DEPTH = 8
"""Nested modules, scopes or annotations drawn above a device: more levels hide the streams."""
_HOLDS_SHARE = 0.02
"""A stream holds what takes at least this share of its busy time."""
_HOLDS_WORDS = {
    Category.COMPUTE: "compute", Category.COLLECTIVE: "collective", Category.COPY_H2D: "H2D", Category.COPY_D2H: "D2H",
    Category.COPY_D2D: "D2D", Category.COPY_P2P: "P2P", Category.MEMSET: "memset",
}  # fmt: skip


@dataclass(slots=True)
class TraceTexts:
    """The trace's strings and those added to them."""

    strings: list[str]
    _codes: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> int:
        """The number of a text."""
        if text not in self._codes:
            self._codes[text] = len(self.strings)
            self.strings.append(text)
        return self._codes[text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One track of the viewer; arrays have one value per slice, in order of start and falling duration."""

    id: str
    label: str
    type: str
    """``steps``, ``critical``, ``phases``, ``annotations``, ``scopes``, ``idle``, ``stream``, ``group``, ``thread`` or
    ``other``."""
    group: str
    """What it stands under: a device or a process."""
    start: I64
    dur: I64
    text: I32
    kind: U8
    category: U8
    slice: I32
    """Row of the trace's slices, -1 for what was added."""
    device: int | None = None
    holds: str | None = None
    track: int = -1
    """The trace's track."""
    gap: I32 | None = None
    """Number of the gap, -1 for its parts (``idle`` lines)."""


def lines(facts: Facts, texts: TraceTexts) -> list[Line]:
    """All lines in natural order: devices with their steps, phases, annotations, scopes, idle time and streams, then
    the host's steps, annotations and threads."""
    trace = facts.trace
    category = slice_categories(facts)
    starts = np.searchsorted(trace.slices.track, np.arange(len(trace.tracks) + 1, dtype=np.int32))
    own = _Own(facts, texts, category, starts)
    made: list[Line] = _critical(facts, texts)
    paths, ranges = layer_paths(trace), ranges_of(facts)
    of_devices = sorted({int(d) for d in trace.tracks.device.tolist() if d >= 0})
    with_account = {activity.device: (activity, account) for activity, account in facts.devices}
    for device in of_devices:
        group = f"device {device}"
        if device in with_account:
            activity, account = with_account[device]
            made += [
                _windows(facts, texts, account, group),
                _phases(facts, texts, activity, group),
                *_annotations(texts, activity, ranges, group),
                *_scopes(texts, activity, paths, group),
                _idle(texts, activity, account, group),
            ]
        made += own.of_device(device, group)
    made += own.of_host(facts, ranges)
    return [line for line in made if line.start.size]


def slice_categories(facts: Facts) -> U8:
    """Per slice, the category of the accounting it is booked to, or of the host's cause; ``NO_CATEGORY`` for none."""
    categories = facts.host.causes.copy()
    for activity in facts.activities:
        categories[activity.slice] = activity.category
    return categories


@record
class _Own:
    """The profile's own tracks."""

    facts: Facts
    texts: TraceTexts
    category: U8
    starts: I64

    def of_device(self, device: int, group: str) -> list[Line]:
        tracks = self.facts.trace.tracks
        mine = np.flatnonzero(tracks.device == device).tolist()
        order = sorted(mine, key=lambda at: (tracks.kind[at] != TrackKind.DEVICE_LINE, int(tracks.stream[at]), at))
        return [self._line(at, group, device) for at in order]

    def of_host(self, facts: Facts, ranges: Ranges) -> list[Line]:
        trace, tracks = facts.trace, facts.trace.tracks
        rows = np.flatnonzero(tracks.device < 0).tolist()
        first = {facts.host.main: 0} | dict.fromkeys(facts.host.backward, 1)
        order = sorted(rows, key=lambda at: (first.get(at, 2), int(tracks.kind[at]), at))
        groups = {at: f"process {text}" if (text := _text(trace, int(tracks.process[at]))) else "host" for at in rows}
        main = groups.get(facts.host.main, "host")
        made = [_host_windows(facts, self.texts, main), _host_annotations(self.texts, ranges, main)]
        return made + [self._line(at, groups[at], None) for at in order]

    def _line(self, track: int, group: str, device: int | None) -> Line:
        trace, low, high = self.facts.trace, int(self.starts[track]), int(self.starts[track + 1])
        slices, rows = trace.slices, np.arange(low, high, dtype=np.int32)
        start, dur, text = slices.start_ns[low:high], slices.dur_ns[low:high], slices.name[low:high]
        kind, category = slices.kind[low:high], self.category[low:high]
        at = np.flatnonzero(trace.instants.track == track)
        if at.size:
            start, dur = np.append(start, trace.instants.time_ns[at]), np.append(dur, np.zeros(at.size, np.int64))
            text, kind = np.append(text, trace.instants.name[at]), np.append(kind, np.full(at.size, INSTANT, np.uint8))
            category = np.append(category, np.full(at.size, NO_CATEGORY, np.uint8))
            rows = np.append(rows, np.full(at.size, -1, np.int32))
            order = np.lexsort((-dur, start))
            start, dur, text, rows = start[order], dur[order], text[order], rows[order]
            kind, category = kind[order], category[order]
        is_stream = trace.tracks.kind[track] == TrackKind.DEVICE_STREAM
        kinds = {TrackKind.DEVICE_STREAM: "stream", TrackKind.DEVICE_LINE: "group", TrackKind.OTHER: "other"}
        type_, label = kinds.get(TrackKind(int(trace.tracks.kind[track])), "thread"), track_label(trace, track)
        return Line(
            id=f"track {track}", label=f"{type_} {label}" if label.isdigit() else label,
            type=type_, track=track, group=group, device=device,
            holds=_holds(category, dur) if is_stream else self._role(track),
            start=start, dur=dur, text=text, kind=kind, category=category, slice=rows,
        )  # fmt: skip

    def _role(self, track: int) -> str | None:
        host = self.facts.host
        return "main loop" if track == host.main else "backward" if track in host.backward else None


def track_label(trace: Trace, track: int) -> str:
    """How a track is called: as the profile labels it, else by its thread or stream."""
    tracks = trace.tracks
    label, thread = _text(trace, int(tracks.label[track])), _text(trace, int(tracks.thread[track]))
    if label and thread and thread not in label:
        return f"{label} ({thread})"
    return label or thread or f"track {track}"


def _text(trace: Trace, code: int) -> str | None:
    return trace.strings[code] if code >= 0 else None


def _holds(category: U8, dur: I64) -> str | None:
    """What a stream holds, most time first."""
    time = np.bincount(category, dur, NO_CATEGORY + 1)[: len(CATEGORIES)]
    least = _HOLDS_SHARE * time.sum()
    words = [_HOLDS_WORDS.get(CATEGORIES[code]) for code in np.argsort(-time).tolist() if time[code] > least]
    return ", ".join(word for word in words if word) or None


def _made(texts: TraceTexts, words: list[str], kind: int, category: U8 | None = None) -> tuple[I32, U8, U8, I32]:
    """The columns that added slices share: texts, kinds, categories, rows."""
    size = len(words)
    return (
        np.array([texts.code(word) for word in words], np.int32),
        np.full(size, kind, np.uint8),
        np.full(size, NO_CATEGORY, np.uint8) if category is None else category,
        np.full(size, -1, np.int32),
    )


def step_name(facts: Facts, step: int | None, phase: str) -> str:
    """How a row of the accounting is called."""
    if step is None:
        return {"before": "before the steps", "after": "after the steps"}.get(phase, "between the steps")
    number = facts.markers.numbers[step]
    return f"step {step if number is None else number}"


def _windows(facts: Facts, texts: TraceTexts, account: Account, group: str) -> Line:
    rows = account.rows
    words = [step_name(facts, *pair) for pair in zip(rows.steps, rows.phases, strict=True)]
    text, kind, category, none = _made(texts, words, WINDOW)
    return Line(
        id=f"{group} steps", label="steps", type="steps", group=group, device=rows.device,
        start=rows.bounds[:-1], dur=np.diff(rows.bounds), text=text, kind=kind, category=category, slice=none,
    )  # fmt: skip


def _host_windows(facts: Facts, texts: TraceTexts, group: str) -> Line:
    markers = facts.markers
    text, kind, category, none = _made(texts, [step_name(facts, k, "step") for k in range(len(markers))], WINDOW)
    return Line(
        id=f"{group} steps", label="steps", type="steps", group=group, holds=markers.source,
        start=markers.start, dur=markers.end - markers.start, text=text, kind=kind, category=category, slice=none,
    )  # fmt: skip


def _runs(code: I32, start: I64, end: I64) -> tuple[I32, I64, I64]:
    """Neighbours of one code as one: its first start and last end; codes below 0 are left out, and end a run."""
    if not code.size:
        return code, start, end
    first = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    reach = np.maximum.reduceat(end, first)
    # On several streams a run may reach into the next one: it is drawn up to there.
    begin = np.maximum.accumulate(start[first])
    until = np.maximum(np.minimum(reach, np.append(begin[1:], reach[-1])), begin)
    kept = code[first] >= 0
    return code[first][kept], begin[kept], until[kept]


def _critical(facts: Facts, texts: TraceTexts) -> list[Line]:
    """What sets the step time, over devices and host."""
    path = critical_path(facts)
    if isinstance(path, str):
        return []
    words = np.array([texts.code(LABELS[str(one)].words) for one in CATEGORIES], np.int32)
    text = np.where(path.slice >= 0, facts.trace.slices.name[path.slice], words[path.category])
    size = path.start.size
    return [
        Line(
            id="critical path", label="critical path", type="critical", group="step time",
            start=path.start, dur=path.dur, text=text.astype(np.int32), kind=np.full(size, CRITICAL, np.uint8),
            category=path.category, slice=np.full(size, -1, np.int32),
        )
    ]  # fmt: skip


def _phases(facts: Facts, texts: TraceTexts, activity: DeviceActivity, group: str) -> Line:
    phases = device_phases(facts.trace, activity).astype(np.int32)
    told = phases != phase_code(Phase.UNKNOWN)
    told &= phases != phase_code(Phase.COMMUNICATION)
    code, start, end = _runs(phases[told], activity.start[told], activity.end[told])
    text, kind, category, none = _made(texts, [str(PHASES[at]) for at in code.tolist()], PHASE)
    return Line(
        id=f"{group} phases", label="phases", type="phases", group=group, device=activity.device,
        start=start, dur=end - start, text=text, kind=kind, category=category, slice=none,
    )  # fmt: skip


def _annotations(texts: TraceTexts, activity: DeviceActivity, ranges: Ranges, group: str) -> list[Line]:
    """What was launched in the program's annotations, outermost first."""
    owner = ranges.of_calls(activity.call)
    rows = np.flatnonzero((owner >= 0) | (activity.category == Category.COMPUTE.code))
    if not (owner >= 0).any():
        return []
    start, end, inner, depth = activity.start[rows], activity.end[rows], owner[rows], levels(ranges.parent)
    words = np.array([texts.code(name) for name in ranges.names], np.int32)[ranges.name]
    parts: list[tuple[I32, I64, I64]] = []
    for level in range(int(depth[inner[inner >= 0]].max()), -1, -1):
        here = (inner >= 0) & (depth[inner] == level)
        drawn, begin, until = _runs(np.where(here, inner, np.int32(-1)), start, end)
        parts += [(words[drawn], begin, until)] * (level < _SCOPE_DEPTH)
        inner = np.where(here, ranges.parent[inner], inner)
    return [_nested(texts, parts, ("annotations", "annotations"), ANNOTATED, (group, activity.device))]


def _host_annotations(texts: TraceTexts, ranges: Ranges, group: str) -> Line:
    """The annotations of the main thread."""
    mine = np.flatnonzero(ranges.trace.slices.track[ranges.slice] == ranges.host.main)
    words = np.array([texts.code(name) for name in ranges.names], np.int32)
    part = words[ranges.name[mine]], ranges.start[mine], ranges.end[mine]
    return _nested(texts, [part], ("annotations", "annotations"), ANNOTATED, (group, None))


def _scopes(texts: TraceTexts, activity: DeviceActivity, paths: Paths | None, group: str) -> list[Line]:
    """Modules or name scopes of what computes, outermost first."""
    computes = np.flatnonzero(activity.category == Category.COMPUTE.code)
    if paths is None or not paths.names or not computes.size:
        return []
    own, call = activity.slice[computes], activity.call[computes]
    told = np.where(paths.layer[own] >= 0, own, call)
    layer = np.where(told >= 0, paths.layer[told], -1)
    start, end = activity.start[computes], activity.end[computes]
    pieces = [name.split("/") for name in paths.names]
    parts: list[tuple[I32, I64, I64]] = []
    for depth in range(min(max(map(len, pieces), default=0), _SCOPE_DEPTH)):
        numbers: dict[str, int] = {}
        names = ["/".join(piece[: depth + 1]) if len(piece) > depth else None for piece in pieces]
        of_layer = [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names]
        code = np.array([*of_layer, -1], np.int32)[layer]
        scopes, begin, until = _runs(code, start, end)
        last = np.array([texts.code(name.rpartition("/")[2] or name) for name in numbers], np.int32)
        parts.append((last[scopes] if scopes.size else scopes, begin, until))
    return [_nested(texts, parts, ("scopes", "modules and scopes"), SCOPE, (group, activity.device))]


def _nested(
    texts: TraceTexts,
    parts: list[tuple[I32, I64, I64]],
    called: tuple[str, str],
    kind_: int,
    where: tuple[str, int | None],
) -> Line:
    """A line of texts, starts and ends by level; ``called`` is its type and label, ``where`` its group and device."""
    text, begin, until = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((begin - until, begin))
    text, begin, until = text[order], begin[order], until[order]
    _, kind, category, none = _made(texts, [""] * text.size, kind_)
    (type_, label), (group, device) = called, where
    return Line(
        id=f"{group} {type_}", label=label, type=type_, group=group, device=device,
        start=begin, dur=until - begin, text=text, kind=kind, category=category, slice=none,
    )  # fmt: skip


def _idle(texts: TraceTexts, activity: DeviceActivity, account: Account, group: str) -> Line:
    """Every gap under its largest cause and, where it has several, their parts inside it; between gaps the work that
    was not recorded.

    The parts have a kind of their own: sums of gaps count no time twice. So has that work, which is not idle.
    """
    assert account.idle is not None
    gaps, pieces, busy = account.idle.gaps, account.idle.pieces, activity.unrecorded
    length = (pieces.end - pieces.start).astype(np.int64)
    order = np.lexsort((-length, pieces.gap))
    first = np.append(True, np.diff(pieces.gap[order]) > 0) if order.size else np.empty(0, np.bool_)
    cause = np.full(len(gaps), Category.UNKNOWN_DEVICE.code, np.uint8)
    cause[pieces.gap[order][first]] = pieces.category[order][first]
    several = np.bincount(pieces.gap, minlength=len(gaps)) > 1
    inner = np.flatnonzero(several[pieces.gap])
    start = np.concatenate((gaps.start, pieces.start[inner], busy[0]))
    end = np.concatenate((gaps.end, pieces.end[inner], busy[1]))
    work = np.full(len(busy[0]), Category.UNRECORDED.code, np.uint8)
    category = np.concatenate((cause, pieces.category[inner], work))
    kind = np.repeat(np.array([IDLE, CAUSE, UNRECORDED], np.uint8), (len(gaps), inner.size, len(work)))
    number = np.append(np.arange(len(gaps)), np.full(inner.size + len(work), -1)).astype(np.int32)
    # A gap stands before its parts, also where the first of them is as long as itself but for nothing.
    order = np.lexsort((number < 0, start - end, start))
    words = np.array([texts.code(LABELS[str(one)].words) for one in CATEGORIES], np.int32)
    label = "idle, by cause; work not recorded" if len(work) else "idle, by cause"
    return Line(
        id=f"{group} idle", label=label, type="idle", group=group, device=account.rows.device,
        start=start[order], dur=(end - start)[order], text=words[category[order]], kind=kind[order],
        category=category[order], slice=np.full(start.size, -1, np.int32), gap=number[order],
    )  # fmt: skip
