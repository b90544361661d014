"""What StepStats and Timelines hold of a session's run, as columns in file order, before it becomes a trace.

Times are Unix times in ns, texts are codes of the builder that the trace is made with, executions are named by their
position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from stepscope.record import record
from stepscope.trace.tables import F64, I32, I64


@record
class Executions:
    """What ran: nodes, kernels, copies, ranges and calls of host threads. NULL and -1 are absent."""

    row: I32
    """Which of the device rows it lies in."""
    name: I32
    """Name as recorded."""
    label: I32
    """What the file says of a kernel or copy beside its name: index into ``Tf1Recording.labels``."""
    op: I32
    """Type of a node's op."""
    inputs: I32
    """Names of a node's inputs, comma-separated."""
    lane: I64
    """Lane of a node, thread of a host range or call."""
    start_ns: I64
    dur_ns: I64
    scheduled_ns: I64
    """When a node became ready, when a kernel was launched."""
    op_start_ns: I64
    op_end_ns: I64
    offset: I64

    def __len__(self) -> int:
        """The number of executions."""
        return len(self.row)


@record
class Outputs:
    """Tensors that executions put out: the columns of ``tables.Tensors``."""

    execution: I32
    slot: I32
    dtype: I32
    shape: I32
    requested: I64
    allocated: I64
    allocator: I32
    buffer: I64


@record
class Allocations:
    """What executions allocated and freed."""

    execution: I32
    time_ns: I64
    bytes: I64
    allocated: I64
    allocator: I32


@record
class Readings:
    """Values of counters."""

    process: str
    time_ns: I64
    name: I32
    value: F64
    offset: I64


@record
class Tf1Recording:
    """All that a file says of the run."""

    rows: Sequence[str]
    """Names of the device rows."""
    executions: Executions
    outputs: Outputs
    allocations: Allocations
    labels: Sequence[str] = ()
    thread_names: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """By row and thread."""
    knows_threads: bool = True
    """Whether the lanes of host ranges and calls are threads."""
    readings: Readings | None = None
    steps: Sequence[tuple[int, int]] = ()
    """Starts and ends of the runs that are steps, where several were recorded."""
