"""The report's figures of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepscope.analysis.facts import Facts
from stepscope.analysis.memory import BlocksPlace, Growth, Held, MemoryCourse, MemoryUse, Peak
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, Remedies, remedy
from stepscope.report.entries import plain, where_entry, word
from stepscope.trace.tables import I32, I64, NULL

if TYPE_CHECKING:
    from stepscope.document import memory as entry

RECORD: Remedies = {
    PYTORCH: "`profile_memory=True` records memory; with `with_stack=True` also the lines that allocate it.",
    JAX: "JAX records the memory of GPUs and TPUs; `jax.profiler.save_device_memory_profile` writes what is alive at "
    "an instant, and XProf's memory viewer shows the buffers of a compiled program.",
    TENSORFLOW: "TensorFlow records the memory of GPUs; of a session the message `RunMetadata` holds it.",
    TORCH_XLA: "PyTorch/XLA records no memory: `xm.get_memory_info(device)` tells it, and XProf's memory viewer shows "
    "the buffers of a compiled program.",
    None: "Record allocations, where the profiler has an option for it.",
}
"""What would have recorded memory."""


def memory(facts: Facts) -> entry.MemoryEntry:
    """``analyses.memory``."""
    calls = facts.allocator_calls
    return {
        "not_recorded": None if facts.memory else remedy(RECORD, facts.workload),
        "pools": [_pool(use) for use in facts.memory],
        "allocator_calls": None
        if calls is None
        else {
            "taken": calls.taken,
            "freed": calls.freed,
            "retries": calls.retries,
            "dur_ns": _total(facts, calls.slices),
        },
    }


def _total(facts: Facts, slices: I32) -> int:
    return int(facts.trace.slices.dur_ns[slices].sum())


def _pool(use: MemoryUse) -> entry.MemoryPool:
    return {
        "device": use.pool.device,
        "on_host": use.pool.on_host,
        "allocator": use.pool.allocator,
        "basis": "recorded" if use.pool.whole else "at_least",
        "events": use.pool.time_ns.size,
        "blocks": None if use.pool.blocks is None else len(use.pool.blocks),
        "peak": _peak(use.peak),
        "reserved_bytes": use.reserved_bytes,
        "timeline": _course(use.course),
        "fragmentation": None if use.fragmentation is None else plain(use.fragmentation),
        "growth": None if use.growth is None else _growth(use.growth),
        "headroom": None if use.headroom is None else plain(use.headroom),
    }


def _peak(peak: Peak) -> entry.MemoryPeak:
    return {
        "time_ns": peak.time_ns,
        "step": peak.step,
        "allocated_bytes": peak.allocated,
        "reserved_bytes": peak.reserved,
        "by_category": _by_category(peak.held),
        "fragmentation": peak.fragmentation,
        "places": [_place(place) for place in peak.places],
    }


def _place(place: BlocksPlace) -> entry.MemoryPlace:
    return {
        "category": word(place.held),
        "blocks": place.blocks,
        "bytes": place.bytes,
        "where": where_entry(place.where),
        "dtype": place.tensor.dtype,
        "shape": place.tensor.shape,
        "region": place.tensor.region,
    }


def _by_category(held: Mapping[Held, object]) -> Any:
    return {str(kind): value for kind, value in held.items()} or None


def _course(course: MemoryCourse) -> entry.MemoryTimeline:
    return {
        "time_ns": course.time_ns.tolist(),
        "allocated_bytes": course.allocated.tolist(),
        "reserved_bytes": _with_nulls(course.reserved),
        "by_category": _by_category({held: sizes.tolist() for held, sizes in course.held.items()}),
    }


def _with_nulls(values: I64) -> list[int | None] | None:
    """None where no value is known."""
    if (values == NULL).all():
        return None
    return [None if value == NULL else value for value in values.tolist()]


def _growth(growth: Growth) -> entry.MemoryGrowth:
    return {
        "per_step_bytes": list(growth.per_step),
        "steps": list(growth.steps),
        "mean_bytes": growth.mean_bytes,
        "grows": growth.grows,
        "places": [_place(place) for place in growth.places],
    }
