"""Ops by type and by place: how often each ran, for how long, and what the device did for it.

An op is what a framework calls one: an op of PyTorch, a node of a TensorFlow graph, an instruction of a module that
XLA compiled. Counted are those that begin in the used steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.where import Locator, Where
from stepscope.names.tf_graph import parse_annotation
from stepscope.record import record
from stepscope.trace.codes import among, grouped, marked, used_codes
from stepscope.trace.forest import inherit, on_host_threads, summed, within_own_kind
from stepscope.trace.self_time import self_time_among
from stepscope.trace.tables import I32, I64, Bools, Kind, Rows
from stepscope.trace.trace import Trace

Windows = tuple[I64, I64]
"""Starts and ends of the used steps, in order."""


@record
class OpUse:
    """All calls of one type of op, or of one op from one place."""

    op: str
    """The type: ``aten::mul``, ``MatMul``, ``fusion``."""
    name: str | None
    """The node or instruction, where all calls are of one and it has a name of its own."""
    side: str
    """``device`` where the calls gave a device work or are its own, else ``host``."""
    count: int
    total_ns: int
    """Time in these ops on their own side; inside calls of the same type it counts once. The time of an op of the host
    that launches is the time launching took."""
    self_ns: int
    """The part of it in which no other op ran inside."""
    share: float
    """``self_ns`` of that of all ops of this side."""
    device_ops: int
    """What ran on devices because of these ops, however deep inside it was launched."""
    device_ns: int
    """Its time."""
    device_self_ns: int
    """Its time as far as no op further inside launched it: each device op counts for one op only."""
    launch_sized: bool | None
    """Whether what ran on devices took, on average, no longer than launching it does; None where nothing did or the
    cost of a launch is not known."""
    where: Where | None = None

    @property
    def mean_ns(self) -> float:
        """Time per call."""
        return self.total_ns / self.count


@record
class OpTable:
    """The ops of the used steps, by most device time and then by most time of their own."""

    by_type: tuple[OpUse, ...]
    by_place: tuple[OpUse, ...]
    launch_cost_ns: int | None
    device_ns: int
    """Time of what ran on devices because of these ops (or as one of them)."""
    outside_ns: int
    """Time of what was launched in the same steps outside any op, or by calls that were not recorded."""


@record
class FrameworkOps:
    """The ops of a trace's host threads: one value per op, in the order of its slices."""

    trace: Trace
    slice: Rows
    kind: I32
    """Number of the op's type in ``kinds``."""
    kinds: tuple[str, ...]
    node: I32
    """Code of the name of its node, -1 where it has none of its own."""

    @cached_property
    def innermost(self) -> I32:
        """Per slice, the number of the innermost op around it (or of itself), -1 for none."""
        numbers = np.full(len(self.trace.slices), -1, np.int32)
        numbers[self.slice] = np.arange(self.slice.size, dtype=np.int32)
        return inherit(numbers, self.trace.slices.parent)

    @cached_property
    def parent(self) -> I32:
        """Per op, the number of the op around it, -1 for none."""
        outer = self.trace.slices.parent[self.slice]
        return np.where(outer >= 0, self.innermost[outer], np.int32(-1)).astype(np.int32)

    @cached_property
    def self_ns(self) -> I64:
        """Per op, the time in which no other op runs inside it."""
        slices = self.trace.slices
        end = int((slices.start_ns + slices.dur_ns).max(initial=0))
        return self_time_among(slices, self.slice, int(slices.start_ns.min(initial=0)), end)


def host_ops(trace: Trace) -> FrameworkOps:
    """The ops of host threads. What the runtime of XLA and TensorFlow calls its own functions is none."""
    slices = trace.slices
    on_host = on_host_threads(trace)
    if len(trace.nodes):
        kept = among(slices.kind[trace.nodes.slice], (Kind.HOST_OP, Kind.RUNTIME_CALL))
        order = np.argsort(trace.nodes.slice[kept], kind="stable")
        rows = trace.nodes.slice[kept][order].astype(np.intp)
        op = trace.nodes.op[kept][order]
        return _typed(trace, rows, np.where(op >= 0, op, slices.name[rows]), trace.nodes.node[kept][order], str)
    rows = np.flatnonzero(on_host & (slices.kind == Kind.HOST_OP))
    if trace.info.format != "XPlane":
        return _typed(trace, rows, slices.name[rows], np.full(rows.size, -1, np.int32), str)
    names = trace.strings
    nodes = [c for c in used_codes(slices.name[rows], len(names)).tolist() if parse_annotation(names[c], "")[1]]
    rows = rows[among(slices.name[rows], nodes)]
    return _typed(trace, rows, slices.name[rows], slices.name[rows], lambda text: parse_annotation(text, "")[1] or text)


