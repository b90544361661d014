from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import FINDING_NS
from stepscope.analysis.offload import Transfer, in_flight_ns, transfers
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import SHOWN, booked, slices_as_evidence, timed
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import OFFLOADED, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.trace.tables import Direction
from stepscope.units import format_bytes, format_ns, format_share
from stepscope.whatif.change import Change
from stepscope.whatif.changes import beside_the_rest, never_full, without_ops

RULE = Rule(
    id="host_offload",
    scope="device",
    pages=("memory",),
    tells=(Category.HOST_MEMORY,),
    finds="The device waits for data that its program keeps in the host's memory (XLA).",
    statement="""\
The accounting books time to `host_memory`: ends of asynchronous copies between host memory and the device's own, while
nothing else ran. Per direction the bytes, the rate and the waits are told. What would have to be kept on the device
instead is weighed against what is free there when most is in use; predicted is a step without the transfers of what
fits. Where nothing fits, or nothing else is known, it is a step in which transfers run beside everything else: it takes
no less than the longest direction.""",
    needs="The device's ops with their memory spaces (XLA).",
    cure="A step without the transfers of what fits on the device; else one whose transfers run beside the rest.",
    example="Activations that a remat policy keeps in the host's memory, on a device with room for them.",
)

_WAYS = {
    Direction.H2D: "from host memory to the device",
    Direction.D2H: "from the device to host memory",
    Direction.UNKNOWN: "between host memory and another",
}
_MEMORIES = {"pinned": "host memory S(5)", "device": "device memory", "on_chip": "memory on the chip S(1)"}
_LISTED = 6


def find(facts: Facts) -> list[Finding]:
    """At most one finding per device."""
    findings = []
    for activity, account in facts.devices:
        cost = booked(facts, account, Category.HOST_MEMORY)
        moved = transfers(facts, activity, account) if cost >= FINDING_NS else []
        if moved:
            findings.append(_finding(facts, activity, account, moved))
    return findings


def _finding(facts: Facts, activity: DeviceActivity, account: Account, moved: list[Transfer]) -> Finding:
    cost, free = booked(facts, account, Category.HOST_MEMORY), _free_bytes(facts, activity.device)
    kept = _that_fit(facts, moved, free)
    change, saving = _kept(facts, activity, kept) if kept else _overlapped(facts, activity, account, moved)
    return Finding(
        rule=RULE.id,
        device=activity.device,
        title="The device waits for data in the host's memory",
        cost_ns_per_step=cost,
        saving_ns_per_step=facts.per_step(saving),
        change=change,
        why=_why(facts, activity, account, moved) + _room(facts, moved, kept, free),
        fix=paragraphs(remedy(OFFLOADED, facts.workload)),
        confidence="medium",
        where=tuple(_place(facts, one) for one in moved if facts.per_step(one.waited_ns))[:SHOWN],
        evidence=slices_as_evidence(facts, [s for one in moved for s in one.slices], device=activity.device),
    )


def _place(facts: Facts, one: Transfer) -> Where:
    """An op with the array that it moves, and the line that asked for it where the program says."""
    ops = facts.trace.xla_ops
    row = int(np.searchsorted(ops.slice, one.slices[0]))
    known = row < len(ops) and int(ops.slice[row]) == one.slices[0]
    place = facts.programs.place(int(ops.program[row]), int(ops.module[row]), int(ops.op[row])) if known else None
    array = str(place.one.shape.first) if place else "" if one.bytes is None else format_bytes(one.bytes)
    where = replace(facts.locator.where(one.slices[0]), op=f"{one.name} {array}".rstrip())
    return timed(facts, where, one.waited_ns)


def _why(facts: Facts, activity: DeviceActivity, account: Account, moved: list[Transfer]) -> str:
    cost = booked(facts, account, Category.HOST_MEMORY)
    step = facts.mean_step_ns or 1
    text = (
        f"For {format_ns(cost)} per step ({format_share(cost / step)}) the device does nothing but wait until data has "
        "come from the host's memory or gone there."
    )
    for way, words in _WAYS.items():
        mine = [one for one in moved if one.direction is way]
        if mine:
            text += f" {_direction(facts, activity, account, mine)} {words}: {_listed(facts, mine)}."
    return text


