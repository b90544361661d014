"""Everything that is no slice: memory events, counters, instants, and arrows between slices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from stepscope.formats.chrome.arrows import FLOW_KINDS
from stepscope.formats.chrome.writing.members import launch_numbers, member
from stepscope.formats.chrome.writing.places import Places
from stepscope.formats.chrome.writing.text import arguments, joined, labels, microseconds, numbers, quoted, texts
from stepscope.trace import tables as t
from stepscope.trace.forest import innermost_at
from stepscope.trace.trace import Trace

_MEMORY = (
    ("device_type", "Device Type"),
    ("device", "Device Id"),
    ("address", "Addr"),
    ("bytes", "Bytes"),
    ("allocated", "Total Allocated"),
    ("reserved", "Total Reserved"),
)
_FLOWS = {kind: category for category, kind in reversed(FLOW_KINDS.items())} | {t.FlowKind.ARROW: "arrow"}


def point_lines(trace: Trace, places: Places) -> Iterator[pl.Series]:
    """The events, one per row, each behind a comma."""
    lanes = _lane_texts(places)
    yield from _points(trace, lanes, places)
    yield from _launches(trace, lanes, places)
    yield from _flows(trace, lanes, places)


def _lane_texts(places: Places) -> pl.Series:
    return pl.Series([f',"pid":{pid},"tid":{tid},"ts":' for pid, tid in places.lanes])


def _at(lanes: pl.Series, lane: t.I32, time: t.I64) -> pl.Series:
    return joined(lanes.gather(lane.astype(np.uint32)), microseconds(time))


def _points(trace: Trace, lanes: pl.Series, places: Places) -> Iterator[pl.Series]:
    memory, counters, instants = trace.memory, trace.counters, trace.instants
    if len(memory):
        args = [member(key, getattr(memory, column), (), None) for column, key in _MEMORY]
        args.append(member("allocator", memory.allocator, trace.strings, quoted))
        head = ',{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]"'
        place = _at(lanes, places.of_track[memory.track], memory.time_ns)
        yield joined(pl.Series([head]).new_from_index(0, len(memory)), place, arguments(args), "}")
    if len(counters):
        name = texts(counters.name, trace.strings, quoted, before=',{"ph":"C","name":')
        place = _at(lanes, places.of_track[counters.track], counters.time_ns)
        yield joined(name, place, ',"args":{', numbers(counters.value, before='"value":'), "}}")
    if len(instants):
        name = texts(instants.name, trace.strings, quoted, before=',{"ph":"i","s":"t","name":')
        category = texts(instants.category, trace.strings, quoted, before=',"cat":')
        place = _at(lanes, places.of_track[instants.track], instants.time_ns)
        yield joined(name, category, place, "}")


def _launches(trace: Trace, lanes: pl.Series, places: Places) -> Iterator[pl.Series]:
    """Arrows from calls to what they launched: one start per call, an end per op, as Kineto draws them."""
    slices, launches = trace.slices, trace.launches
    if len(launches) == 0:
        return
    ids = launch_numbers(trace)
    _, first = np.unique(ids, return_index=True)
    for phase, rows, ends in (("s", launches.call[first], ids[first]), ("f", launches.op, ids)):
        place = _at(lanes, places.of_slice[rows], slices.start_ns[rows])
        yield _arrow_ends(phase, pl.Series(["ac2g"]).new_from_index(0, len(rows)), ends, place)


def _flows(trace: Trace, lanes: pl.Series, places: Places) -> Iterator[pl.Series]:
    flows = trace.flows
    if len(flows) == 0:
        return
    categories = labels(flows.kind, [_FLOWS[kind] for kind in t.FlowKind])
    ids = np.arange(1, len(flows) + 1, dtype=np.int64)
    for phase, rows in (("s", flows.source), ("f", flows.target)):
        yield _arrow_ends(phase, categories, ids, _at(lanes, places.of_slice[rows], _own_time(trace, rows)))


def _arrow_ends(phase: str, categories: pl.Series, ids: t.I64, place: pl.Series) -> pl.Series:
    bound = ',"bp":"e"}' if phase == "f" else "}"
    return joined(
        f',{{"ph":"{phase}","cat":"', categories, '","name":"', categories, '","id":', pl.Series(ids).cast(pl.String),
        place, bound,
    )  # fmt: skip


def _own_time(trace: Trace, rows: t.I32) -> t.I64:
    """A time at which a slice is the innermost one of its track, where its start, end or middle is one."""
    slices = trace.slices
    start, dur = slices.start_ns[rows], slices.dur_ns[rows]
    chosen = start.copy()
    open_rows = np.arange(rows.size)
    for time in (start, start + dur, start + dur // 2):
        hit = innermost_at(slices, slices.track[rows[open_rows]], time[open_rows]) == rows[open_rows]
        chosen[open_rows[hit]] = time[open_rows[hit]]
        open_rows = open_rows[~hit]
    return chosen