def _typed(trace: Trace, rows: Rows, text: I32, node: I32, type_of: Callable[[str], str]) -> FrameworkOps:
    """``text`` holds codes of what ``type_of`` tells an op's type from."""
    used = used_codes(text, len(trace.strings)).tolist()
    told = {code: type_of(trace.strings[code]) for code in used}
    number = {name: k for k, name in enumerate(dict.fromkeys(told.values()))}
    table = np.zeros(len(trace.strings) + 1, np.int32)
    table[used] = [number[told[code]] for code in used]
    return FrameworkOps(trace, rows, table[text], tuple(number), node.astype(np.int32))


@record
class _Calls:
    """Ops of host and device as they are summed: one value per call."""

    slice: Rows
    kind: I32
    node: I32
    on_device: Bools
    total: I64
    self_: I64
    device_ops: I64
    device: I64
    device_self: I64


def op_table(
    trace: Trace,
    activities: list[DeviceActivity],
    locator: Locator,
    windows: tuple[Windows, list[Windows]],
    launch_cost_ns: int | None,
) -> OpTable | None:
    """The ops of the used steps: of the host's ``windows``, and of each device's for what XLA compiled.

    ``launch_cost_ns`` is what a launch costs in this profile. None where no op was recorded.
    """
    ops = host_ops(trace)
    calls, outside = _host_calls(ops, activities, windows[0])
    compiled, kinds = _compiled_calls(trace, activities, windows[1], len(ops.kinds))
    calls = _joined(calls, compiled)
    if not calls.slice.size:
        return None
    names = (*ops.kinds, *kinds)
    places = grouped(calls.kind, calls.node, locator.group(calls.slice.astype(np.int32)))[1]
    return OpTable(
        tuple(_uses(trace, calls, names, calls.kind.astype(np.int64), launch_cost_ns)),
        tuple(_uses(trace, calls, names, places, launch_cost_ns, locator)),
        launch_cost_ns,
        int(calls.device_self.sum()),
        outside,
    )


def within(windows: Windows, times: I64) -> Bools:
    """Which instants lie in one of the windows, ends excluded."""
    starts, ends = windows
    if not len(starts):
        return np.zeros(times.size, np.bool_)
    at = np.searchsorted(starts, times, "right") - 1
    inside: Bools = (at >= 0) & (times < ends[np.maximum(at, 0)])
    return inside


def _host_calls(ops: FrameworkOps, activities: list[DeviceActivity], window: Windows) -> tuple[_Calls, int]:
    """The calls, and the time of device ops launched in the same steps that belong to none of them."""
    trace, slices = ops.trace, ops.trace.slices
    own, count = np.zeros(ops.slice.size, np.int64), np.zeros(ops.slice.size, np.int64)
    outside = 0
    compiled = marked(trace.xla_ops.slice[trace.xla_ops.op >= 0], len(slices))
    for activity in activities:
        rows = np.flatnonzero(activity.launched & ~compiled[activity.slice])
        op = ops.innermost[activity.call[rows]]
        duration = (activity.end - activity.start)[rows]
        np.add.at(own, op[op >= 0], duration[op >= 0])
        np.add.at(count, op[op >= 0], 1)
        bare = (op < 0) & within(window, activity.launch[rows])
        outside += int(duration[bare].sum())
    rows = np.flatnonzero(within(window, slices.start_ns[ops.slice]))
    outermost = ~within_own_kind(ops.kind, ops.parent)[rows]
    device_ops = summed(count, ops.parent)[rows]
    calls = _Calls(
        slice=ops.slice[rows],
        kind=ops.kind[rows],
        node=ops.node[rows],
        on_device=(device_ops > 0) | (slices.kind[ops.slice[rows]] == Kind.RUNTIME_CALL),
        total=slices.dur_ns[ops.slice[rows]] * outermost,
        self_=ops.self_ns[rows],
        device_ops=device_ops * outermost,
        device=summed(own, ops.parent)[rows] * outermost,
        device_self=own[rows],
    )
    return calls, outside


