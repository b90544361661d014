"""One rank's collectives in columns: what exchanged data with whom, when, how much, and in which step.

What a collective is has several signals, tried from the one that says most: the recorded argument or opcode, the range
around its launch (a kernel called ``SendRecv`` may be an all-to-all), the kernel's name. On the host, a range of a
library that communicates there (gloo, MPI, UCC) is one.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.exchange.groups import Group, groups_of
from stepscope.analysis.exchange.halves import joined
from stepscope.analysis.exchange.messages import Message, recorded_message
from stepscope.analysis.limits import COLLECTIVES_KEPT
from stepscope.analysis.steps import Markers
from stepscope.names import kernels
from stepscope.names.collectives import (
    Collective,
    called,
    host_collective,
    is_dispatch,
    message_bytes,
    tensorflow_collective,
)
from stepscope.names.parallelism import carries_no_gradients
from stepscope.names.remembered import remembered
from stepscope.record import record
from stepscope.trace.codes import among, distinct, mapped
from stepscope.trace.forest import on_host_threads
from stepscope.trace.tables import I32, I64, NULL, Bools, Kind, Rows
from stepscope.trace.trace import Trace

KINDS = tuple(Collective)
HOST = -1
"""Device number of what the host carried out itself."""
_DEPTH = 64
_OF_ALL = ("groups", "left_out", "width")


@record
class Collectives:
    """One value per collective of one rank, by device and start; times from the trace's origin."""

    device: I32
    group: I32
    """Index into ``groups``."""
    kind: I32
    """Index into ``KINDS``."""
    step: I32
    """Index of the step that launched it, -1 for none."""
    start: I64
    end: I64
    bytes: I64
    """Bytes that this rank puts in."""
    element: I64
    """Bytes of an element, NULL where its type is not recorded."""
    other: Bools
    """Whether names around its launch, or that of its group, say that it carries no gradients."""
    groups: tuple[Group, ...]
    left_out: int = 0
    """Later collectives that are not kept."""
    width: int | None = None
    """Bytes of an element in most of what is reduced; None where types are not recorded."""

    def __len__(self) -> int:
        return len(self.start)

    def where(self, chosen: Bools) -> Collectives:
        """The chosen ones."""
        columns = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name not in _OF_ALL}
        return Collectives(**columns, **{name: getattr(self, name) for name in _OF_ALL})


def collectives_of(
    trace: Trace, activities: list[DeviceActivity], accounts: list[Account], markers: Markers
) -> Collectives:
    """Every collective of a trace; of very many those of the first whole steps (``COLLECTIVES_KEPT``)."""
    booked = {account.rows.device: account for account in accounts}
    parts = [_on_device(trace, activity, booked[activity.device], markers) for activity in activities]
    parts.append(_on_host(trace, markers))
    names = list(dict.fromkeys(group for _, groups in parts for group in groups))
    numbers = {group: at for at, group in enumerate(names)}
    group = [numbers[one] for _, groups in parts for one in groups]
    table = {name: np.concatenate([columns[name] for columns, _ in parts]) for name in parts[0][0]}
    collectives = Collectives(
        device=table["device"].astype(np.int32),
        group=np.array(group, np.int32),
        kind=table["kind"].astype(np.int32),
        step=table["step"].astype(np.int32),
        start=table["start"],
        end=table["end"],
        bytes=table["bytes"],
        element=table["element"],
        other=table["other"].astype(np.bool_),
        groups=tuple(_sized(names, np.array(group, np.int64), table["ranks"])),
        width=_width(trace),
    )
    return _kept(collectives)


def _sized(groups: list[Group], of: I64, ranks: I64) -> list[Group]:
    """Groups whose size is not recorded have the one that the sizes of their messages tell, where all tell one."""
    sized = []
    for number, group in enumerate(groups):
        told = distinct(ranks[(of == number) & (ranks != NULL)]) if group.size is None else []
        sized.append(replace(group, size=told[0]) if len(told) == 1 else group)
    return sized


def _kept(collectives: Collectives) -> Collectives:
    """No more than so many: every rank must keep the same, so those of whole steps from the first."""
    if len(collectives) <= COLLECTIVES_KEPT:
        return collectives
    per_step = np.bincount(collectives.step + 1)
    last = int(np.searchsorted(np.cumsum(per_step), COLLECTIVES_KEPT, "right"))
    kept = collectives.where(collectives.step + 1 < last)
    columns = {f.name: getattr(kept, f.name) for f in fields(kept)}
    return Collectives(**(columns | {"left_out": len(collectives) - len(kept)}))


_Part = tuple[dict[str, I64], list[Group]]


