"""Statistics (``XStat``) of events, event metadata and planes as sparse columns; only those that become columns.

The names of the statistics are those of tsl/profiler/utils/xplane_schema.cc and, for TraceMe arguments, of the code
that records them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.formats.xplane import wire
from stepscope.formats.xplane.grouping import dense, distinct
from stepscope.record import record
from stepscope.trace.codes import used_codes
from stepscope.trace.tables import F64, I32, I64, NULL, U8, Rows

KIND, CATEGORY, DERIVED = "stepscope_kind", "category", "derived"
"""What stepscope's own files (``writing``) say in the metadata of events: the kind of slice and its category as
they were; the last is the kind of what stands there only for XProf to see."""

RUN, PART = "stepscope_run", "stepscope_part"
"""Planes': what is known of the run as JSON; of a recorded file out of which events were cut, what is left."""

LAUNCH, MARKER, NUMBER = "stepscope_launch", "stepscope_marker", "stepscope_step"
"""The number a call shares with what it launched; what says that a slice is a step, beside its name, and the step's
number."""

OWN_COLUMNS = {
    "host_ops": {
        "sequence": "Sequence number", "forward_thread": "Fwd thread id", "input_dims": "Input Dims",
        "input_types": "Input type", "concrete_inputs": "Concrete Inputs", "call_stack": "Call stack",
    },
    "device_ops": {
        "collective": "Collective name", "process_group": "Process Group Name", "dtype": "dtype",
        "message_elements": "In msg nelems", "group_size": "Group size",
    },
    "device_waits": {
        "wait_on_stream": "wait_on_stream", "wait_on_correlation": "wait_on_cuda_event_record_corr_id",
    },
    "nodes": {
        column: f"stepscope_{column}"
        for column in ("node", "op", "inputs", "placement", "scheduled_ns", "op_start_ns", "op_end_ns")
    },
}  # fmt: skip
"""Columns of tables that only stepscope's own files have, and their statistics, which XProf does not know."""

FIRST_FLOW_TYPE = 1000
"""Types of producers and consumers in stepscope's own files: this plus the FlowKind. XLA's are below 32
(tsl/profiler/lib/context_types.h)."""

ITERATORS = {
    "parallelism": "parallelism", "buffer_limit": "buffer_limit", "cpu_budget": "cpu_budget",
    "threadpool_size": "threadpool_size", "autotune": "autotune",
}  # fmt: skip
"""Columns of the table of tf.data's iterators and the statistics that ``IteratorBase::GetTraceMeMetadata`` writes
(tensorflow/core/kernels/data; the root's in root_dataset.cc). The dataset stands in ``name``, as other things do."""

KEYS = (
    # calls and device ops
    "correlation_id", "device_id", "kernel_details", "memcpy_details", "Memset_details", "memalloc_details",
    "MemFree_details", "MemoryResidency_details", "theoretical_occupancy_pct", "cuda_graph_id", "cuda_graph_exec_id",
    "device_offset_ps", "device_duration_ps",
    # compiled modules
    "hlo_op", "hlo_module", "hlo_category", "program_id", "run_id", "device_ordinal", "global_device_id", "tf_op",
    "name", "flops", "model_flops", "bytes_accessed", "source", "replica_groups", "Hlo Proto",
    # steps and hand-overs between threads
    "_r", "step_num", "_pt", "_p", "_ct", "_c",
    # memory
    "allocator_name", "requested_bytes", "allocation_bytes", "addr", "bytes_allocated", "bytes_reserved",
    "bytes_available", "fragmentation", "region_type", "data_type", "shape", "index_on_host",
    "counter_value", "action_duration_ns",
    # iterators of tf.data
    *ITERATORS.values(),
    # the session
    "profile_start_time", "profile_options",
    # stepscope's own files
    KIND, CATEGORY, "external_id", LAUNCH, MARKER, NUMBER,
    *(stat for columns in OWN_COLUMNS.values() for stat in columns.values()),
)  # fmt: skip
SLOT = {key: slot for slot, key in enumerate(KEYS)}


@record
class StatRows:
    """One statistic: the rows that have it, rising; the field of the value and the value (see ``wire.read_stat``)."""

    rows: I32
    field: U8
    value: I64


_NAN = int(np.float64(np.nan).view(np.int64))

EMPTY = StatRows(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.int64))


@record
class StatsPart:
    """The statistics of a stretch of rows: one slot behind the other, in each rows rise."""

    rows: I32
    fields: U8
    values: I64
    counts: I64
    """How many each slot has."""


