"""What the declared tables say of slices, as the arguments under which Kineto (and XLA) writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.formats.chrome.kineto_schema import copy_memory
from stepscope.formats.chrome.own import BASES, BEGUN, CALL_LINE, LAUNCH, MARKER, MEMORY, NODE_TIMES
from stepscope.formats.chrome.writing.text import joined, labels, numbers, quoted, recorded, texts
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

Text = Callable[[str], str]

COLUMNS: dict[str, tuple[tuple[str, str, Text], ...]] = {
    "host_ops": (
        ("sequence", "Sequence number", quoted),
        ("forward_thread", "Fwd thread id", quoted),
        ("input_dims", "Input Dims", recorded),
        ("input_types", "Input type", recorded),
        ("concrete_inputs", "Concrete Inputs", recorded),
        ("call_stack", "Call stack", quoted),
    ),
    "frames": (("call_line", CALL_LINE, quoted), ("begun", BEGUN, quoted)),
    "device_ops": (
        ("device", "device", quoted),
        ("stream", "stream", quoted),
        ("bytes", "bytes", quoted),
        ("grid", "grid", recorded),
        ("block", "block", recorded),
        ("registers", "registers per thread", quoted),
        ("shared_memory", "shared memory", quoted),
        ("occupancy_pct", "est. achieved occupancy %", quoted),
        ("graph", "graph id", quoted),
        ("collective", "Collective name", quoted),
        ("process_group", "Process Group Name", quoted),
        ("dtype", "dtype", quoted),
        ("message_elements", "In msg nelems", quoted),
        ("group_size", "Group size", quoted),
    ),
    "device_waits": (
        ("device", "device", quoted),
        ("stream", "stream", quoted),
        ("wait_on_stream", "wait_on_stream", quoted),
        ("wait_on_correlation", "wait_on_cuda_event_record_corr_id", quoted),
    ),
    "xla_ops": (
        ("module", "hlo_module", quoted),
        ("program", "program_id", quoted),
        ("run", "run_id", quoted),
        ("op", "hlo_op", quoted),
        ("category", "hlo_category", quoted),
        ("scope", "tf_op", quoted),
        ("flops", "flops", quoted),
        ("bytes_accessed", "bytes_accessed", quoted),
        ("source", "source", quoted),
        ("replica_groups", "replica_groups", quoted),
    ),
    "nodes": (
        ("node", "node", quoted),
        ("op", "op", quoted),
        ("inputs", "inputs", quoted),
        ("placement", "placement", quoted),
        *((column, argument, quoted) for column, argument in NODE_TIMES),
    ),
}
"""Table -> (column, argument, how its texts are written). Numbers are numbers."""

_DIRECTIONS = {t.Direction.H2D: "HtoD", t.Direction.D2H: "DtoH", t.Direction.D2D: "DtoD", t.Direction.P2P: "PtoP",
               t.Direction.H2H: "HtoH"}  # fmt: skip


def member(key: str, values: npt.NDArray[Any], strings: Sequence[str], write: Text | None) -> pl.Series | None:
    """``,"key":value`` per row, null where absent; ``write`` where the values are dictionary codes."""
    before = f",{quoted(key)}:"
    return numbers(values, before=before) if write is None else texts(values, strings, write, before=before)


class Members:
    """The arguments of a trace's slices, for stretches of them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.rows = {name: _in_order(getattr(trace, name).slice) for name in (*COLUMNS, "step_marks")}
        """Per table its rows in the order of the slices, and those slices."""
        self.launch = _stated_launches(trace)

    def of(self, low: int, high: int) -> list[pl.Series | None]:
        """What stands in ``args`` of the slices ``low`` to ``high``, each part beginning with a comma."""
        slices = self.trace.slices
        parts = [
            member("External id", slices.external_id[low:high], (), None),
            member("correlation", slices.correlation[low:high], (), None),
            member(LAUNCH, self.launch[low:high], (), None) if len(self.launch) else None,
        ]
        for name, (rows, of) in self.rows.items():
            begin, end = np.searchsorted(of, (low, high))
            if begin < end:
                values = self._of_table(name, rows[begin:end])
                place = np.full(high - low, end - begin, np.uint32)
                place[of[begin:end] - low] = np.arange(end - begin, dtype=np.uint32)
                parts.append(values.append(pl.Series([None], dtype=pl.String)).gather(place))
        return parts

    def _of_table(self, name: str, rows: t.Rows) -> pl.Series:
        table, strings = getattr(self.trace, name), self.trace.strings
        if name == "step_marks":
            words = [f',"{MARKER}":"{source.name.lower()}"' for source in t.MarkerSource]
            return joined(member("step_num", table.number[rows], (), None), labels(table.source[rows], words))
        parts = [
            member(key, getattr(table, column)[rows], strings, write if meta["text"] else None)
            for column, key, write in COLUMNS[name]
            for meta in (type(table).__dataclass_fields__[column].metadata,)
        ]
        if name == "device_ops":
            parts += self._copies(rows)
        return joined(*parts)

    def _copies(self, rows: t.Rows) -> list[pl.Series]:
        """Direction of copies, and the memory at their ends where the name does not tell."""
        ops, strings = self.trace.device_ops, self.trace.strings
        ways = [f',"direction":"{_DIRECTIONS[way]}"' if way in _DIRECTIONS else None for way in t.Direction]
        names = self.trace.slices.name[ops.slice[rows]].astype(np.int64)
        ends = ops.source_memory[rows].astype(np.int64) * len(t.MemoryKind) + ops.target_memory[rows]
        used, of = np.unique(names * len(t.MemoryKind) ** 2 + ends, return_inverse=True)
        told = [_memory_by_name(strings[code // len(t.MemoryKind) ** 2]) for code in used.tolist()]
        memory = np.where(np.array(told)[of] == ends, 0, ends)
        words = [
            f',"{MEMORY}":"({source.name.lower()} -> {target.name.lower()})"'
            for source in t.MemoryKind
            for target in t.MemoryKind
        ]
        return [labels(ops.direction[rows], ways), labels(memory, [None, *words[1:]])]


def _memory_by_name(name: str) -> int:
    source, target = copy_memory(name)
    return source * len(t.MemoryKind) + target


def _in_order(of: t.I32) -> tuple[t.Rows, t.I32]:
    order = np.argsort(of, kind="stable")
    return order, of[order]


def _told(launches: t.Launches) -> t.Bools:
    """Launches that no correlation id tells."""
    return np.isin(launches.basis, (t.LaunchBasis.EXECUTION, t.LaunchBasis.NODE))


def launch_numbers(trace: Trace) -> t.I64:
    """Per launch the number that arrows draw it with: the ops' correlation id, else one that no slice has, which also
    says (modulo ``BASES``) how the two were matched."""
    launches, correlation = trace.launches, trace.slices.correlation
    recorded = correlation[launches.op]
    free = max(0, int(correlation.max(initial=0))) // BASES + 1
    own = (free + launches.call.astype(np.int64)) * BASES + launches.basis
    return np.where((recorded == t.NULL) | _told(launches), own, recorded)


def _stated_launches(trace: Trace) -> t.I64:
    """The number that a call shares with what it launched, where no correlation id tells; empty for none."""
    launches, told = trace.launches, _told(trace.launches)
    if not told.any():
        return np.empty(0, np.int64)
    stated = np.full(len(trace.slices), t.NULL, np.int64)
    ids = launch_numbers(trace)[told]
    stated[launches.op[told]] = ids
    stated[launches.call[told]] = ids
    return stated
