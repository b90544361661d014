from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.exchange.collectives import KINDS
from stepscope.analysis.exchange.exposed import EXCHANGES, KINDS_OF, Exchange, Exposed, exchange_of, exposed_of
from stepscope.analysis.exchange.late import LateDevice, late_device
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import FINDING_NS, FINDING_SHARE
from stepscope.analysis.places import find_places
from stepscope.analysis.workload import CPU
from stepscope.diagnosis.evidence import SHOWN, placed, shares, slices_as_evidence
from stepscope.diagnosis.exchange_remedies import (
    BUFFERS,
    GRADIENTS,
    LATE_RANKS,
    ONE_PROCESSOR,
    PARTS_OF_LAYERS,
    REDUCED,
    cures,
    gradients,
    joins,
    reduced,
)
from stepscope.diagnosis.exchange_words import Sent, chosen_of, sent
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, TRAINS, Remedies, remedy
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.names.parallelism import Layout, layouts
from stepscope.record import record
from stepscope.trace.codes import among, distinct, united, used_codes
from stepscope.trace.tables import NULL, Rows
from stepscope.trace.trace import Trace
from stepscope.units import format_mean, format_ns
from stepscope.whatif.changes import without_collectives

SMALL_COLLECTIVES: Final = 50
SMALL_COLLECTIVE_NS: Final = 200_000
LINK_USED_SHARE: Final = 0.1
MOSTLY_LATE: Final = 0.5

RULE = Rule(
    id="exposed_collective",
    scope="device",
    pages=("ranks", "kernels"),
    finds="The device does nothing but communicate with other devices.",
    statement="""\
The accounting books time to collectives that no kernel hides, told by what is exchanged (all-reduces, all-gathers and
reduce-scatters, all-to-alls, broadcasts, sends and receives, barriers), as each has cures of its own; what none of
several is worth alone (under `FINDING_SHARE` and `FINDING_NS`) is told together. The cure hides them behind compute, so
a step is predicted to take what it takes without them, and no less than the collectives themselves; broadcasts of
DistributedDataParallel's buffers need not be at all. No saving is given for barriers and for sends and receives, as
both wait for what other devices compute, nor in inference for what the next layer needs at once (all but all-to-alls,
beside which another half of the batch computes), nor where the exchange itself takes the whole step: then only fewer
bytes help; nor where the devices are one processor's, whose cores compute for another device meanwhile. Where devices
of the same profile take part, and one waits `MOSTLY_LATE` of that time or more for another, which comes last, that one
is named, and told first. What is exchanged is what the profile's own argument, the op or the range around the launch
say, else the kernel's name. One rank's profile does not tell waiting for a late rank from transfer: both are in the
collective. Where it uses its link at less than `LINK_USED_SHARE` of the peak, that is said first: ranks are late, or
each is too small (half of them under `SMALL_COLLECTIVE_NS`). Many small ones (`SMALL_COLLECTIVES` per step) are said to
be too many.""",
    limits=(
        Limit(
            "SMALL_COLLECTIVES",
            SMALL_COLLECTIVES,
            """\
This many collectives per step, half of them small, are too many: PyTorch's DDP makes one per 25 MB of gradients.""",
        ),
        Limit(
            "SMALL_COLLECTIVE_NS",
            SMALL_COLLECTIVE_NS,
            """\
A collective that takes less is small: one of DDP's 25 MB takes as long at 125 GB/s.""",
        ),
        Limit(
            "LINK_USED_SHARE",
            LINK_USED_SHARE,
            """\
Below this share of their link's peak collectives mostly wait, for late ranks or because each is too small: a choice,
under the 11 % that one link of 400 Gbit/s between machines is of 450 GB/s.""",
        ),
        Limit(
            "MOSTLY_LATE",
            MOSTLY_LATE,
            """\
From this share of its collectives' time on that a device waits for another of its profile, that one is what to look at:
half of that time is no exchange.""",
        ),
    ),
    shared_limits=("FINDING_SHARE", "FINDING_NS"),
    needs="Collectives of the device.",
    cure="A step whose collectives run behind compute, no shorter than they take together.",
    example="Gradients that are reduced after the backward pass, not during it.",
    holds_waiting=True,
    tried_for=("PyTorch", "JAX"),
)

