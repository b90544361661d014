"""How much devices send each other, among how many, and how fast, in words; nothing where it is not recorded."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.exchange.collectives import KINDS, Collectives
from stepscope.analysis.exchange.exposed import KINDS_OF, Exchange
from stepscope.analysis.exchange.groups import size_of
from stepscope.analysis.exchange.links import bus_factor, larger_buffer, link_of
from stepscope.analysis.facts import Facts
from stepscope.record import record
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import NULL, Bools
from stepscope.units import format_bytes, format_rate, format_share

_ALL = frozenset({"undefined", "default_pg"})
"""What PyTorch calls groups that nobody gave a name: that of all ranks, mostly."""
_NAMED = 2
"""Process groups that are named; of more only the number of their ranks is said."""


@record
class Sent:
    """What a device sends in some ways in the used steps."""

    what: str = ""
    """Words that follow "per step"."""
    speed: str = ""
    """A sentence on how fast."""
    of_link: float | None = None
    """Share of the peak of the device's link, waiting included; None where it is not known."""


def chosen_of(facts: Facts, device: int, exchanges: tuple[Exchange, ...]) -> Bools:
    """Which collectives of the table a device exchanges in some ways in the used steps; none where some are left
    out."""
    table = facts.collectives
    kinds = [KINDS.index(kind) for one in exchanges for kind in KINDS_OF[one]]
    chosen: Bools = among(table.kind, kinds) & (table.device == device) & among(table.step, facts.used)
    return chosen & np.bool_(not table.left_out)


def sent(facts: Facts, device: int, exchanges: tuple[Exchange, ...], total_ns: int) -> Sent:
    """What a device sends in some ways, all of which take so long."""
    table, chosen = facts.collectives, chosen_of(facts, device, exchanges)
    if not chosen.any() or Exchange.UNKNOWN in exchanges:
        return Sent()
    words = [_bytes(facts, table, chosen), _members(facts, table, chosen)]
    known = ", ".join(filter(None, words))
    rate = _rate(facts, table, chosen, total_ns)
    described = facts.trace.info.device(device)
    link = None if described is None else link_of([described])
    of_link = None if rate is None or link is None else rate / link
    return Sent(f" ({known})" if known else "", _speed(rate, of_link), of_link)


def _bytes(facts: Facts, table: Collectives, chosen: Bools) -> str:
    sizes = table.bytes[chosen]
    if (sizes == NULL).any() or not sizes.any():
        return ""
    total = format_bytes(facts.per_step(int(sizes.sum())))
    least, most = int(sizes.min()), int(sizes.max())
    if sizes.size <= len(facts.used):
        return total
    each = f"{format_bytes(most)} each" if least == most else f"{format_bytes(least)} to {format_bytes(most)} each"
    return f"{total} in all, {each}"


def _members(facts: Facts, table: Collectives, chosen: Bools) -> str:
    groups = [table.groups[number] for number in distinct(table.group[chosen])]
    sizes = {size for group in groups if (size := size_of(group, facts.trace.info.world_size)) is not None}
    described = {str(one.get("pg_name")): str(one.get("pg_desc") or "") for one in facts.trace.info.process_groups}
    names = [described.get(group.name) for group in groups]
    told = " and ".join(f"`{name}`" for name in names if name and name not in _ALL) if len(names) <= _NAMED else ""
    if len(sizes) != 1 or any(size_of(group, facts.trace.info.world_size) is None for group in groups):
        return f"in {told}" if told else ""
    return f"among {sizes.pop()} ranks" + (f" of {told}" if told else "")


def _rate(facts: Facts, table: Collectives, chosen: Bools, total_ns: int) -> float | None:
    """Bytes per second on each link meanwhile; waiting is in the time, so it is a lower bound."""
    carried = 0.0
    for at in np.flatnonzero(chosen).tolist():
        kind, group = KINDS[int(table.kind[at])], table.groups[int(table.group[at])]
        ranks = size_of(group, facts.trace.info.world_size)
        size, factor = larger_buffer(kind, int(table.bytes[at]), ranks), bus_factor(kind, ranks)
        if size is None or factor is None:
            return None
        carried += size * factor
    return carried * 1e9 / total_ns if carried and total_ns else None


def _speed(rate: float | None, of_link: float | None) -> str:
    if rate is None:
        return ""
    could = (
        ""
        if of_link is None
        else f", {format_share(of_link)} of the peak of this device's in one direction, inside a machine"
    )
    return f" Each link carries at least {format_rate(rate, 'B/s')} meanwhile{could}."