def _on_device(trace: Trace, activity: DeviceActivity, account: Account, markers: Markers) -> _Part:
    at = np.flatnonzero(activity.category == Category.COLLECTIVE.code)
    at = at[np.argsort(activity.start[at], kind="stable")]
    begins, end = joined(trace, activity.slice[at], activity.end[at])
    at, end = at[begins], end[begins]
    rows, calls, slices = activity.row[at], activity.call[at], activity.slice[at]
    ops = trace.device_ops
    dispatch = _dispatches(trace, calls)
    messages = _messages(trace, ops.message_elements[rows], ops.dtype[rows], dispatch)
    kind, _ = _kinds(trace, slices, ops.collective[rows], dispatch)
    columns = {
        "device": np.full(at.size, activity.device, np.int64),
        "kind": kind,
        "step": _steps(markers, account, activity, at),
        "start": activity.start[at],
        "end": end,
        "other": _carries_other(trace, ops.process_group[rows], calls).astype(np.int64),
        **messages,
    }
    return columns, groups_of(trace, activity.device, rows, slices)


def _on_host(trace: Trace, markers: Markers) -> _Part:
    """What libraries carry out on host threads; their ranges carry neither group nor size, the dispatcher's ops do."""
    slices = trace.slices
    # Ops of TensorFlow hand over to kernels where there is a device, which tell more.
    told = (Kind.ANNOTATION,) if len(trace.device_ops) else (Kind.ANNOTATION, Kind.HOST_OP)
    on_host = among(slices.kind, told) & on_host_threads(trace)
    rows = np.flatnonzero(on_host)
    kinds = mapped(slices.name[rows], trace.strings, _host_kind, np.int64)
    rows, kinds = rows[kinds >= 0], kinds[kinds >= 0]
    order = np.argsort(slices.start_ns[rows], kind="stable")
    rows, kinds = rows[order], kinds[order]
    start = slices.start_ns[rows]
    step = np.searchsorted(markers.start, start, "right") - 1
    step[(step < 0) | (start >= markers.end[step])] = -1
    columns = {
        "device": np.full(rows.size, HOST, np.int64),
        "kind": kinds,
        "step": step.astype(np.int64),
        "start": start,
        "end": start + slices.dur_ns[rows],
        "other": np.zeros(rows.size, np.int64),
        **_host_messages(trace, rows, kinds),
    }
    names = [trace.name_of(row) for row in rows.tolist()]
    libraries = ["TensorFlow" if tensorflow_collective(name) else name.split(":")[0] for name in names]
    return columns, [_named(trace, library) for library in libraries]


def _named(trace: Trace, library: str) -> Group:
    """The group of a library that does not name it: all ranks, where no other group was made."""
    world, made = trace.info.world_size, trace.info.process_groups
    alone = len(made) < 2 and world is not None
    return Group(library, tuple(range(world)) if alone and world is not None else None, world if alone else None)


def _host_kind(name: str) -> int:
    kind = host_collective(name) or tensorflow_collective(name)
    return -1 if kind is None else KINDS.index(kind)


def _host_messages(trace: Trace, ranges: Rows, kinds: I64) -> dict[str, I64]:
    """Messages: those of the range itself, else of the dispatcher's op, whose k-th of a kind it carries out."""
    messages = [None if row < 0 else recorded_message(trace, row) for row in _host_op_rows(trace)[ranges].tolist()]
    ops, names = trace.host_ops, trace.slices.name
    is_op = mapped(names[ops.slice], trace.strings, lambda name: name.startswith("c10d::"), np.bool_)
    at = np.flatnonzero(is_op & (ops.input_dims >= 0))
    at = at[np.argsort(trace.slices.start_ns[ops.slice[at]], kind="stable")]
    kind_of = [called(trace.name_of(int(ops.slice[row]))) for row in at.tolist()]
    for kind in distinct(kinds):
        rows = [row for row, one in zip(at.tolist(), kind_of, strict=True) if one == KINDS[kind]]
        mine = np.flatnonzero(kinds == kind).tolist()
        if len(rows) == len(mine) and all(messages[one] is None for one in mine):
            for one, row in zip(mine, rows, strict=True):
                messages[one] = recorded_message(trace, row)
    return _columns(messages)


def _host_op_rows(trace: Trace) -> I32:
    """Per slice its row of the host ops, -1 for none."""
    row_of = np.full(len(trace.slices), -1, np.int32)
    row_of[trace.host_ops.slice] = np.arange(len(trace.host_ops), dtype=np.int32)
    return row_of


def _columns(messages: list[Message | None]) -> dict[str, I64]:
    known = {"bytes": [NULL if one is None else one.bytes for one in messages]}
    known["element"] = [NULL if one is None else one.element for one in messages]
    known["ranks"] = [NULL if one is None or one.ranks is None else one.ranks for one in messages]
    return {name: np.array(values, np.int64) for name, values in known.items()}


def _steps(markers: Markers, account: Account, activity: DeviceActivity, at: I64) -> I64:
    """The step whose marker holds the launch; without a launch, the one in whose window the op ends."""
    launch = activity.launch[at]
    by_launch = np.searchsorted(markers.start, launch, "right") - 1
    row = np.clip(np.searchsorted(account.rows.bounds, activity.end[at], "left") - 1, 0, len(account.rows.steps) - 1)
    of_row = np.array([-1 if step is None else step for step in account.rows.steps], np.int64)
    by_time = of_row[row]
    known = (launch != NULL) & (not markers.on_device)
    early = activity.before_profile[at]
    return np.where(early, -1, np.where(known, by_launch, by_time))