class Stats:
    """The statistics of one kind of row, and what their texts are."""

    def __init__(self, data: U8, key_names: Sequence[str], parts: Sequence[StatsPart]) -> None:
        """``parts`` follow each other, their rows rise; ``key_names`` resolve references."""
        self._data, self._names = data, key_names
        ends = [np.cumsum(part.counts).tolist() for part in parts]
        self._columns: dict[str, StatRows] = {}
        for slot, key in enumerate(KEYS):
            pieces = [
                (part.rows[low:high], part.fields[low:high], part.values[low:high])
                for part, end in zip(parts, ends, strict=True)
                if (high := end[slot]) > (low := end[slot] - int(part.counts[slot]))
            ]
            if pieces:
                rows, fields, values = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
                self._columns[key] = _last_of_each(StatRows(rows, fields, values))

    def column(self, key: str) -> StatRows:
        """One statistic of all rows that have it."""
        return self._columns.get(key, EMPTY)

    def rows(self, key: str) -> I32:
        """The rows that have a statistic, rising."""
        return self.column(key).rows

    def integers(self, key: str, rows: Rows) -> I64:
        """A whole number per row, also one written as text or double; NULL where absent or none."""
        values, at, field, value = self._values(key, rows, (wire.UNSIGNED, wire.SIGNED), NULL)
        doubles = np.flatnonzero(field == wire.DOUBLE)
        if doubles.size:
            numbers = value[doubles].view(np.float64)
            exact = np.isfinite(numbers) & (np.abs(numbers) < 2**53) & (numbers == np.floor(numbers))
            values[at[doubles[exact]]] = numbers[exact].astype(np.int64)
        texts, codes = self._texts(field, value)
        table = np.array([_whole(text) for text in texts] + [NULL], np.int64)
        has = codes >= 0
        values[at[has]] = table[codes[has]]
        return values

    def _values(self, key: str, rows: Rows, fields: tuple[int, int], absent: int) -> tuple[I64, Rows, U8, I64]:
        """Per row the value that is written in one of a range of fields; of other ones position, field and value."""
        stats = self.column(key)
        values = np.full(rows.size, absent, np.int64)
        others = wire.values_of(rows, (stats.rows, stats.field, stats.value), fields, values)
        if not others:
            return values, np.empty(0, np.intp), EMPTY.field, EMPTY.value
        at, known = _places(rows, stats.rows)
        field = stats.field[known]
        other = (field < fields[0]) | (field > fields[1])
        return values, at[other], field[other], stats.value[known[other]]

    def sizes(self, key: str, rows: Rows) -> I64:
        """As ``integers``, of what is never negative."""
        values = self.integers(key, rows)
        values[values < 0] = NULL
        return values

    def floats(self, key: str, rows: Rows) -> F64:
        """A number per row, NaN where absent."""
        bits, at, field, value = self._values(key, rows, (wire.DOUBLE, wire.DOUBLE), _NAN)
        values = bits.view(np.float64)
        whole = field <= wire.SIGNED
        values[at[whole]] = value[whole]
        return values

    def texts(self, key: str, rows: Rows) -> tuple[list[str], I32]:
        """Distinct texts, and per row its place among them; -1 where absent. Numbers are written out."""
        named, at, field, value = self._values(key, rows, (wire.REFERENCE, wire.REFERENCE), -1)
        texts, codes = self._of_names(named)
        own, places = self._texts(field, value)
        whole = np.flatnonzero((field == wire.UNSIGNED) | (field == wire.SIGNED))
        used, each = distinct(value[whole])
        places[whole] = len(own) + each
        codes[at[places >= 0]] = len(texts) + places[places >= 0]
        return texts + own + [str(number) for number in used.tolist()], codes

    def spans(self, key: str) -> tuple[I32, I64, I64]:
        """Rows, and where their bytes or text lie."""
        stat = self.column(key)
        inline = (stat.field == wire.DATA) | (stat.field == wire.TEXT)
        start, end, _ = wire.text_spans(self._data, stat.value[inline])
        return stat.rows[inline], start, end

    def _texts(self, field: U8, value: I64) -> tuple[list[str], I32]:
        """Distinct texts among some values, and per value its place among them; -1 for what is no text."""
        texts, codes = self._of_names(np.where(field == wire.REFERENCE, value, -1))
        inline = np.flatnonzero(field == wire.TEXT)
        if inline.size:
            own, places = distinct_texts(self._data, value[inline])
            codes[inline] = len(texts) + places
            texts = texts + own
        return texts, codes

    def _of_names(self, rows: I64) -> tuple[list[str], I32]:
        """The distinct texts that some rows of names stand for, and per row its place among them; -1 stays."""
        used = used_codes(rows, len(self._names))
        table = np.full(len(self._names) + 1, -1, np.int32)
        table[used] = np.arange(used.size)
        return [self._names[row] for row in used.tolist()], table[rows]


def distinct_texts(data: U8, places: I64) -> tuple[list[str], I32]:
    """The distinct texts whose fields stand at some places, and which of them each is."""
    start, end, hashes = wire.text_spans(data, places)
    group, first = dense(hashes)
    representative = first[group]
    odd = np.flatnonzero(wire.differ(data, start, end, representative))  # two texts with one hash
    texts = [_text(data, start[row], end[row]) for row in first.tolist()]
    codes = group.astype(np.int32)
    for row in odd.tolist():
        codes[row] = len(texts)
        texts.append(_text(data, start[row], end[row]))
    return texts, codes


def _text(data: U8, start: int, end: int) -> str:
    return data[start:end].tobytes().decode("utf-8", "replace")


def _whole(text: str) -> int:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else NULL


def _last_of_each(column: StatRows) -> StatRows:
    """Where a row has a statistic twice the last one counts."""
    last = np.append(column.rows[1:] != column.rows[:-1], True)
    return column if last.all() else StatRows(column.rows[last], column.field[last], column.value[last])


def _places(rows: Rows, of: I32) -> tuple[Rows, Rows]:
    """Which of some rows (in any order) are in a rising list: positions in ``rows``, and each one's in ``of``."""
    at = np.minimum(np.searchsorted(of, rows), of.size - 1)
    known = np.flatnonzero(of[at] == rows) if of.size else np.empty(0, np.intp)
    return known, at[known]
