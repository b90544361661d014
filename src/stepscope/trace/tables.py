"""The declared tables of a trace: one class per table, one field per column.

A table is a frozen dataclass of equally long numpy arrays. The field metadata is the declaration (type, unit,
nullable, one sentence); ``docs/tables.md``, the polars frames and the self-check are all made from it
(``columns.py``).

Absent facts: int64 columns hold :data:`NULL`, int32 columns (ids and dictionary codes) hold ``-1`` and float columns
hold NaN. ``frame()`` turns all three into real nulls; nothing is ever 0 because it was not recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.record import record
from stepscope.trace.columns import (
    F64,
    I16,
    I32,
    I64,
    NULL,
    U8,
    Bools,
    Rows,
    Table,
    column,
    dtype_of,
    is_null,
)
from stepscope.trace.kinds import (
    DEVICE_BUSY_KINDS,
    Begun,
    Direction,
    FlowKind,
    Kind,
    LaunchBasis,
    MarkerSource,
    MemoryKind,
    TrackKind,
)

__all__ = [
    "DEVICE_BUSY_KINDS", "F64", "I16", "I32", "I64", "NULL", "TABLES", "U8", "Begun", "Bools", "Counters", "DeviceOps",
    "DeviceWaits", "Direction", "FlowKind", "Flows", "Frames", "HostOps", "Instants", "Iterators", "Kind",
    "LaunchBasis", "Launches", "Looks", "MarkerSource", "Memory", "MemoryKind", "Metrics", "Nodes", "Placements",
    "Programs", "Rows", "Slices", "StepMarks", "Table", "Tensors", "TrackKind", "Tracks", "XlaOps", "column",
    "dtype_of", "is_null",
]  # fmt: skip


@record
class Tracks(Table):
    """A row per host thread, device stream or other lane."""

    kind: U8 = column("What the track holds.", labels=TrackKind)
    process: I32 = column("Its process.", text=True, nullable=True)
    thread: I32 = column("Its thread or stream.", text=True, nullable=True)
    label: I32 = column("Name for people.", text=True, nullable=True)
    device: I32 = column("Device index of a device track.", nullable=True)
    stream: I64 = column("Stream of a device track.", nullable=True)


@record
class Slices(Table):
    """Every event with a duration, sorted by track, start and falling duration."""

    track: I32 = column("Track the slice lies on.", table="tracks")
    start_ns: I64 = column("Start.", unit="ns")
    dur_ns: I64 = column("Duration.", unit="ns")
    name: I32 = column("Name as recorded.", text=True)
    kind: U8 = column("What the slice is.", labels=Kind)
    category: I32 = column("Category as recorded.", text=True, nullable=True)
    depth: I16 = column("Number of slices on the track that enclose this one.")
    parent: I32 = column("Innermost slice of the track that encloses this one.", table="slices", nullable=True)
    correlation: I64 = column("Id that a launch and its device ops share.", nullable=True)
    external_id: I64 = column("Id of the host op a runtime call or device op belongs to.", nullable=True)
    offset: I64 = column("Its place in the (decompressed) file.", unit="bytes", nullable=True)


@record
class HostOps(Table):
    """What host ops add to their slice."""

    slice: I32 = column("The slice.", table="slices")
    sequence: I64 = column("Autograd sequence number.", nullable=True)
    forward_thread: I64 = column("Autograd's number of the thread that ran the forward op.", nullable=True)
    input_dims: I32 = column("Shapes of the inputs.", text=True, nullable=True)
    input_types: I32 = column("Types of the inputs.", text=True, nullable=True)
    concrete_inputs: I32 = column("Values of scalar inputs.", text=True, nullable=True)
    call_stack: I32 = column("Python call stack of the op, innermost first.", text=True, nullable=True)


@record
class Frames(Table):
    """What is known of the lines of Python frames beside their names."""

    slice: I32 = column("The slice.", table="slices")
    call_line: I64 = column("Line of the calling function's code that called it.", nullable=True)
    begun: U8 = column("Whether it was called while the profiler recorded.", labels=Begun)


@record
class Looks(Table):
    """Lines at which a thread was found by looking at it from inside the job, in time order."""

    time_ns: I64 = column("When.", unit="ns")
    track: I32 = column("The thread.", table="tracks")
    file: I32 = column("File of the innermost function that is the program's own.", text=True)
    line: I64 = column("Line that it was at.")
    function: I32 = column("Name of that function.", text=True)
    core_wait_ns: I64 = column(
        "How long the thread had been ready to run and had no core, since the first look.", unit="ns", nullable=True
    )


@record
class DeviceOps(Table):
    """What slices that occupy a device add; sorted by device and start."""

    slice: I32 = column("The slice.", table="slices")
    device: I32 = column("Device index.")
    stream: I64 = column("Stream.", nullable=True)
    launch: I32 = column("Runtime call that launched the op.", table="slices", nullable=True)
    bytes: I64 = column("Bytes moved or set.", unit="bytes", nullable=True, least=0)
    direction: U8 = column("Which way a copy goes.", labels=Direction)
    source_memory: U8 = column("Memory a copy reads.", labels=MemoryKind)
    target_memory: U8 = column("Memory a copy writes.", labels=MemoryKind)
    grid: I32 = column("Grid of blocks.", text=True, nullable=True)
    block: I32 = column("Threads of a block.", text=True, nullable=True)
    registers: I64 = column("Registers per thread.", nullable=True, least=0)
    shared_memory: I64 = column("Shared memory per block.", unit="bytes", nullable=True, least=0)
    occupancy_pct: F64 = column("Occupancy the profiler estimated.", unit="%", nullable=True)
    graph: I64 = column("Id of the device graph the op ran in.", nullable=True)
    collective: I32 = column("Collective.", text=True, nullable=True)
    process_group: I32 = column("Process group of a collective.", text=True, nullable=True)
    dtype: I32 = column("Element type of a collective's message.", text=True, nullable=True)
    message_elements: I64 = column("Elements a collective takes in.", nullable=True, least=0)
    group_size: I64 = column("Ranks in the process group.", nullable=True, least=1)


@record
class DeviceWaits(Table):
    """Device-side waits and event records: never busy time."""

    slice: I32 = column("The slice.", table="slices")
    device: I32 = column("Device index.", nullable=True)
    stream: I64 = column("Stream that waits or records.", nullable=True)
    wait_on_stream: I64 = column("Stream that is waited for.", nullable=True)
    wait_on_correlation: I64 = column("Correlation of the event record that is waited for.", nullable=True)


@record
class Launches(Table):
    """Which runtime call launched which device op."""

    call: I32 = column("The runtime call's slice.", table="slices")
    op: I32 = column("The device op's slice.", table="slices")
    basis: U8 = column("How the two were matched.", labels=LaunchBasis)


@record
class Flows(Table):
    """Other connections between slices."""

    kind: U8 = column("Why the two are connected.", labels=FlowKind)
    source: I32 = column("The earlier slice.", table="slices")
    target: I32 = column("The later slice.", table="slices")


@record
class Memory(Table):
    """Allocations and frees, in time order."""

    time_ns: I64 = column("When.", unit="ns")
    track: I32 = column("Thread that allocated or freed.", table="tracks")
    device_type: I64 = column("Kind of device in the framework's numbering (PyTorch: 0 CPU, 1 CUDA).", nullable=True)
    device: I64 = column("Device index.", nullable=True)
    address: I64 = column("Address of the block.", nullable=True)
    bytes: I64 = column("Bytes allocated, negative when freed.", unit="bytes", nullable=True)
    allocated: I64 = column("Bytes in use after the event.", unit="bytes", nullable=True)
    reserved: I64 = column("Bytes held by the allocator after the event.", unit="bytes", nullable=True)
    allocator: I32 = column("Allocator.", text=True, nullable=True)
    limit: I64 = column("Bytes that the allocator may give out at most.", unit="bytes", nullable=True)
    available: I64 = column("Bytes of these that it has left after the event.", unit="bytes", nullable=True)
    fragmentation: F64 = column("Share of its free bytes that lie outside of its largest free piece.", nullable=True)
    op: I32 = column("Op that asked for the block, where the allocator says so.", text=True, nullable=True)
    region: I32 = column("What the op asked for it as (output, temp, persist).", text=True, nullable=True)
    dtype: I32 = column("Type of the tensor's elements.", text=True, nullable=True)
    shape: I32 = column("Shape of the tensor.", text=True, nullable=True)
    offset: I64 = column("Its place in the (decompressed) file.", unit="bytes", nullable=True)

    @staticmethod
    def untold(rows: int) -> dict[str, Any]:
        """The columns of allocators that say no more than how much, in files in which no event stands for it."""
        sizes, texts = np.full(rows, NULL, np.int64), np.full(rows, -1, np.int32)
        fragmentation = np.full(rows, np.nan)
        told = {"limit": sizes, "available": sizes, "offset": sizes, "fragmentation": fragmentation}
        return told | dict.fromkeys(("op", "region", "dtype", "shape"), texts)


@record
class Counters(Table):
    """Sampled values."""

    time_ns: I64 = column("When.", unit="ns")
    track: I32 = column("Track of the counter.", table="tracks")
    name: I32 = column("Name as recorded.", text=True)
    value: F64 = column("Sampled value, where it is a single number.", nullable=True)
    offset: I64 = column("Its place in the (decompressed) file.", unit="bytes", nullable=True)


@record
class Instants(Table):
    """Events without a duration that belong to no other table."""

    time_ns: I64 = column("When.", unit="ns")
    track: I32 = column("Track of the event.", table="tracks")
    name: I32 = column("Name as recorded.", text=True)
    category: I32 = column("Category as recorded.", text=True, nullable=True)
    offset: I64 = column("Its place in the (decompressed) file.", unit="bytes", nullable=True)


@record
class StepMarks(Table):
    """Slices that are steps by what the profile says beside their name."""

    slice: I32 = column("The slice (of kind step).", table="slices")
    source: U8 = column("What says so.", labels=MarkerSource)
    number: I64 = column("Number of the step as recorded.", nullable=True)


@record
class XlaOps(Table):
    """What ops of modules compiled by XLA add to their slice, on devices and (XLA on the CPU) host threads."""

    slice: I32 = column("The slice.", table="slices")
    module: I32 = column("HLO module the op belongs to.", text=True, nullable=True)
    program: I64 = column("Id of the compiled program.", nullable=True)
    run: I64 = column("Id of the execution of the module the op ran in.", nullable=True)
    op: I32 = column("Name of the HLO instruction.", text=True, nullable=True)
    category: I32 = column("HLO category or opcode.", text=True, nullable=True)
    scope: I32 = column("Name scope of the framework op (op_name).", text=True, nullable=True)
    flops: I64 = column("Floating-point operations per execution.", nullable=True)
    bytes_accessed: I64 = column("Bytes read and written per execution.", unit="bytes", nullable=True)
    source: I32 = column("Source line as file:line.", text=True, nullable=True)
    replica_groups: I32 = column("Replica groups of a collective.", text=True, nullable=True)


@record
class Programs(Table):
    """Programs compiled by XLA that the profile describes."""

    program: I64 = column("Id of the compiled program.", nullable=True)
    module: I32 = column("HLO module it was compiled from.", text=True)
    parameters: I32 = column("Types and shapes of its parameters, as f32[512,256] and so on.", text=True, nullable=True)


@record
class Nodes(Table):
    """What nodes of a TensorFlow graph (StepStats, Timeline) add to their slice."""

    slice: I32 = column("The slice.", table="slices")
    node: I32 = column("Name of the node.", text=True)
    op: I32 = column("Type of the node's op.", text=True, nullable=True)
    inputs: I32 = column("Names of the node's inputs, comma-separated.", text=True, nullable=True)
    placement: I32 = column("Device the node was placed on.", text=True, nullable=True)
    scheduled_ns: I64 = column("When the node became ready.", unit="ns", nullable=True)
    op_start_ns: I64 = column("When its kernel began.", unit="ns", nullable=True)
    op_end_ns: I64 = column("When its kernel returned.", unit="ns", nullable=True)


@record
class Tensors(Table):
    """Outputs of a TensorFlow graph's nodes."""

    slice: I32 = column("The node's slice.", table="slices")
    slot: I32 = column("Which of the node's outputs.")
    dtype: I32 = column("Element type.", text=True, nullable=True)
    shape: I32 = column("Shape, as [2,3].", text=True, nullable=True)
    requested: I64 = column("Bytes asked for.", unit="bytes", nullable=True)
    allocated: I64 = column("Bytes allocated.", unit="bytes", nullable=True)
    allocator: I32 = column("Allocator.", text=True, nullable=True)
    buffer: I64 = column("Address of the tensor's buffer.", nullable=True)


