"""How much devices send each other, among how many, and how fast, in words; nothing where it is not recorded."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.exchange.collectives import KINDS, Collectives
from stepscope.analysis.exchange.exposed import KINDS_OF, Exchange
from stepscope.analysis.exchange.groups import size_of
from stepscope.analysis.exchange.links import bus_factor, larger_buffer, link_of
from stepscope.analysis.facts import Facts
from stepscope.trace.tables import NULL, Bools
from stepscope.units import format_bytes, format_rate, format_share

_ALL = frozenset({"undefined", "default_pg"})
"""What PyTorch calls groups that nobody gave a name: that of all ranks, mostly."""
_NAMED = 2
"""Process groups that are named; of more only the number of their ranks is said."""


def sent(facts: Facts, device: int, exchanges: tuple[Exchange, ...], total_ns: int) -> tuple[str, str]:
    """What a device sends in some ways in the used steps: words that follow "per step", and a sentence on how fast."""
    table = facts.collectives
    kinds = [KINDS.index(kind) for one in exchanges for kind in KINDS_OF[one]]
    chosen = np.isin(table.kind, kinds) & (table.device == device) & np.isin(table.step, list(facts.used))
    if not chosen.any() or table.left_out or Exchange.UNKNOWN in exchanges:
        return "", ""
    words = [_bytes(facts, table, chosen), _members(facts, table, chosen)]
    known = ", ".join(filter(None, words))
    return f" ({known})" if known else "", _speed(facts, table, chosen, device, total_ns)


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
    groups = [table.groups[number] for number in np.unique(table.group[chosen]).tolist()]
    sizes = {size for group in groups if (size := size_of(group, facts.trace.info.world_size)) is not None}
    described = {str(one.get("pg_name")): str(one.get("pg_desc") or "") for one in facts.trace.info.process_groups}
    names = [described.get(group.name) for group in groups]
    told = " and ".join(f"`{name}`" for name in names if name and name not in _ALL) if len(names) <= _NAMED else ""
    if len(sizes) != 1 or any(size_of(group, facts.trace.info.world_size) is None for group in groups):
        return f"in {told}" if told else ""
    return f"among {sizes.pop()} ranks" + (f" of {told}" if told else "")


def _speed(facts: Facts, table: Collectives, chosen: Bools, device: int, total_ns: int) -> str:
    """What each link carried meanwhile, and what it could; waiting is in the time, so it is a lower bound."""
    carried = 0.0
    for at in np.flatnonzero(chosen).tolist():
        kind, group = KINDS[int(table.kind[at])], table.groups[int(table.group[at])]
        ranks = size_of(group, facts.trace.info.world_size)
        size, factor = larger_buffer(kind, int(table.bytes[at]), ranks), bus_factor(kind, ranks)
        if size is None or factor is None:
            return ""
        carried += size * factor
    if not carried or not total_ns:
        return ""
    rate = carried * 1e9 / total_ns
    link = link_of([one for one in facts.trace.info.devices if one.id == device])
    could = (
        ""
        if link is None
        else (f", {format_share(rate / link)} of the peak of this device's in one direction, inside a machine")
    )
    return f" Each link carries at least {format_rate(rate, 'B/s')} meanwhile{could}."