_TITLES = {
    Exchange.REDUCING: "All-reduces",
    Exchange.SHARDS: "All-gathers and reduce-scatters",
    Exchange.ALL_TO_ALL: "All-to-alls",
    Exchange.BROADCAST: "Broadcasts",
    Exchange.POINT_TO_POINT: "Sends and receives",
    Exchange.BARRIER: "Barriers",
    Exchange.UNKNOWN: "Communication with other devices",
}
_UNTOLD = {
    Exchange.BARRIER: "without them devices wait for the late one at the next collective; time a run without them",
    Exchange.POINT_TO_POINT: "what arrives must first be computed by the device that sends it, and when that was the "
    "one that receives did not record; time a run with the fix",
}
"""Why the cure's gain is not told, by what is exchanged."""
_UNTOLD_IN_INFERENCE = dict.fromkeys(
    (Exchange.REDUCING, Exchange.SHARDS, Exchange.BROADCAST, Exchange.UNKNOWN),
    "in inference the next layer needs the result at once, so nothing hides it; what fewer devices or a faster "
    "exchange gain only a run with them tells",
)
_FULL = (
    "the exchange itself takes the whole step, so that hiding it gains nothing; sending fewer bytes does; "
    "time a run with the fix"
)
_SHARED = (
    "these devices are one processor's: while one waits here its cores compute for another; "
    "time the program on the accelerators it is meant for"
)
_WIDE = 4
"""Bytes of an element of 32 bits."""
_MOVES = frozenset({Exchange.REDUCING, Exchange.SHARDS, Exchange.ALL_TO_ALL, Exchange.BROADCAST})
"""What takes as long as its bytes do; sends also wait for what other devices compute, barriers for nothing else."""
_DEPTH = 64


@record
class _Talk:
    """What one device exchanges in some ways, and in which cure it is told."""

    device: int
    exchanges: tuple[Exchange, ...]
    ops: Rows
    cost: int
    near: frozenset[Layout]
    sent: Sent
    median_ns: int
    """Half of them take less."""

    @property
    def small(self) -> bool:
        """Whether half of them are over so soon that their number counts, not their size."""
        return self.median_ns < SMALL_COLLECTIVE_NS

    @property
    def waits(self) -> bool:
        """Whether what is sent explains but little of the time."""
        return self.sent.of_link is not None and self.sent.of_link < LINK_USED_SHARE and self.exchange in _MOVES

    @property
    def exchange(self) -> Exchange:
        """How it exchanges; unknown where in several ways."""
        return self.exchanges[0] if len(self.exchanges) == 1 else Exchange.UNKNOWN


def find(facts: Facts) -> list[Finding]:
    """One finding per device and what it exchanges with nothing to hide it."""
    told: list[tuple[DeviceActivity, _Talk]] = []
    for activity, account in facts.devices:
        told += [(activity, talk) for talk in _talks(facts, activity, account)]
    anywhere = layouts(_used_names(facts.trace)) if told else frozenset()
    return [_finding(facts, activity, talk, anywhere) for activity, talk in told]


def _least(facts: Facts) -> float:
    return max(FINDING_SHARE * (facts.median_step_ns or 0), FINDING_NS)


def _talks(facts: Facts, activity: DeviceActivity, account: Account) -> list[_Talk]:
    """What a device exchanges in each way; ways that are not worth a finding are one."""
    exchange = exchange_of(facts.trace, activity)
    exposed = [one for one in exposed_of(activity, account, facts.used_rows(account), exchange) if one.ops.size]
    small = [one for one in exposed if facts.per_step(one.exposed_ns) < _least(facts)]
    groups = [[one] for one in exposed if one not in small]
    groups += [small] if small else []
    return [_talk(facts, activity, group) for group in groups]


def _talk(facts: Facts, activity: DeviceActivity, group: list[Exposed]) -> _Talk:
    exchanges = tuple(one.exchange for one in group)
    ops = np.sort(np.concatenate([one.ops for one in group]))
    length = (activity.end - activity.start)[ops]
    return _Talk(
        device=activity.device,
        exchanges=exchanges,
        ops=ops,
        cost=facts.per_step(sum(one.exposed_ns for one in group)),
        near=layouts(_names_around(facts.trace, activity, ops)),
        sent=sent(facts, activity.device, exchanges, int(length.sum())),
        median_ns=round(float(np.median(length))),
    )


