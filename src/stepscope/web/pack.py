"""The pack of one profile: everything the trace viewer shows, in columns a browser reads without parsing.

Slices stand by track, then by lane (slices of a lane never overlap), then by time, so that a lane is one stretch of
every column. A slice's name is a row of the names table, which has one row per distinct text, kind and category.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from stepscope.analysis.blocks import pools
from stepscope.analysis.categories import BUSY, CATEGORIES
from stepscope.analysis.facts import Facts
from stepscope.analysis.gaps import crosses_step, gap_sources
from stepscope.names.kernels import describe
from stepscope.record import record
from stepscope.report.labels import CATEGORIES as LABELS
from stepscope.trace.lanes import lanes_of
from stepscope.trace.select import extent
from stepscope.trace.tables import DEVICE_BUSY_KINDS, I32, I64, NULL, FlowKind, Rows
from stepscope.trace.trace import Trace
from stepscope.web.bounded import bounded_lines
from stepscope.web.columns import Sections
from stepscope.web.details import add_details, bounded
from stepscope.web.limits import VIEW_SLICES
from stepscope.web.lines import KINDS, NO_CATEGORY, Line, TraceTexts, lines, step_name, track_label

VERSION = 1
LAUNCH = len(FlowKind)
"""The kind of the flow from a call to what it launched, after those of ``FlowKind``."""
_MISSING = (
    "profile_sampled", "profile_no_device", "profile_device_missing", "profile_host_unrecorded",
    "profile_functions_only", "launches_not_recorded",
)  # fmt: skip
"""Notices of what the trace does not show, and of what would record it."""
_BUSY_CODES = [int(kind) for kind in DEVICE_BUSY_KINDS]


if TYPE_CHECKING:
    from stepscope.document.report import Report


class Packable(Protocol):
    """What a pack is made of (``stepscope.Profile`` is one)."""

    @property
    def trace(self) -> Trace:
        """The declared tables."""

    @property
    def facts(self) -> Facts:
        """What the analyses found."""

    def document(self) -> Report:
        """The report."""


def pack(profile: Packable) -> bytes:
    """The pack of a profile, as ``static/trace/pack.js`` reads it."""
    trace, facts = profile.trace, profile.facts
    sections, texts = Sections(), TraceTexts(list(trace.strings))
    drawn = lines(facts, texts)
    steps, until = _steps(facts), None
    bound = bounded_lines(drawn, steps, VIEW_SLICES)
    if bound is not None:
        drawn, until = bound.lines, bound.until_ns
    order = _Order.of(drawn)
    place = order.places(len(trace.slices))
    tracks = _slices(sections, order, texts)
    _flows(sections, trace, place)
    _gaps(sections, facts, order, place)
    counters = _counters(sections, facts)
    add_details(sections, facts, place)
    document = profile.document()
    header: dict[str, Any] = {
        "version": VERSION,
        "slices": int(order.start.size),
        "extent_ns": _extent(trace, order, until),
        "rank": trace.info.rank,
        # As text: a number of JavaScript is exact to 2^53 only.
        "epoch_ns": None if trace.info.origin_epoch_ns is None else str(trace.info.origin_epoch_ns),
        "host": trace.info.host,
        "framework": trace.info.framework,
        "files": [bounded(file["path"]) for file in document["profile"]["files"]],
        "kinds": KINDS,
        "flow_kinds": [*(kind.name.lower() for kind in FlowKind), "launch"],
        "categories": [{"name": str(one), "label": LABELS[str(one)].words, "busy": one in BUSY} for one in CATEGORIES],
        "groups": _groups(trace, drawn),
        "tracks": tracks,
        "counters": counters,
        "steps": [step for step in steps if until is None or step["start_ns"] < until],
        "findings": _findings(document, trace, drawn),
        "losses": [*([] if bound is None else [bound.note]), *map(bounded, _missing(trace, document))],
    }
    sections.json("header", header)
    return sections.packed({"version": VERSION, "slices": header["slices"]})


@record
class _Order:
    """All slices of all lines in the order of the pack."""

    lines: list[Line]
    line: I32
    lane: I32
    start: I64
    dur: I64
    text: I32
    kind: Any
    category: Any
    slice: I32
    gap: I32

    @classmethod
    def of(cls, drawn: list[Line]) -> _Order:
        """Lines one after another, each by lane and time."""
        parts: list[list[Any]] = [[] for _ in range(9)]
        for number, line in enumerate(drawn):
            size = line.start.size
            # Copies: the loop is compiled once, for columns that may be written.
            lane = lanes_of(np.zeros(size, np.int32), np.array(line.start), np.array(line.dur), nesting=False)
            order = np.argsort(lane, kind="stable")
            gap = np.full(size, -1, np.int32) if line.gap is None else line.gap
            columns: list[npt.NDArray[Any]] = [lane, line.start, line.dur, line.text, line.kind]
            columns += [line.category, line.slice, gap]
            parts[0].append(np.full(size, number, np.int32))
            for part, column in zip(parts[1:], columns, strict=True):
                part.append(column[order])
        none = [np.empty(0, np.int64)]
        made = [np.concatenate(part or none) for part in parts]
        return cls(drawn, *made)

    def places(self, slices: int) -> I32:
        """Per slice of the trace its place in the pack, -1 for none."""
        place = np.full(slices + 1, -1, np.int32)
        own = np.flatnonzero(self.slice >= 0)
        place[self.slice[own]] = own
        return place


def _slices(sections: Sections, order: _Order, texts: TraceTexts) -> list[dict[str, Any]]:
    """Add the slices' columns and the names; the tracks, each with the number of slices of its lanes."""
    size = order.start.size
    first = np.flatnonzero(np.append(True, (order.line[1:] != order.line[:-1]) | (order.lane[1:] != order.lane[:-1])))
    first = first[: size and None]
    counts = np.diff(np.append(first, size))
    before = np.append(0, (order.start + order.dur)[:-1])[:size]
    before[first] = order.start[first]
    sections.ints("gap", order.start - before)
    sections.ints("dur", order.dur)
    sections.ints("id", order.slice, delta=True)
    keys = (order.text.astype(np.int64) * 256 + order.kind) * 256 + order.category
    names, name, used = np.unique(keys, return_inverse=True, return_counts=True)
    # The most used names get the smallest numbers.
    by_use = np.argsort(-used, kind="stable")
    number = np.empty(names.size, np.int64)
    number[by_use] = np.arange(names.size)
    sections.ints("name", number[name.reshape(-1)])
    names = names[by_use]
    kinds, told = names // 256 % 256, [texts.strings[code] for code in (names >> 16).tolist()]
    busy = np.isin(kinds, _BUSY_CODES).tolist()
    sections.json("names", [bounded(text) for text in told])
    sections.ints("names.kind", kinds)
    sections.ints("names.category", names % 256)
    sections.json(
        "names.precision",
        [describe(text).precision if is_busy else None for text, is_busy in zip(told, busy, strict=True)],
    )
    tracks: list[dict[str, Any]] = [_track(line) for line in order.lines]
    for at, count in zip(first.tolist(), counts.tolist(), strict=True):
        tracks[order.line[at]]["lanes"].append([int(order.start[at]), count])
    return tracks


