"""``analyses.over_ranks`` of a job: what takes time and memory by name, over its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepscope.cluster.uses import RankUses, Spread, dearest, spreads

if TYPE_CHECKING:
    from stepscope.document import ranks as entry


def over_ranks(ranks: Sequence[int], of: Sequence[RankUses]) -> entry.OverRanks:
    """``analyses.over_ranks``, of each rank's."""
    return {
        "kernels": [_use(one) for one in dearest(spreads(ranks, [uses.kernels for uses in of]))],
        "ops": [_use(one) for one in dearest(spreads(ranks, [uses.ops for uses in of]))],
        "layers": [_use(one) for one in dearest(spreads(ranks, [uses.layers for uses in of]))],
        "stages": [_use(one) for one in dearest(spreads(ranks, [uses.stages for uses in of]))],
        "memory": [_memory(one) for one in spreads(ranks, [uses.memory for uses in of]) if _told(one)],
    }


def _use(one: Spread) -> entry.UseOverRanks:
    name, of = one.name
    return {
        "name": name,
        "of": of or None,
        "ranks": one.ranks,
        "mean_ns_per_step": one.mean,
        "count_per_step": one.count,
        "each": [{"rank": use.rank, "ns_per_step": use.value, "count_per_step": use.count} for use in one.each],
    }


def _told(one: Spread) -> bool:
    """Not what no rank has any of; that nothing grows is told."""
    return bool(one.each[0].value or one.each[-1].value or one.name[0] == "growth")


def _memory(one: Spread) -> entry.MemoryOverRanks:
    what, of = one.name
    return {
        "what": what,
        "on_host": of == "host",
        "ranks": one.ranks,
        "mean_bytes": one.mean,
        "each": [{"rank": use.rank, "bytes": use.value} for use in one.each],
    }
