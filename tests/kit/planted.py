"""Profiles with a planted cause of known size: simulated, with the accounting they must get.

Each case is a function that returns a :class:`Planted`. The cause is a difference between two plans, so that
what it costs is not estimated but simulated: the same plan, with the same seed, without the cause. Plans are
chosen so that the accounting's definitions leave no choice (see ``truth``):

* latencies are constant, so the cap on them never cuts one;
* kernels are longer than the host needs to launch one (except where launching is the cause), so what follows
  a wait is one gap, or a few until the next launch of compute;
* the lead a wait destroyed is spent on the gaps behind it, each nanosecond once; host work behind it is
  shorter than that lead, or of one kind only, so there is one way to spend it;
* stretches of Python are several times the limit that separates them from dispatching, and whole: the last op
  before and the input range after touch them;
* an op held back by an event starts the instant it fires; the row that says so is what NVIDIA's profiler
  writes (AMD's writes none, so dependencies cannot be told there);
* what a profiler would only show by a name (input, gc, checkpoint, compile) has the name real profiles have.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from tests.kit.events import CALLS, DEVICE_WORK
from tests.kit.machine import Costs
from tests.kit.plan import USER_FRAMES, Part, Plan
from tests.kit.planted_case import Planted, plant

__all__ = ["CASES", "Planted", "plant"]


def healthy(seed: int = 0, jitter: float = 0.05) -> Planted:
    """The device is the limit and the host runs ahead: nothing to find."""
    return plant(Plan(seed=seed, jitter=jitter), quiet=True)


def input_bound(seed: int = 0, jitter: float = 0.05, input_us: int = 7_000) -> Planted:
    """The loader's worker processes do not keep up: the training thread waits for its batch."""
    plan = Plan(seed=seed, jitter=jitter, input_us=input_us)
    return plant(plan, replace(plan, input_us=20), rule="input_bound", where=USER_FRAMES["main"], category="input")


def input_on_main_thread(seed: int = 0, jitter: float = 0.05, input_us: int = 7_000) -> Planted:
    """``num_workers=0``: the training thread reads and collates the batch, with ops in the input range."""
    plan = Plan(seed=seed, jitter=jitter, input_us=input_us, loader="main")
    return plant(plan, replace(plan, input_us=20), rule="input_bound", where=USER_FRAMES["data"], category="input")


def sync_bound(seed: int = 0, jitter: float = 0.05, work_us: int = 600) -> Planted:
    """The loss is read with ``.item()`` each step; the host work behind it can no longer run ahead."""
    plan = Plan(seed=seed, jitter=jitter, syncs=("optimizer",), work_after=("optimizer",), work_us=work_us)
    return plant(plan, replace(plan, syncs=()), rule="sync_bound", where=USER_FRAMES["item"], category="sync")


def sync_chain(seed: int = 0, jitter: float = 0.05, work_us: int = 600) -> Planted:
    """Three ``.item()`` in a row before the host work.

    Without one of them the next one waits, so only all three pay.
    """
    plan = Plan(seed=seed, jitter=jitter, syncs=("optimizer",) * 3, work_after=("optimizer",), work_us=work_us)
    parts = {"one": replace(plan, syncs=("optimizer",) * 2), "two": replace(plan, syncs=("optimizer",))}
    return plant(
        plan, replace(plan, syncs=()), parts=parts, rule="sync_bound", where=USER_FRAMES["item"], category="sync"
    )


def sync_in_three_places(seed: int = 0, jitter: float = 0.05, work_us: int = 300) -> Planted:
    """A read after forward, backward and optimizer, host work after each: each of them costs its own gap."""
    places: tuple[Part, ...] = ("forward", "backward", "optimizer")
    plan = Plan(seed=seed, jitter=jitter, syncs=places, work_after=places, work_us=work_us)
    parts: dict[str, Plan] = {place: replace(plan, syncs=tuple(p for p in places if p != place)) for place in places}
    return plant(
        plan, replace(plan, syncs=()), parts=parts, rule="sync_bound", where=USER_FRAMES["item"], category="sync"
    )


def sync_limited(ahead_us: int = 10, work_us: int = 900) -> Planted:
    """A wait that blocked 0.2 ms is followed by 0.9 ms of host work: only the lead it destroyed is its cost.

    Each kernel takes ``ahead_us`` longer than its launch, so after twenty of them the host leads by as many.
    A plain ``synchronize`` that returns at once leaves no other reading.
    """
    plan = Plan(
        forward=7,
        backward=12,
        optimizer=1,
        kernel_us=8 + 5 - 1 + ahead_us,
        syncs=("optimizer",),
        plain_sync=True,
        work_after=("optimizer",),
        work_us=work_us,
        costs=Costs(sync_return_ns=0),
    )
    return plant(plan, replace(plan, syncs=()), category="sync", where=USER_FRAMES["item"])