def _track(line: Line) -> dict[str, Any]:
    return {
        "id": bounded(line.id), "label": bounded(line.label), "type": line.type, "group": bounded(line.group),
        "device": line.device, "holds": line.holds and bounded(line.holds), "lanes": [],
    }  # fmt: skip


def _flows(sections: Sections, trace: Trace, place: I32) -> None:
    """Add what connects slices, sorted by source: launches and the profile's own arrows."""
    flows, launches = trace.flows, trace.launches
    source = place[np.append(flows.source, launches.call)]
    target = place[np.append(flows.target, launches.op)]
    kind = np.append(flows.kind, np.full(len(launches), LAUNCH, np.uint8))
    order = np.lexsort((target, source))
    order = order[(source[order] >= 0) & (target[order] >= 0)]
    sections.ints("flows.source", source[order], delta=True)
    sections.ints("flows.target", target[order], delta=True)
    sections.ints("flows.kind", kind[order])


def _gaps(sections: Sections, facts: Facts, order: _Order, place: I32) -> None:
    """Add, per gap, what the host was in meanwhile, the call and the op that ended it, and its step."""
    columns: dict[str, list[Any]] = {name: [] for name in ("at", "during", "call", "op", "step", "crosses")}
    number = {line.device: k for k, line in enumerate(order.lines) if line.type == "idle"}
    for activity, account in facts.devices:
        if account.idle is None or activity.device not in number:
            continue
        gaps, row = account.idle.gaps, account.rows.at(account.idle.gaps.start)
        mine = np.flatnonzero((order.line == number[activity.device]) & (order.gap >= 0))
        which = order.gap[mine]
        steps = np.array([-1 if step is None else step for step in account.rows.steps], np.int32)
        columns["at"].append(mine)
        columns["during"].append(place[gap_sources(facts, activity, account)][which])
        columns["call"].append(place[activity.call[gaps.cause_op]][which])
        columns["op"].append(place[activity.slice[gaps.op]][which])
        columns["step"].append(steps[np.minimum(row, steps.size - 1)][which])
        columns["crosses"].append(crosses_step(account)[which])
    for name, parts in columns.items():
        values = np.concatenate(parts) if parts else np.empty(0, np.int32)
        sections.ints(f"gaps.{name}", values.astype(np.int32), delta=name == "at")