@record
class Iterators(Table):
    """What iterators of tf.data say of themselves each time they are asked for an element."""

    slice: I32 = column("The slice.", table="slices")
    dataset: I32 = column("Node of the dataset's graph, or those that were made one.", text=True, nullable=True)
    parallelism: I64 = column("Calls or reads that run at once.", nullable=True)
    buffer_limit: I64 = column("Elements that are kept ahead at most.", nullable=True)
    cpu_budget: I64 = column("Cores that autotuning may use.", nullable=True)
    threadpool_size: I64 = column("Threads that run the functions of the pipeline.", nullable=True)
    autotune: I32 = column("Whether its number is chosen while it runs: true or false.", text=True, nullable=True)


@record
class Metrics(Table):
    """What PyTorch/XLA counts of itself (``metrics_report()``), as the recorded window began and as it ended."""

    name: I32 = column("Name as reported.", text=True)
    count_before: I64 = column("How often it had happened by the beginning; 0 where it was not in the report yet.")
    count_after: I64 = column("The same by the end.")
    total_before: F64 = column("Sum of its samples by the beginning.", nullable=True)
    total_after: F64 = column("The same by the end.", nullable=True)
    unit: I32 = column("Unit of the sums: ns or bytes; none for other numbers.", text=True, nullable=True)
    steps: I64 = column("Steps of the window.", nullable=True)


@record
class Placements(Table):
    """Where TensorFlow's log of device placement says that ops run."""

    node: I32 = column("Name of the node; none of an op that ran eagerly.", text=True, nullable=True)
    op: I32 = column("Type of the op.", text=True)
    device: I32 = column("Device as logged.", text=True)
    count: I64 = column("How often the log says so.")


TABLES: dict[str, type[Table]] = {
    "tracks": Tracks,
    "slices": Slices,
    "host_ops": HostOps,
    "frames": Frames,
    "looks": Looks,
    "device_ops": DeviceOps,
    "device_waits": DeviceWaits,
    "launches": Launches,
    "flows": Flows,
    "memory": Memory,
    "counters": Counters,
    "instants": Instants,
    "step_marks": StepMarks,
    "xla_ops": XlaOps,
    "programs": Programs,
    "nodes": Nodes,
    "tensors": Tensors,
    "iterators": Iterators,
    "metrics": Metrics,
    "placements": Placements,
}
