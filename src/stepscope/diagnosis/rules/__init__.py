"""The one list of rules. A rule is a function from facts to findings; each lives in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.rules import (
    alignment,
    allocating,
    allocator_retries,
    amp_partial,
    attention_unfused,
    between_steps,
    code_loading,
    collective_copies,
    compiled_prologue,
    data_parallel,
    device_overloaded,
    devices_serialised,
    exposed_collective,
    exposed_copy,
    graph_breaks,
    graph_building,
    graph_copies,
    graph_cut_early,
    host_callback,
    host_contention,
    host_offload,
    host_ops,
    hot_python,
    input_bound,
    late_core,
    launch_bound,
    launched_in_turn,
    lazy_fallbacks,
    long_launch,
    loop_sync,
    loss_scaling,
    memory_bound_chain,
    recompilation,
    repeated_copies,
    running_eagerly,
    slow_steps,
    sync_bound,
    tensor_cores,
    tf32_off,
    too_little_work,
    transfer,
)

RULES: tuple[Callable[[Facts], list[Finding]], ...] = (
    # Input
    input_bound.find,
    # Gaps
    between_steps.find,
    host_callback.find,
    slow_steps.find,
    code_loading.find,
    sync_bound.find,
    loop_sync.find,
    loss_scaling.find,
    allocator_retries.find,
    allocating.find,
    graph_building.find,
    transfer.find,
    # Launches and placement
    hot_python.find,
    launch_bound.find,
    long_launch.find,
    graph_copies.find,
    host_contention.find,
    host_ops.find,
    lazy_fallbacks.find,
    exposed_copy.find,
    host_offload.find,
    repeated_copies.find,
    too_little_work.find,
    # Kernels and precision
    tensor_cores.find,
    tf32_off.find,
    amp_partial.find,
    alignment.find,
    attention_unfused.find,
    # Compilation
    memory_bound_chain.find,
    recompilation.find,
    graph_breaks.find,
    graph_cut_early.find,
    running_eagerly.find,
    compiled_prologue.find,
    # Many devices
    data_parallel.find,
    launched_in_turn.find,
    device_overloaded.find,
    devices_serialised.find,
    late_core.find,
    collective_copies.find,
    exposed_collective.find,
)
"""In the order in which one should work, a change at a time: no kernel is worth tuning while the device waits."""