def _counters(sections: Sections, facts: Facts) -> list[dict[str, Any]]:
    """Add the memory of each allocator and the profile's counters; what they are."""
    trace, made = facts.trace, list[dict[str, Any]]()

    def add(label: str, group: str, unit: str | None, time: I64, values: Any) -> None:
        name = f"counter.{len(made)}"
        sections.ints(f"{name}.time", time, delta=True)
        if values.dtype == np.float64:
            sections.floats(f"{name}.value", values)
        else:
            sections.ints(f"{name}.value", values, delta=True)
        made.append({"id": name, "label": bounded(label), "group": bounded(group), "unit": unit})

    for pool in pools(trace, facts.markers.start) if len(trace.memory) else []:
        group = "host" if pool.device is None else f"device {pool.device}"
        add(f"memory in use{f' ({pool.allocator})' if pool.allocator else ''}", group, "bytes", pool.time_ns,
            pool.allocated)  # fmt: skip
        known = np.flatnonzero(pool.reserved != NULL)
        if known.size:
            add("memory reserved", group, "bytes", pool.time_ns[known], pool.reserved[known])
    counters = trace.counters
    key = counters.track.astype(np.int64) << 32 | counters.name
    for one in np.unique(key).tolist():
        rows: Rows = np.flatnonzero((key == one) & ~np.isnan(counters.value))
        rows = rows[np.argsort(counters.time_ns[rows], kind="stable")]
        if rows.size:
            device = int(trace.tracks.device[one >> 32])
            group = f"device {device}" if device >= 0 else track_label(trace, one >> 32)
            add(trace.strings[one & 0xFFFFFFFF], group, None, counters.time_ns[rows], counters.value[rows])
    return made


def _extent(trace: Trace, order: _Order, until: int | None) -> list[int]:
    begin, end = extent(trace)
    if order.start.size:
        begin, end = min(begin, int(order.start.min())), max(end, int((order.start + order.dur).max()))
    return [int(begin), int(end if until is None else until)]


def _groups(trace: Trace, drawn: list[Line]) -> list[dict[str, Any]]:
    names = {f"device {device.id}": device.name for device in trace.info.devices}
    groups = dict.fromkeys(line.group for line in drawn)
    return [{"id": bounded(group), "about": names.get(group) and bounded(str(names[group]))} for group in groups]


def _missing(trace: Trace, document: Report) -> list[str]:
    """What this profile does not show of the run: events that were lost or cut out, or never recorded."""
    losses = [one.text for one in trace.completeness.losses if one.damaged or one.lost_events or one.code == "sliced"]
    return losses + [one["text"] for one in document["profile"]["notices"] if one["code"] in _MISSING]


def _steps(facts: Facts) -> list[dict[str, Any]]:
    """Where each step is: on the devices together, else on the host."""
    begun, over = facts.step_bounds if facts.activities else (facts.markers.start, facts.markers.end)
    return [
        {
            "name": step_name(facts, k, "step"),
            "start_ns": int(begun[k]),
            "end_ns": int(over[k]),
            "host_start_ns": int(facts.markers.start[k]),
        }
        for k in range(len(facts.markers))
    ]


def _findings(document: Report, trace: Trace, drawn: list[Line]) -> list[dict[str, Any]]:
    """Each finding with the ranges that show it and the track they are on, where that is known."""
    own = {track_label(trace, line.track): k for k, line in enumerate(drawn) if line.track >= 0}
    idle = {line.device: k for k, line in enumerate(drawn) if line.type == "idle"}
    return [
        {
            "id": finding["id"],
            "title": bounded(finding["title"]),
            "evidence": [
                {
                    "name": bounded(piece["name"]),
                    "start_ns": piece["start_ns"],
                    "end_ns": piece["start_ns"] + piece["dur_ns"],
                    "track": own.get(piece["track"] or "", idle.get(piece["device"])),
                }
                for piece in finding["evidence"]
            ],
        }
        for finding in document["findings"]
    ]


__all__ = ["NO_CATEGORY", "VERSION", "Packable", "pack"]
