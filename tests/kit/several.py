"""Generated profiles with several planted causes at once, each of known size.

Beside the loop with all of them each is simulated with one cause left out, so that what a fix gains among the others is
known too, and without any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from tests.kit.plan import Plan
from tests.kit.planted_case import Planted, plant


def input_and_sync() -> Planted:
    """A late batch, and a read of the loss that lets the host run ahead no more."""
    plan = Plan(jitter=0.05, input_us=5_000, syncs=("optimizer",), work_after=("optimizer",), work_us=600)
    return _without(plan, input_bound=_batches(plan), sync_bound=replace(plan, syncs=()))


def input_and_callback() -> Planted:
    """A late batch, and a callback of 5 ms of which the device's work hides a part."""
    plan = Plan(jitter=0.05, input_us=4_000, python_us=5_000)
    return _without(plan, input_bound=_batches(plan), between_steps=replace(plan, python_us=0))


def input_and_copy() -> Planted:
    """A late batch, copied from pageable memory."""
    plan = Plan(jitter=0.05, input_us=4_000, copy="pageable", copy_us=1_500)
    return _without(plan, input_bound=_batches(plan), exposed_copy=replace(plan, copy="prefetched"))


def five() -> Planted:
    """A late batch, its copy, two reads, a callback, and a garbage collection in every fourth step."""
    plan = Plan(
        jitter=0.05, steps=14, input_us=5_000, python_us=4_000, copy="pageable", copy_us=1_500,
        syncs=("forward", "backward"), work_after=("forward", "backward"), work_us=300, gc_us=20_000, gc_every=4,
    )  # fmt: skip
    return _without(
        plan,
        input_bound=_batches(plan),
        slow_steps=replace(plan, gc_us=0),
        between_steps=replace(plan, python_us=0),
        sync_bound=replace(plan, syncs=()),
        exposed_copy=replace(plan, copy="prefetched"),
    )


def compiling_and_three() -> Planted:
    """A compilation in every step, memory allocated anew, two reads, and an all-reduce that nothing hides."""
    plan = Plan(
        jitter=0.05, syncs=("forward", "backward"), work_after=("forward", "backward"), work_us=400, allocator_us=3_000,
        compile_us=12_000, buckets=1, collective_us=900,
    )  # fmt: skip
    return _without(
        plan,
        recompilation=replace(plan, compile_us=0),
        allocator_bound=replace(plan, allocator_us=0),
        sync_bound=replace(plan, syncs=()),
        exposed_collective=replace(plan, collective_us=1),
    )


def _batches(plan: Plan) -> Plan:
    """The same with batches in time."""
    return replace(plan, input_us=20)


def _without(plan: Plan, **plans: Plan) -> Planted:
    """With the runs that lack the cause of one rule each, and the one that lacks all."""
    cured = plan
    for other in plans.values():
        values = {name: getattr(other, name) for name in Plan.__slots__}
        cured = replace(cured, **{name: value for name, value in values.items() if value != getattr(plan, name)})
    return plant(plan, cured, parts=plans)


SEVERAL: dict[str, Callable[[], Planted]] = {
    case.__name__: cache(case)
    for case in (input_and_sync, input_and_callback, input_and_copy, five, compiling_and_three)
}
"""Every case by name, simulated once in a process; the keys of ``without_ns`` are the rules that must find the causes,
and ``all``."""
