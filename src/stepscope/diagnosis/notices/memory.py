"""memory_*: what one must know of the memory the steps take. No step time is lost to it, so these are notices."""

from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.analysis.memory import MemoryUse
from stepscope.analysis.where import Where
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import (
    FRAGMENTED_SHARE,
    FULL_WITHIN_STEPS,
    GROWTH_BYTES,
    HEADROOM_TIMES,
    MEMORY_FULL_SHARE,
)
from stepscope.diagnosis.remedies import (
    AMD,
    INFERS,
    JAX,
    LARGER_BATCH,
    NVIDIA,
    PYTORCH,
    TENSORFLOW,
    TRAINS,
    Remedies,
    RemedyPart,
    sentence,
)
from stepscope.diagnosis.rules import launch_bound
from stepscope.units import format_bytes, format_count, format_share

KEPT: Remedies = {
    PYTORCH: (
        RemedyPart(
            "A tensor kept from step to step keeps all that its backward pass needs: keep `loss.detach()`, and clear "
            "lists of outputs.",
            purposes=TRAINS,
        ),
        RemedyPart(
            "Clear lists of outputs that are kept from step to step, or copy them to the host.",
            purposes=INFERS,
            certain=True,
        ),
        "A cache of keys and values grows by design.",
    ),
    JAX: "Arrays kept from step to step (lists of metrics) stay on the device: fetch them every N steps with "
    "`jax.device_get`, and drop them.",
    TENSORFLOW: "Tensors kept from step to step (lists of results) stay on the device: keep `x.numpy()`, every N "
    "steps.",
    None: "Something is kept from step to step: drop it, or copy it to the host.",
}
FRAGMENTED: Remedies = {
    PYTORCH: (
        RemedyPart(
            "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` lets the allocator use such memory for other sizes.",
            since=(2, 1),
            vendors=NVIDIA,
        ),
        RemedyPart(
            "`PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512` keeps large blocks whole.",
            since=(1, 10),
            before=(2, 1),
            vendors=NVIDIA,
        ),
        RemedyPart(
            "`PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:512` keeps large blocks whole.",
            since=(1, 10),
            vendors=AMD,
            certain=True,
        ),
        "Fixed shapes (pad or bucket) need it less.",
    ),
    TENSORFLOW: "`TF_GPU_ALLOCATOR=cuda_malloc_async` uses such memory for other sizes; fixed shapes need it less.",
    None: "Fixed shapes (pad or bucket) let the allocator use it again.",
}


def growth(facts: Facts) -> Notice | None:
    """A leak: rising in every step, by blocks that stay."""
    growing = [use for use in facts.memory if use.growth is not None and use.growth.grows and _matters(use)]
    if not growing:
        return None
    # The first to be full, else (sizes not recorded) the one that grows fastest.
    use = min(growing, key=lambda use: (_left(use) is None, _left(use) or 0, -_per_step(use)))
    place = _place(use)
    left = _left(use)
    full = "" if left is None else f" It is full {_when(facts, left)}."
    return Notice(
        "memory_growth",
        f"Memory in use {_on(use)} grows by {format_bytes(_per_step(use))} in every step.{full}{place} "
        f"{sentence(KEPT, facts.workload)}",
        len(growing),
    )


def _per_step(use: MemoryUse) -> int:
    return use.growth.mean_bytes if use.growth else 0


def _place(use: MemoryUse) -> str:
    """Where most of what stays is allocated."""
    if use.growth is None or not use.growth.places:
        return ""
    most = use.growth.places[0]
    blocks = f"{format_bytes(most.bytes)} in {format_count(most.blocks)} blocks"
    return f" Most of what stays ({blocks}) is allocated in {_at(most.where)}." if most.where else ""


def _left(use: MemoryUse) -> int | None:
    """Steps until the device is full; None where its size was not recorded."""
    if use.headroom is None:
        return None
    return max(use.headroom.capacity_bytes - use.peak.allocated, 0) // max(_per_step(use), 1)


def _matters(use: MemoryUse) -> bool:
    left = _left(use)
    return _per_step(use) >= GROWTH_BYTES if left is None else left <= FULL_WITHIN_STEPS


def _when(facts: Facts, steps: int) -> str:
    last = facts.markers.numbers[facts.used[-1]]
    return f"within {format_count(steps)} steps" if last is None else f"by step {format_count(last + steps)}"


