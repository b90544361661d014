"""Who exchanges data in a collective: its process group, the devices that XLA lists, else the stream it ran on."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.names.replicas import replica_groups
from stepscope.record import record
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, NULL
from stepscope.trace.trace import Trace


@record
class Group:
    """The ranks that exchange data, as far as one rank's profile names them."""

    name: str
    ranks: Sequence[int] | None = None
    size: int | None = None


def size_of(group: Group, world: int | None) -> int | None:
    """How many ranks a group has: recorded, or as none has fewer than two, those of a job of two."""
    return 2 if group.size is None and world == 2 else group.size


def groups_of(trace: Trace, device: int, rows: I32, slices: I32) -> list[Group]:
    """The group of each collective of a device; ``rows`` of the device ops and their slices."""
    ops = trace.device_ops
    made = {str(group.get("pg_name")): group["ranks"] for group in trace.info.process_groups if "ranks" in group}
    compiled = _compiled(trace)
    known: dict[tuple[int, ...], Group] = {}
    groups = []
    for row, slice_ in zip(rows.tolist(), slices.tolist(), strict=True):
        size = int(ops.group_size[row])
        key = (int(ops.process_group[row]), size, *compiled.get(slice_, (-1, -1)), int(ops.stream[row]))
        if key[0] >= 0 or key[3] >= 0:
            key = (*key[:4], 0)
        if key not in known:
            known[key] = _group(trace, device, key, made)
        groups.append(known[key])
    return groups


def _group(trace: Trace, device: int, key: tuple[int, ...], made: dict[str, object]) -> Group:
    code, size, replicas, module, stream = key
    count = None if size == NULL else size
    if code >= 0:
        name = trace.strings[code]
        ranks = made.get(name)
        listed = isinstance(ranks, list) and all(type(rank) is int for rank in ranks) and len(ranks) > 0
        known = tuple(ranks) if listed and isinstance(ranks, list) else None
        return Group(name, known, count or (len(known) if known else None))
    if module >= 0:
        written = trace.strings[replicas] if replicas >= 0 else ""
        return Group(f"{trace.strings[module]} {written}{_part(trace, device, written)}".strip(), None, count)
    return Group(f"stream {stream}", None, count)


def _part(trace: Trace, device: int, written: str) -> str:
    """Which of several groups of devices is this device's. Where devices of other processes are listed too, nothing
    says which of them this one is: then it stays alone."""
    several = _several(trace)
    if written not in several:
        return ""
    own = several[written]
    if own is None:
        return f" of device {device} of rank {'?' if trace.info.rank is None else trace.info.rank}"
    return f" of devices {own.get(device, device)}"


@shared
def _compiled(trace: Trace) -> dict[int, tuple[int, int]]:
    """The replica groups and the module of each op of a compiled program, as codes, by its slice."""
    ops = trace.xla_ops
    return dict(
        zip(ops.slice.tolist(), zip(ops.replica_groups.tolist(), ops.module.tolist(), strict=True), strict=True)
    )


@shared
def _several(trace: Trace) -> dict[str, dict[int, str] | None]:
    """Of each text that lists several groups the devices of each device's own; None where some are of other
    processes."""
    here = {one.id for one in trace.info.devices}
    several: dict[str, dict[int, str] | None] = {}
    for code in {code for code in trace.xla_ops.replica_groups.tolist() if code >= 0}:
        groups = replica_groups(trace.strings[code]) or ()
        if len(groups) > 1:
            named = [(group, ", ".join(map(str, group))) for group in groups]
            own = {member: text for group, text in reversed(named) for member in group}
            several[trace.strings[code]] = own if here >= own.keys() else None
    return several