def launch_bound(seed: int = 0, jitter: float = 0.0) -> Planted:
    """Many kernels shorter than their launch. Without the cause one graph launch replaces them."""
    plan = Plan(seed=seed, jitter=jitter, forward=60, backward=120, optimizer=20, kernel_us=3, dispatch_us=12)
    return plant(plan, replace(plan, graph=True), rule="launch_bound", where=USER_FRAMES["step"], category="launch")


def graph_launched(seed: int = 0) -> Planted:
    """The kernels of a step in one graph launch: many ops point to one call, and nothing is to be found."""
    return plant(Plan(seed=seed, graph=True, kernel_us=60), quiet=True)


def exposed_copy(seed: int = 0, jitter: float = 0.05, copy_us: int = 1_500) -> Planted:
    """Each step begins with a copy from pageable memory on the compute stream: nothing runs beside it."""
    plan = Plan(seed=seed, jitter=jitter, copy="pageable", copy_us=copy_us)
    return plant(
        plan, replace(plan, copy="prefetched"), rule="exposed_copy", where=USER_FRAMES["batch"], category="copy_h2d"
    )


def hidden_copy(seed: int = 0, jitter: float = 0.05) -> Planted:
    """The next batch is copied from pinned memory beside the compute: the copy costs nothing."""
    return plant(Plan(seed=seed, jitter=jitter, copy="prefetched"), quiet=True)


def copy_staging(staging_us: int = 1_200) -> Planted:
    """A copy from pageable memory is staged while the device is idle.

    The device ran dry in the input range before, and 1.5 ms of further input lie between copy and compute:
    the gap before the copy is the copy's own.
    """
    plan = Plan(input_us=7_000, copy="pageable", copy_us=200, staging_us=staging_us, copy_then_input_us=1_500)
    return plant(plan, replace(plan, copy="prefetched"), category="copy_staging", where=USER_FRAMES["batch"])


def python_between_steps(seed: int = 0, jitter: float = 0.05, python_us: int = 7_000) -> Planted:
    """A callback of 7 ms between steps, in Python frames."""
    plan = Plan(seed=seed, jitter=jitter, python_us=python_us)
    return plant(plan, replace(plan, python_us=0), where=USER_FRAMES["log"], rule="between_steps", category="python")


def python_annotated(python_us: int = 7_000) -> Planted:
    """The same without Python frames, in a user annotation."""
    plan = Plan(python_us=python_us, stacks=False, annotated=True)
    return plant(plan, replace(plan, python_us=0), rule="between_steps", category="python")


def python_unseen(python_us: int = 7_000) -> Planted:
    """The same with neither: the step's marker ends before it, so nothing recorded covers it."""
    plan = Plan(python_us=python_us, stacks=False, marker_ends_early=True)
    return plant(plan, replace(plan, python_us=0), category="unknown_host")


def garbage_collection(seed: int = 0, gc_us: int = 20_000, every: int = 3) -> Planted:
    """A collection of 20 ms every third step."""
    plan = Plan(seed=seed, steps=11, gc_us=gc_us, gc_every=every)
    return plant(plan, replace(plan, gc_us=0), rule="slow_steps", category="gc", where=USER_FRAMES["main"])


def checkpointing(seed: int = 0, checkpoint_us: int = 40_000, every: int = 4) -> Planted:
    """A checkpoint of 40 ms every fourth step."""
    plan = Plan(seed=seed, steps=14, checkpoint_us=checkpoint_us, checkpoint_every=every)
    return plant(
        plan, replace(plan, checkpoint_us=0), rule="slow_steps", category="checkpoint_io", where=USER_FRAMES["save"]
    )


def allocator_retries(seed: int = 0, allocator_us: int = 6_000) -> Planted:
    """The caching allocator gives memory back and asks for it again each step."""
    plan = Plan(seed=seed, allocator_us=allocator_us)
    return plant(
        plan, replace(plan, allocator_us=0), rule="allocator_bound", category="allocator", where=USER_FRAMES["step"]
    )


def recompilation(seed: int = 0, compile_us: int = 60_000, every: int = 4) -> Planted:
    """A recompilation of 60 ms every fourth step."""
    plan = Plan(seed=seed, steps=10, compile_us=compile_us, compile_every=every)
    return plant(plan, replace(plan, compile_us=0), rule="slow_steps", category="compile", where=USER_FRAMES["step"])


def collecting_in_every_step(seed: int = 0, gc_us: int = 6_000) -> Planted:
    """``gc.collect()`` after each step."""
    plan = Plan(seed=seed, jitter=0.05, gc_us=gc_us)
    return plant(plan, replace(plan, gc_us=0), rule="between_steps", category="gc", where=USER_FRAMES["main"])


def saving_in_every_step(seed: int = 0, checkpoint_us: int = 9_000) -> Planted:
    """A checkpoint after each step."""
    plan = Plan(seed=seed, jitter=0.05, checkpoint_us=checkpoint_us)
    return plant(
        plan, replace(plan, checkpoint_us=0), rule="between_steps", category="checkpoint_io", where=USER_FRAMES["save"]
    )


