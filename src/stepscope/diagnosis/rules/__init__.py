"""The rules that read one profile, in one list. Each is a file: its declaration ``RULE``, and below it ``find``."""

from __future__ import annotations

from typing import Protocol

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.rule import Rule
from stepscope.diagnosis.rules import (
    alignment,
    allocator_bound,
    allocator_retries,
    amp_partial,
    anomaly_detection,
    attention_unfused,
    between_steps,
    callback_time,
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
    hot_python,
    input_bound,
    late_core,
    launch_bound,
    launched_in_turn,
    long_launch,
    loop_sync,
    loss_scaling,
    low_precision_share,
    memory_bound_chain,
    ops_fall_back,
    ops_on_host,
    optimizer_loop,
    python_overhead,
    recompilation,
    repeated_copies,
    running_eagerly,
    slow_steps,
    sync_bound,
    tensor_cores_unused,
    tf32_off,
    too_little_work,
    transfer_bound,
    worker_starts,
)


class RuleFile(Protocol):
    """What a rule's file holds."""

    @property
    def RULE(self) -> Rule:
        """Its declaration."""

    def find(self, facts: Facts, /) -> list[Finding]:
        """What the rule says of a profile."""


RULES: tuple[RuleFile, ...] = (
    # Input
    worker_starts,
    input_bound,
    # Gaps
    callback_time,
    between_steps,
    host_callback,
    recompilation,
    slow_steps,
    code_loading,
    sync_bound,
    loop_sync,
    loss_scaling,
    allocator_retries,
    allocator_bound,
    graph_building,
    transfer_bound,
    # Launches and placement
    hot_python,
    optimizer_loop,
    python_overhead,
    running_eagerly,
    launch_bound,
    long_launch,
    graph_copies,
    host_contention,
    ops_on_host,
    ops_fall_back,
    exposed_copy,
    host_offload,
    repeated_copies,
    too_little_work,
    # Kernels and precision
    tensor_cores_unused,
    low_precision_share,
    tf32_off,
    amp_partial,
    anomaly_detection,
    alignment,
    attention_unfused,
    # Compilation
    memory_bound_chain,
    graph_breaks,
    graph_cut_early,
    compiled_prologue,
    # Many devices
    data_parallel,
    launched_in_turn,
    device_overloaded,
    devices_serialised,
    late_core,
    collective_copies,
    exposed_collective,
)
"""In the order in which one should work, a change at a time: no kernel is worth tuning while the device waits."""

DECLARED: dict[str, Rule] = {file.RULE.id: file.RULE for file in RULES}
"""By their ids, in the same order."""