def _direction(facts: Facts, activity: DeviceActivity, account: Account, mine: list[Transfer]) -> str:
    """Bytes per step and rate of one direction."""
    if any(one.bytes is None for one in mine):
        return "Data of sizes that were not recorded go"
    moved = sum((one.bytes or 0) * one.count for one in mine)
    flying = in_flight_ns(facts, activity, account, mine)
    rate = f" at {moved / flying:.1f} GB/s" if flying else ""
    return f"{format_bytes(facts.per_step(moved))} per step go{rate}"


def _listed(facts: Facts, mine: list[Transfer]) -> str:
    told = []
    for one in mine[:_LISTED]:
        size = "" if one.bytes is None else f"{format_bytes(one.bytes)}, "
        told.append(f"`{one.name}` ({size}{_ends(one)}, waited for {format_ns(facts.per_step(one.waited_ns))})")
    more = f" and {len(mine) - _LISTED} more" if len(mine) > _LISTED else ""
    return ", ".join(told) + more


def _ends(one: Transfer) -> str:
    ends = [_MEMORIES.get(end.name.lower(), "memory that is not recorded") for end in (one.source, one.target)]
    return " → ".join(ends)


def _free_bytes(facts: Facts, device: int) -> int | None:
    """What is free on a device when most is in use."""
    room = [use.headroom for use in facts.memory if use.pool.device == device and use.headroom is not None]
    return min((one.free_bytes for one in room), default=None)


def _that_fit(facts: Facts, moved: list[Transfer], free: int | None) -> list[Transfer]:
    """The transfers that go if as much as fits is kept on the device; all where what is free is not known. What comes
    in and goes out again is one array, so that each direction has the same room."""
    if free is None or any(one.bytes is None for one in moved):
        return moved
    kept = []
    for way in _WAYS:
        left = free
        for one in sorted((m for m in moved if m.direction is way), key=lambda one: -one.waited_ns / (one.bytes or 1)):
            size = _held(facts, one)
            if size <= left:
                left -= size
                kept.append(one)
    return kept


def _held(facts: Facts, one: Transfer) -> int:
    """What an op's data take on the device: one array per execution in a step."""
    return (one.bytes or 0) * max(round(one.count / max(len(facts.used), 1)), 1)


def _room(facts: Facts, moved: list[Transfer], kept: list[Transfer], free: int | None) -> str:
    """How much memory it takes to keep the data on the device, and what of it there is."""
    if any(one.bytes is None for one in moved):
        return " How much memory they would take on the device is not recorded."
    needed = max(sum(_held(facts, one) for one in moved if one.direction is way) for way in _WAYS)
    text = f" To keep all of it on the device takes {format_bytes(needed)}; "
    if free is None:
        return text + "what is free there is not recorded: the saving is that of keeping all of it."
    text += f"{format_bytes(free)} are free when most is in use"
    if len(kept) == len(moved):
        return f"{text}: it fits."
    if not kept:
        return f"{text}: none of it fits. The saving is that of transfers that run beside everything else."
    names = ", ".join(f"`{one.name}`" for one in kept[:_LISTED])
    size = max(sum(_held(facts, one) for one in kept if one.direction is way) for way in _WAYS)
    return f"{text}: {format_bytes(size)} of it fit. The saving is that without {names}."


def _kept(facts: Facts, activity: DeviceActivity, kept: list[Transfer]) -> tuple[Change | None, int]:
    ops = np.sort(np.concatenate([one.ops for one in kept]))
    return without_ops(facts, activity.device, ops) | never_full(facts), sum(one.waited_ns for one in kept)


def _overlapped(
    facts: Facts, activity: DeviceActivity, account: Account, moved: list[Transfer]
) -> tuple[Change | None, int]:
    """Transfers that begin early enough run beside the rest; a step takes no less than the longer direction."""
    ways = [[one for one in moved if one.direction is way] for way in _WAYS]
    flying = [in_flight_ns(facts, activity, account, mine) for mine in ways if mine]
    if any(ns is None for ns in flying):
        return None, 0
    floor = max(ns or 0 for ns in flying)
    waited = sum(one.waited_ns for one in moved)
    ops = np.sort(np.concatenate([one.ops for one in moved]))
    saving = max(min(waited, facts.used_ns - floor), 0)
    change = without_ops(facts, activity.device, ops) | never_full(facts)
    return beside_the_rest(change, facts.per_step(floor)), saving