def _finding(facts: Facts, activity: DeviceActivity, talk: _Talk, anywhere: frozenset[Layout]) -> Finding:
    length = (activity.end - activity.start)[talk.ops]
    longest = talk.ops[np.argsort(-length, kind="stable")[:SHOWN]]
    places = find_places(facts.locator, activity.call[talk.ops].astype(np.int32), length)
    shared = facts.workload.vendors == {CPU} and _all_here(facts, activity.device, talk)
    chosen = [ONE_PROCESSOR] if shared else _cures(facts, talk, anywhere)
    untold = _UNTOLD | (_UNTOLD_IN_INFERENCE if facts.workload.purpose in INFERS else {})
    hidden = tuple(exchange for exchange in talk.exchanges if exchange not in untold)
    change = without_collectives(facts, hidden or talk.exchanges)
    if hidden and change.least_ns > (facts.mean_step_ns or 0) - _least(facts):
        hidden, untold = (), dict.fromkeys(talk.exchanges, _FULL)
    if shared:
        hidden, untold = (), dict.fromkeys(talk.exchanges, _SHARED)
    if BUFFERS in chosen or not hidden:
        change = replace(change, floor_ns=0, beside_ns={})
    alone, around = _alone(facts, talk), (_why(facts, activity, talk), shares(facts, places, "Their time"))
    return Finding(
        rule=RULE.id,
        device=activity.device,
        title=f"{_TITLES[talk.exchange]} that nothing hides",
        cost_ns_per_step=talk.cost,
        saving_ns_per_step=talk.cost if hidden else None,
        change=change,
        prediction_basis="first_order" if hidden else None,
        not_determined=None if hidden else untold[talk.exchanges[0]],
        basis="modelled",
        confidence="low" if talk.waits and not talk.small else "medium",
        why=alone.join(around),
        around=around if alone else None,
        fix=paragraphs("\n".join(dict.fromkeys(map(partial(remedy, workload=facts.workload), chosen)))),
        where=placed(facts, places),
        evidence=slices_as_evidence(facts, activity.slice[longest].tolist(), device=activity.device),
    )


def _many(facts: Facts, talk: _Talk) -> bool:
    return talk.small and talk.ops.size >= SMALL_COLLECTIVES * len(facts.used)


def _cures(facts: Facts, talk: _Talk, anywhere: frozenset[Layout]) -> list[Remedies]:
    """What to do, what explains the time first. Parts of layers cannot be joined: each is needed at once."""
    sized = [_sized(facts, talk.device, texts) for texts in cures(talk.exchange, talk.near, anywhere)]
    several = talk.ops.size > len(facts.used) and facts.workload.is_for(TRAINS) and PARTS_OF_LAYERS not in sized
    late = _late(facts, talk)
    if late is not None:
        return [_late_device(late.device), *sized]
    if talk.waits and not talk.small:
        return [LATE_RANKS, *sized]
    return [joins(talk.exchange), *sized] if _many(facts, talk) or (talk.waits and several) else sized


def _sized(facts: Facts, device: int, texts: Remedies) -> Remedies:
    """Advice on gradients by their bytes and width, as far as they are recorded."""
    made = {id(GRADIENTS): gradients, id(REDUCED): reduced}.get(id(texts))
    if made is None:
        return texts
    table, chosen = facts.collectives, chosen_of(facts, device, (Exchange.REDUCING,))
    size, element = table.bytes[chosen], table.element[chosen]
    total = int(size.sum())
    if not total or (size == NULL).any():
        return made()
    wide = None if (element == NULL).any() else int(size[element == _WIDE].sum()) / total
    return made(facts.per_step(total), wide)


def _why(facts: Facts, activity: DeviceActivity, talk: _Talk) -> str:
    length = (activity.end - activity.start)[talk.ops]
    count = talk.ops.size / len(facts.used)
    what = "collectives" if talk.exchange is Exchange.UNKNOWN else _TITLES[talk.exchange].lower()
    take = "take"
    if talk.ops.size == len(facts.used):
        what, take = what.replace("s and ", " or ").removesuffix("s"), "takes"
    unsaid = Exchange.UNKNOWN in talk.exchanges and _sends_only(facts, activity, talk)
    told = (
        f"{format_mean(count)} {what} per step{talk.sent.what} {take} {format_ns(facts.per_step(int(length.sum())))}, "
        f"and for {format_ns(talk.cost)} of it the device computes nothing.{talk.sent.speed}"
    )
    told += " Their kernels only say that they send and receive, which all-to-alls do too." if unsaid else ""
    told += f" Half of them take under {format_ns(talk.median_ns)}." if _many(facts, talk) else ""
    late = _late(facts, talk)
    if late is not None:
        often = f"{late.times} of {late.count} times"
        return told + (
            f" {format_ns(facts.per_step(late.wait_ns))} of it is waiting for device {late.device}, which comes last "
            f"{often}."
        )
    return told + (_TOO_SMALL if talk.waits and talk.small else "")


