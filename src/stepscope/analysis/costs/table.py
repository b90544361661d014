"""All formulas by the op's name, and the one way to ask them."""

from __future__ import annotations

from functools import lru_cache

from stepscope.analysis.costs.attention import ATTENTION
from stepscope.analysis.costs.call import Cost, parse_call
from stepscope.analysis.costs.convolutions import CONVOLUTIONS
from stepscope.analysis.costs.movement import MOVEMENT
from stepscope.analysis.costs.products import PRODUCTS, Formula

FORMULAS: dict[str, Formula] = {**PRODUCTS, **CONVOLUTIONS, **ATTENTION, **MOVEMENT}

_MOST = 1 << 53
"""More operations or bytes than this are a damaged shape: they would take the fastest device seconds. Sums over a
thousand such calls still fit 64 bits."""


@lru_cache(maxsize=4096)
def cost_of(name: str, shapes: str | None, types: str | None, values: str | None) -> Cost | None:
    """What a call of a host op costs by the texts that were recorded of it; None where no formula knows."""
    formula = FORMULAS.get(name)
    call = parse_call(shapes, types, values) if formula else None
    cost = formula(call) if formula and call else None
    if cost is None or max(cost.flops or 0, cost.bytes or 0) > _MOST:
        return None
    return cost
