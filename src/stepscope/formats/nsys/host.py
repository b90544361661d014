"""The host's side: API calls, NVTX ranges and marks, the operating system's calls, the profiler's own work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.formats.chrome.kineto_kinds import call_kind
from stepscope.formats.nsys import nvtx, schema
from stepscope.formats.nsys.draft import Draft, dense
from stepscope.formats.nsys.export import EventRows, Export, known
from stepscope.formats.nsys.sqlite import ColumnTexts, TableRows
from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.tables import I32, I64, NULL, U8, Bools, Kind


@record
class ApiCalls:
    """API calls: their slices, names, ids (NULL where absent), start, duration and track."""

    slice: I32
    name: I32
    correlation: I64
    start: I64
    dur: I64
    track: I32

    def by_id(self, wanted: I64) -> I64:
        """The position of the call of each id, -1 where none has it.

        Where calls share one (a driver call inside a runtime call) the outer, earlier one counts.
        """
        order = np.lexsort((-self.dur, self.start, self.correlation))
        order = order[self.correlation[order] != NULL]
        ids, first = np.unique(self.correlation[order], return_index=True)
        if ids.size == 0:
            return np.full(wanted.size, -1, np.int64)
        place = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
        return np.where(ids[place] == wanted, order[first[place]], -1)


def correlations(events: EventRows) -> I64:
    """The ids that calls and device work share; older exports write 0 for none."""
    ids = events.number("correlationId")
    return np.where(ids == 0, NULL, ids)


def add_calls(export: Export, draft: Draft) -> ApiCalls:
    """Runtime and driver calls."""
    events = export.events(schema.CALLS)
    names = _names(export, draft, events, "nameId")
    kinds = draft.by_name(names, call_kind, np.uint8)
    track, ids = draft.host_tracks(events.number("globalTid")), correlations(events)
    slices = draft.slices(events, track, names, kinds, schema.CALLS, ids)
    return ApiCalls(slices, names, ids, events.start, events.end - events.start, track)


def add_ranges(export: Export, draft: Draft) -> None:
    """Ranges of other tables: libraries, MPI, the profiler, the operating system."""
    for table, (spec, kind) in schema.HOST_RANGES.items():
        events = export.events(table)
        names = _names(export, draft, events, spec.numbers[1])
        track = draft.host_tracks(events.number("globalTid"), schema.OWN_TRACKS.get(kind, ""))
        ids = correlations(events) if "correlationId" in spec.numbers else None
        draft.slices(events, track, names, kind, table, ids)


def _names(export: Export, draft: Draft, events: EventRows, column: str) -> I32:
    ids = events.number(column)
    codes, missing = draft.strings.named(draft.strings.codes(ids), ids)
    export.losses.rows(missing, events.rows.offset, "name_missing", "events whose name the file lacks", lost=False)
    return codes


@record
class Marks:
    """What the NVTX table holds beside ranges, and the numbers of PyTorch's ops."""

    instants: t.Instants
    """Times are the file's."""
    host_ops: t.HostOps
    has_ops: bool
    """Whether any range is an op of PyTorch's."""
    naming: int
    """Rows that name categories, threads and domains."""