def compiling_in_every_step(seed: int = 0, compile_us: int = 12_000) -> Planted:
    """A recompilation in each step: no two batches have one shape."""
    plan = Plan(seed=seed, jitter=0.05, compile_us=compile_us)
    return plant(plan, replace(plan, compile_us=0), rule="recompilation", category="compile", where=USER_FRAMES["step"])


def profiler_overhead(seed: int = 0, profiler_us: int = 25_000, every: int = 3) -> Planted:
    """The profiler asks for a buffer inside a runtime call that launches nothing."""
    plan = Plan(seed=seed, steps=11, profiler_us=profiler_us, profiler_every=every)
    return plant(plan, replace(plan, profiler_us=0), category="profiler")


def exposed_collective(seed: int = 0, jitter: float = 0.0, collective_us: int = 900) -> Planted:
    """One all-reduce after the whole backward: the optimizer waits for it."""
    plan = Plan(seed=seed, jitter=jitter, buckets=1, collective_us=collective_us)
    return plant(plan, replace(plan, collective_us=1), rule="exposed_collective", category="collective")


def hidden_collective(seed: int = 0) -> Planted:
    """All-reduces beside the backward, the last one short: all but its tail is hidden."""
    return plant(Plan(seed=seed, backward=16, buckets=4, collective_us=20), quiet=True)


def two_devices(seed: int = 0, jitter: float = 0.05) -> Planted:
    """One process drives two devices alike."""
    return plant(Plan(seed=seed, jitter=jitter, devices=2), quiet=True)


def device_waits(seed: int = 0) -> Planted:
    """A model split over two devices.

    Each is idle while it waits for the other's event, launched long before.
    """
    return plant(Plan(seed=seed, devices=2, layout="pipeline", steps=10), category="dependency")


def input_bound_pipeline(seed: int = 0, input_us: int = 7_000) -> Planted:
    """Input-bound, over two devices: all that device 1 is given comes from the autograd thread.

    That thread has nothing to show for the time it was not running; the main thread, which hands it the work,
    has.
    """
    plan = Plan(seed=seed, devices=2, layout="pipeline", input_us=input_us)
    return plant(plan, replace(plan, input_us=20), rule="input_bound", where=USER_FRAMES["main"], category="input")


def launched_before(seed: int = 0) -> Planted:
    """Kernels of before the recording run into it, without a launch."""
    return plant(Plan(seed=seed, earlier=20), quiet=True)


def incomplete_last_step(seed: int = 0) -> Planted:
    """The recording ends in the forward of the last step."""
    return plant(Plan(seed=seed, last_share=0.5), quiet=True)


def two_cycles(seed: int = 0) -> Planted:
    """Two profiler cycles with 50 ms between them that nobody recorded."""
    return plant(Plan(seed=seed, steps=6, cycles=2, pause_us=50_000))


def without_markers(seed: int = 0) -> Planted:
    """No step markers: the launches repeat, and that is all there is."""
    return plant(Plan(seed=seed, steps=12, markers=False))


def sampled(seed: int = 0, share: float = 0.3) -> Planted:
    """Some launches and, independently, some device ops were not recorded: costs per step are not to be told.

    The truth is of what happened, not of what is left of it.
    """
    planted = plant(Plan(seed=seed, dispatch_us=40, steps=12))
    draw = random.Random(seed)
    kept = [event for event in planted.events if event.cat not in (*CALLS, *DEVICE_WORK) or draw.random() >= share]
    return replace(planted, events=tuple(kept))


def cpu_only(seed: int = 0, jitter: float = 0.05) -> Planted:
    """No device: ops one after another, a loader that takes a fifth of the step, and a callback."""
    plan = Plan(seed=seed, jitter=jitter, devices=0, input_us=800, python_us=2_000)
    return plant(plan, replace(plan, input_us=20), category="input")


CASES: dict[str, Callable[[], Planted]] = {
    case.__name__: cache(case)
    for case in (
        healthy,
        input_bound,
        input_on_main_thread,
        sync_bound,
        sync_chain,
        sync_in_three_places,
        sync_limited,
        launch_bound,
        graph_launched,
        exposed_copy,
        hidden_copy,
        copy_staging,
        python_between_steps,
        python_annotated,
        python_unseen,
        garbage_collection,
        checkpointing,
        allocator_retries,
        recompilation,
        collecting_in_every_step,
        saving_in_every_step,
        compiling_in_every_step,
        profiler_overhead,
        exposed_collective,
        hidden_collective,
        two_devices,
        device_waits,
        input_bound_pipeline,
        launched_before,
        incomplete_last_step,
        two_cycles,
        without_markers,
        sampled,
        cpu_only,
    )
}
"""Every case by name, each a function without required arguments that simulates once in a process."""