def _alone(facts: Facts, talk: _Talk) -> str:
    """What one profile leaves open of waiting for who is late."""
    if _late(facts, talk) is not None:
        return ""
    texts = _MOSTLY_LATE if talk.waits and not talk.small else _LATE
    return texts[_all_here(facts, talk.device, talk)]


def _late_device(device: int) -> Remedies:
    return {
        None: f"Look first at what device {device} does before it (`-v` has a table of its step): it may be given its "
        "work last, have more of it than the others, or wait for its part of the batch. What it is late by, no packing "
        "gains.\n"
    }


_LATE = {
    False: " Waiting for a rank that is late is part of it: only the profiles of all ranks tell how much.",
    True: " Waiting for a device that is late is part of it: the table of collectives (`-v`) tells how much.",
}
_MOSTLY_LATE = {
    False: " So little is sent in that time that most of it is waiting for a rank that is late, unless a slower link "
    "between machines carries it: the profiles of all ranks tell.",
    True: " So little is sent in that time that most of it is waiting for a device that is late: the table of "
    "collectives (`-v`) tells how much.",
}
"""By whether all that take part are in the profile."""
_TOO_SMALL = " Each is too small for its link: what it takes hardly depends on how much it sends."


def _kinds_of(talk: _Talk) -> list[int]:
    return [KINDS.index(kind) for one in talk.exchanges for kind in KINDS_OF[one]]


def _late(facts: Facts, talk: _Talk) -> LateDevice | None:
    """The device of this profile for which one mostly waits where it exchanges; None where all are there in time."""
    late = late_device(facts.collectives, talk.device, _kinds_of(talk), facts.used)
    return late if late and facts.per_step(late.wait_ns) >= MOSTLY_LATE * talk.cost else None


def _all_here(facts: Facts, device: int, talk: _Talk) -> bool:
    """Whether all devices that take part are of this profile."""
    table, kinds = facts.collectives, _kinds_of(talk)
    groups = distinct(table.group[(table.device == device) & among(table.kind, kinds)])
    here = {group: np.unique(table.device[table.group == group]).size for group in groups}
    least = max(facts.trace.info.world_size or 2, 2)
    return bool(here) and all(count >= max(table.groups[group].size or 2, least) for group, count in here.items())


def _sends_only(facts: Facts, activity: DeviceActivity, talk: _Talk) -> bool:
    """Whether kernels of unknown purpose are such that send and receive."""
    exchange = exchange_of(facts.trace, activity)[talk.ops]
    rows = talk.ops[exchange == EXCHANGES.index(Exchange.UNKNOWN)]
    names = {facts.trace.name_of(row) for row in activity.slice[rows].tolist()}
    return any("sendrecv" in name.lower().replace("_", "") for name in names)


def _names_around(trace: Trace, activity: DeviceActivity, ops: Rows) -> list[str]:
    """What ops are called, what their launches lie in, and who takes part."""
    slices, groups = trace.slices, trace.device_ops.process_group[activity.row[ops]]
    codes = {*slices.name[activity.slice[ops]].tolist(), *groups.tolist()}
    inside = united(activity.call[ops])
    for _ in range(_DEPTH):
        inside = united(inside[inside >= 0])
        if not inside.size:
            break
        codes |= {*slices.name[inside].tolist()}
        inside = slices.parent[inside]
    scope = np.full(len(slices), -1, np.int32)
    scope[trace.xla_ops.slice] = trace.xla_ops.scope
    codes |= {*scope[activity.slice[ops]].tolist()}
    names = [trace.strings[code] for code in codes if code >= 0]
    described = {str(group.get("pg_name")): str(group.get("pg_desc") or "") for group in trace.info.process_groups}
    return [*names, *(described[name] for name in names if name in described)]


def _used_names(trace: Trace) -> list[str]:
    codes = {*used_codes(trace.slices.name, len(trace.strings)).tolist()}
    codes |= {*used_codes(trace.xla_ops.scope, len(trace.strings)).tolist()}
    return [trace.strings[code] for code in codes]