def fragmentation(facts: Facts) -> Notice | None:
    """Much of what the allocator holds is unused at the peak, and it wants more all the same; or the little that is
    left is in pieces."""
    pools = [use for use in facts.memory if use.fragmentation and use.fragmentation.share >= FRAGMENTED_SHARE]
    pools = [use for use in pools if (use.fragmentation and use.fragmentation.taken_beside_free) or _is_full(use)]
    if not pools:
        return _in_pieces(facts)
    use = max(pools, key=lambda use: use.fragmentation.free_bytes if use.fragmentation else 0)
    assert use.fragmentation is not None
    taken = use.fragmentation.taken_beside_free
    more = f", yet it took more from the device {format_count(taken)} times in the steps" if taken else ""
    return Notice(
        "memory_fragmentation",
        f"When most memory is in use {_on(use)}, {format_bytes(use.fragmentation.free_bytes)} of the "
        f"{format_bytes(use.peak.reserved)} that the allocator holds ({format_share(use.fragmentation.share)}) is not "
        f"in use{more}. {sentence(FRAGMENTED, facts.workload)}",
        len(pools),
    )


def _in_pieces(facts: Facts) -> Notice | None:
    pools = [use for use in facts.memory if (use.peak.fragmentation or 0) >= FRAGMENTED_SHARE and _is_full(use)]
    pools = [use for use in pools if not use.pool.on_host]
    if not pools:
        return None
    use = max(pools, key=lambda use: use.peak.fragmentation or 0)
    return Notice(
        "memory_fragmentation",
        f"When most memory is in use {_on(use)}, {format_share(use.peak.fragmentation or 0)} of what the allocator has "
        "free lies outside of its largest free piece: a tensor larger than that piece does not fit, although as much "
        f"is free. {sentence(FRAGMENTED, facts.workload)}",
        len(pools),
    )


def headroom(facts: Facts) -> Notice | None:
    """No room for a larger batch; or much of it, where a larger batch would give launches more work."""
    known = [use for use in facts.memory if use.headroom and not use.pool.on_host]
    full = [use for use in known if _is_full(use)]
    if full:
        use = max(full, key=lambda use: use.headroom.capacity_bytes - use.headroom.free_bytes if use.headroom else 0)
        assert use.headroom is not None
        size = format_bytes(use.headroom.capacity_bytes)
        taken = format_bytes(use.headroom.capacity_bytes - use.headroom.free_bytes)
        holds = f"The allocator holds {taken} of the {size} {_on(use)}"
        if use.headroom.of_allocator:
            holds = f"Up to {taken} of the {size} that the allocator {_on(use)} may give out are in use"
        elif use.reserved_bytes is None:
            holds = f"Up to {taken} of the {size} {_on(use)} are in use"
        return Notice(
            "memory_full",
            f"{holds}: a larger batch does not fit, and a larger input may not either.",
            len(full),
        )
    factors = [use.headroom.batch_factor for use in known if use.headroom and use.headroom.batch_factor is not None]
    if not factors or min(factors) < HEADROOM_TIMES or not launch_bound.find(facts):
        return None
    least = min(factors)
    times = "more than 100 times" if least > 100 else f"{least:.1f} times"
    return Notice(
        "memory_headroom",
        f"There is memory for a larger batch: activations and temporaries could be {times} as large as at the peak, "
        f"if nothing else uses the device. {sentence(LARGER_BATCH, facts.workload)}",
    )


def _is_full(use: MemoryUse) -> bool:
    room = use.headroom
    return room is not None and room.capacity_bytes - room.free_bytes >= MEMORY_FULL_SHARE * room.capacity_bytes


def _on(use: MemoryUse) -> str:
    return "on the host" if use.pool.device is None else f"on device {use.pool.device}"


def _at(where: Where) -> str:
    """A place in words; empty for none."""
    op = f"`{where.op}`" if where.op else ""
    if where.file:
        line = f"`{where.file}`, line {where.line}" if where.line is not None else f"`{where.file}`"
        return f"{op} at {line}" if op else line
    return op or next((f"`{part}`" for part in (where.annotation, where.module) if part), "")


__all__ = ["fragmentation", "growth", "headroom"]