def add_nvtx(export: Export, draft: Draft) -> Marks:
    """NVTX ranges as slices, marks as instants."""
    raw = export.raw(schema.RANGES)
    types, start, end = (known(raw.numbers[column]) for column in ("eventType", "start", "end"))
    is_mark, is_range = types == schema.MARK, np.isin(types, (schema.PUSH_POP, schema.START_END))
    naming = np.isin(types, schema.NAMING_EVENTS)
    unknown = ~(is_mark | is_range | naming)
    export.losses.rows(unknown, raw.offset, "event_type_unknown", "NVTX events of unknown type")
    # Older exports write 0 or -1 where a range was still open.
    endless = is_range & ((end == NULL) | ((end <= 0) & (start > 0)))
    events = export.events(schema.RANGES, among=is_mark | is_range, endless=endless | is_mark)
    endless, types = endless[events.origin], types[events.origin]
    export.losses.rows(
        endless, events.rows.offset, "range_open", "NVTX ranges that were still open at the end, where they are cut",
        lost=False,
    )  # fmt: skip
    last = np.maximum(events.start, export.last)
    events = replace(events, end=np.where(endless, last, events.end))
    texts = events.rows.texts["text"].or_else(draft.strings.at(events.number("textId")))
    domain = _domains(draft, raw, types=known(raw.numbers["eventType"]), wanted=events.number("domainId"))
    at = types == schema.MARK
    instants = t.Instants(
        time_ns=events.start[at],
        track=draft.host_tracks(events.number("globalTid")[at]),
        name=_or_empty(draft, draft.strings.of(texts[at])),
        category=domain[at],
        offset=events.rows.offset[at],
    )
    host_ops, has_ops = _ranges(draft, events[~at], texts[~at], domain[~at], types[~at])
    return Marks(instants, host_ops, has_ops, int(naming.sum()))


def _domains(draft: Draft, raw: TableRows, types: I64, wanted: I64) -> I32:
    """The name of each event's domain."""
    rows = raw[types == schema.DOMAIN]
    texts = rows.texts["text"].or_else(draft.strings.at(known(rows.numbers["textId"]))).decoded()
    names = dict(zip(known(rows.numbers["domainId"]).tolist(), texts, strict=True))
    used, which = dense(wanted)
    return np.array([draft.builder.text(names.get(number) or "NVTX") for number in used.tolist()], np.int32)[which]


def _or_empty(draft: Draft, codes: I32) -> I32:
    """NVTX lets a range have no text."""
    return np.where(codes < 0, draft.builder.text(""), codes).astype(np.int32)


def _ranges(draft: Draft, events: EventRows, texts: ColumnTexts, domain: I32, types: I64) -> tuple[t.HostOps, bool]:
    parts = nvtx.split(texts)
    names = _or_empty(draft, draft.strings.of(parts.name))
    kinds = np.where(
        parts.is_op, draft.by_name(names, nvtx.op_kind, np.uint8), draft.by_name(names, nvtx.range_kind, np.uint8)
    )
    track = _range_tracks(draft, events, kinds, types == schema.START_END)
    slices = draft.slices(events, track, names, kinds, domain)
    sizes = draft.strings.of(parts.sizes)
    detailed = (kinds == Kind.HOST_OP) & ((parts.sequence != NULL) | (sizes >= 0))
    absent = np.full(int(detailed.sum()), -1, np.int32)
    host_ops = t.HostOps(
        slice=slices[detailed],
        sequence=parts.sequence[detailed],
        forward_thread=np.full(absent.size, NULL, np.int64),
        input_dims=sizes[detailed],
        input_types=absent,
        concrete_inputs=absent,
        call_stack=absent,
    )
    return host_ops, bool((kinds == Kind.HOST_OP).any())


def _range_tracks(draft: Draft, events: EventRows, kinds: U8, free: Bools) -> I32:
    """The thread's track; one beside it for start/end ranges that end on another thread or cross what the thread does.

    Steps stay: they tell which thread the others wait for.
    """
    thread, ends_on = events.number("globalTid"), events.number("endGlobalTid")
    beside = free & (ends_on != NULL) & (ends_on != 0) & (ends_on != thread)
    if (free & ~beside).any():
        crosses = free & ~beside & nvtx.crossing(dense(thread)[1], events.start, events.end)
        beside |= free & np.isin(thread, thread[crosses])
    beside &= kinds != Kind.STEP
    track = np.empty(len(events), np.int32)
    track[~beside] = draft.host_tracks(thread[~beside])
    track[beside] = draft.host_tracks(thread[beside], "NVTX start/end ranges")
    return track
