"""Advice on kernels whose gain no profile tells: notices, never findings."""

from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Notice
from stepscope.limits import SMALL_GRIDS_SHARE
from stepscope.names.kernels import Family
from stepscope.units import format_count, format_share


def small_grids(facts: Facts) -> Notice | None:
    """Most of the steps goes to kernels that leave multiprocessors without a block."""
    sizes = {d.id: d.multiprocessors for d in facts.trace.info.devices if d.multiprocessors}
    uses = [use for use in facts.kernels.uses if use.device in sizes and use.shape.blocks is not None]
    small = sum(use.total_ns for use in uses if (use.shape.blocks or 0) < (sizes[use.device] or 0))
    share = small / (facts.used_ns * len({use.device for use in uses})) if uses and facts.used_ns else 0.0
    if share < SMALL_GRIDS_SHARE:
        return None
    most = max(sizes[use.device] or 0 for use in uses)
    factors = [use.headroom.batch_factor for use in facts.memory if use.headroom and use.headroom.batch_factor]
    room = f"memory allows some {min(factors):.1f} times today's" if factors else "memory allows it"
    return Notice(
        "small_grids",
        f"{format_share(share)} of step time is in kernels of fewer blocks than the device has "
        f"multiprocessors ({format_count(most)}): the others stand still. A larger batch gives them work where {room} "
        "and convergence does (the learning rate changes with it). What it gains is not in the profile.",
        sum(use.count for use in uses if (use.shape.blocks or 0) < (sizes[use.device] or 0)),
    )


def softmax_in_fp16(facts: Facts) -> Notice | None:
    """A softmax reads and writes fp16."""
    narrow = [use for use in facts.kernels.uses if use.traits.family is Family.SOFTMAX and use.precision == "fp16"]
    if not narrow:
        return None
    return Notice(
        "softmax_in_fp16",
        "Softmax runs in fp16: large scores overflow to infinity before it, and small probabilities vanish behind it. "
        "Compute it in fp32, as autocast does; this is for accuracy, not for time.",
        sum(use.count for use in narrow),
    )
