"""Who exchanges data in a collective: its process group, the devices that XLA lists, else the stream it ran on."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.names.replicas import replica_groups
from stepscope.record import record
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
    replicas = dict(zip(trace.xla_ops.slice.tolist(), trace.xla_ops.replica_groups.tolist(), strict=True))
    compiled = dict(zip(trace.xla_ops.slice.tolist(), trace.xla_ops.module.tolist(), strict=True))
    known: dict[tuple[int, ...], Group] = {}
    found = []
    for row, slice_ in zip(rows.tolist(), slices.tolist(), strict=True):
        size = int(ops.group_size[row])
        made_of = replicas.get(slice_, -1), compiled.get(slice_, -1)
        key = (int(ops.process_group[row]), size, *made_of, int(ops.stream[row]))
        if key[0] >= 0 or key[3] >= 0:
            key = (*key[:4], 0)
        if key not in known:
            known[key] = _group(trace, device, key, made)
        found.append(known[key])
    return found


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
    groups = replica_groups(written) or ()
    if len(groups) < 2:
        return ""
    here = {one.id for one in trace.info.devices}
    if here >= {member for group in groups for member in group}:
        own = next((group for group in groups if device in group), (device,))
        return f" of devices {', '.join(map(str, own))}"
    return f" of device {device} of rank {'?' if trace.info.rank is None else trace.info.rank}"