def _compiled_calls(
    trace: Trace, activities: list[DeviceActivity], windows: list[Windows], first: int
) -> tuple[_Calls, tuple[str, ...]]:
    """Instructions that ran on devices; their types are numbered from ``first``."""
    inside = [a.slice[within(window, a.start)] for a, window in zip(activities, windows, strict=True)]
    slices = np.concatenate([np.empty(0, np.int32), *inside]).astype(np.intp)
    told = compiled_ops(trace, slices)[1]
    duration = trace.slices.dur_ns[told.slice]
    made = _Calls(
        slice=told.slice,
        kind=told.kind + np.int32(first),
        node=told.node,
        on_device=np.ones(duration.size, np.bool_),
        total=duration,
        self_=duration,
        device_ops=np.ones(duration.size, np.int64),
        device=duration,
        device_self=duration,
    )
    return made, told.kinds


def compiled_ops(trace: Trace, slices: Rows) -> tuple[Rows, FrameworkOps]:
    """Which of some slices are instructions that XLA compiled, and these as ops: by category, else by opcode."""
    compiled = trace.xla_ops
    row_of = np.full(len(trace.slices), -1, np.int64)
    row_of[compiled.slice] = np.arange(len(compiled))
    kept = np.flatnonzero(row_of[slices] >= 0)
    kept = kept[compiled.op[row_of[slices[kept]]] >= 0]
    row = row_of[slices[kept]]
    text = np.where(compiled.category[row] >= 0, compiled.category[row], compiled.op[row])
    return kept, _typed(trace, slices[kept], text, compiled.op[row], _opcode)


def _opcode(instruction: str) -> str:
    """``fusion.12`` is a ``fusion``."""
    return instruction.rstrip("0123456789").removesuffix(".") if "." in instruction else instruction


def _joined(a: _Calls, b: _Calls) -> _Calls:
    return _Calls(*(np.concatenate((getattr(a, name), getattr(b, name))) for name in _Calls.__dataclass_fields__))


def _uses(
    trace: Trace,
    calls: _Calls,
    kinds: tuple[str, ...],
    group: I64 | Rows,
    cost: int | None,
    locator: Locator | None = None,
) -> list[OpUse]:
    """One use per group and side; with a locator also where the group's first call is."""
    first, dense = grouped(group, calls.on_device)
    columns = (calls.total, calls.self_, calls.device_ops, calls.device, calls.device_self)
    sums = np.zeros((5, first.size), np.int64)
    for into, column in zip(sums, columns, strict=True):
        np.add.at(into, dense, column)
    count = np.bincount(dense)
    one_node = np.full(first.size, True)
    np.logical_and.at(one_node, dense, calls.node == calls.node[first][dense])
    of_side = [max(int(calls.self_[calls.on_device == side].sum()), 1) for side in (False, True)]
    wheres = locator.places_of(calls.slice[first].astype(np.int32)) if locator else [None] * first.size
    uses = []
    for g, at in enumerate(first.tolist()):
        total, own, launched, device, device_self = sums[:, g].tolist()
        node, side = int(calls.node[at]), bool(calls.on_device[at])
        uses.append(
            OpUse(
                op=kinds[calls.kind[at]],
                name=trace.strings[node].partition(":")[0] if node >= 0 and one_node[g] else None,
                side="device" if side else "host",
                count=int(count[g]),
                total_ns=total,
                self_ns=own,
                share=own / of_side[side],
                device_ops=launched,
                device_ns=device,
                device_self_ns=device_self,
                launch_sized=None if cost is None or not launched else device <= cost * launched,
                where=wheres[g],
            )
        )
    return sorted(uses, key=lambda use: (-use.device_self_ns, -use.self_ns, use.op))