def _dispatches(trace: Trace, calls: I32) -> list[I64]:
    """Per depth around each launch, innermost first, the slices that make a collective (-1 elsewhere)."""
    slices = trace.slices
    dispatches, current = [], calls.astype(np.int64)
    for _ in range(_DEPTH):
        current = np.where(current >= 0, slices.parent[current], -1)
        known = current >= 0
        if not known.any():
            break
        named = np.zeros(current.size, np.bool_)
        named[known] = mapped(slices.name[current[known]], trace.strings, is_dispatch, np.bool_)
        if named.any():
            dispatches.append(np.where(named, current, -1))
    return dispatches


def _carries_other(trace: Trace, groups: I32, calls: I32) -> Bools:
    """Which of them carry parts of layers or metrics, as far as names say so."""
    said = {str(group.get("pg_name")): str(group.get("pg_desc") or "") for group in trace.info.process_groups}
    others = mapped(groups, trace.strings, lambda name: carries_no_gradients(said.get(name, name)), np.bool_)
    others &= groups >= 0
    current = calls.astype(np.int64)
    for _ in range(_DEPTH):
        known = current >= 0
        if not known.any():
            break
        others[known] |= mapped(trace.slices.name[current[known]], trace.strings, carries_no_gradients, np.bool_)
        current = np.where(known, trace.slices.parent[current], -1)
    return others


def kinds_of(trace: Trace, activity: DeviceActivity) -> tuple[I64, Bools]:
    """Per op of a device, its index into ``KINDS`` (-1: exchanges nothing), and whether more than its name says so."""
    at = np.flatnonzero(activity.category == Category.COLLECTIVE.code)
    kinds, told = np.full(len(activity), -1, np.int64), np.zeros(len(activity), np.bool_)
    recorded = trace.device_ops.collective[activity.row[at]]
    kinds[at], told[at] = _kinds(trace, activity.slice[at], recorded, _dispatches(trace, activity.call[at]))
    return kinds, told


def _kinds(trace: Trace, slices: I32, recorded: I32, dispatch: list[I64]) -> tuple[I64, Bools]:
    kinds = np.full(slices.size, -1, np.int64)
    signals = [recorded, *(np.where(rows >= 0, trace.slices.name[rows], -1) for rows in dispatch)]
    for codes in signals:
        open_ = (kinds < 0) & (codes >= 0)
        if open_.any():
            kinds[open_] = mapped(codes[open_].astype(np.int32), trace.strings, _called, np.int64)
    told = kinds >= 0
    if not told.all():
        kinds[~told] = mapped(trace.slices.name[slices[~told]], trace.strings, _kernel_kind, np.int64)
    return kinds, told


@remembered
def _called(name: str) -> int:
    kind = called(name)
    return -1 if kind is None else KINDS.index(kind)


@remembered
def _kernel_kind(name: str) -> int:
    return KINDS.index(kernels.describe(name).collective or Collective.GENERIC)


def _messages(trace: Trace, elements: I64, dtype: I32, dispatch: list[I64]) -> dict[str, I64]:
    """Messages of device ops: by their own arguments, else by the ops around their launches, innermost first; how many
    ranks share them only an op tells that names its output too."""
    messages: list[Message | None] = [None] * elements.size
    for at in np.flatnonzero((elements != NULL) & (dtype >= 0)).tolist():
        kind = trace.strings[int(dtype[at])]
        size, element = message_bytes(int(elements[at]), kind), message_bytes(1, kind)
        messages[at] = Message(size, element, None) if size and element else None
    row_of = _host_op_rows(trace) if dispatch else np.empty(0, np.int32)
    for rows in dispatch:
        for at in np.flatnonzero(rows >= 0).tolist():
            own, row = messages[at], int(row_of[rows[at]])
            if row < 0 or (own is not None and own.ranks is not None):
                continue
            said = recorded_message(trace, row)
            messages[at] = said if own is None or said is None else replace(own, ranks=said.ranks)
            messages[at] = messages[at] or own
    return _columns(messages)


def _width(trace: Trace) -> int | None:
    """Bytes of an element, by what most elements that are reduced are made of."""
    ops = trace.device_ops
    counts: dict[int, int] = {}
    for row in np.flatnonzero((ops.message_elements != NULL) & (ops.dtype >= 0) & (ops.collective >= 0)).tolist():
        if called(trace.strings[int(ops.collective[row])]) in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER):
            counts[int(ops.dtype[row])] = counts.get(int(ops.dtype[row]), 0) + int(ops.message_elements[row])
    return message_bytes(1, trace.strings[max(counts, key=lambda code: counts[code])]) if counts else None
