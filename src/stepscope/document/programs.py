"""What XLA compiled and ran."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.findings import WhereEntry
from stepscope.document.kinds import (
    ByteRate,
    Bytes,
    CategoryName,
    Count,
    Field,
    FlopRate,
    Name,
    Ns,
    Positive,
    Ratio,
    Share,
    SignedNs,
)


class GraphNode(TypedDict):
    """An instruction."""

    name: Annotated[str, Field("Its name.")]
    opcode: Annotated[str, Field("What the instruction does.")]
    shape: Annotated[str, Field("Its type and shape.")]
    distance: Annotated[int, Field("Edges away: operands below zero, users above.")]


class ProgramGraph(TypedDict):
    """Instructions within two edges of one, which stands first."""

    nodes: Annotated[list[GraphNode], Field("The instructions.")]
    edges: Annotated[list[list[Count]], Field("Places in nodes: whose value is taken, and by whom.")]
    cut: Annotated[bool, Field("Whether there are more.")]


class ProgramOp(TypedDict):
    """An instruction of a program."""

    category: Annotated[CategoryName, Field("What its time is booked as; of what computes nothing no rates are told.")]
    opcode: Annotated[str, Field("What the instruction does.")]
    kind: Annotated[str, Field("What kind of work it is.")]
    kernel: Annotated[str, Field("Its main kernel.")]
    bound: Annotated[
        Literal["compute", "memory", "neither"] | None, Field("What limits it by the roofline.", "bound by")
    ]
    flops_share: Annotated[Ratio | None, Field("Of the peak rate.")]
    bandwidth_share: Annotated[Ratio | None, Field("Of the memory's bandwidth.")]
    intensity: Annotated[float | None, Field("Operations per byte.")]
    rematerialised: Annotated[bool, Field("Whether it computes again what was computed before.", "remarks")]
    outside_compilation: Annotated[bool, Field("Whether it hands work to the host.")]
    unknown: Annotated[str | None, Field("What has no formula, where its operations are not known.")]
    hlo: Annotated[str | None, Field("Its HLO text; null for ops that take little time.")]
    graph: Annotated[ProgramGraph | None, Field("What is around it.")]


class ProgramNode(TypedDict):
    """A scope of the framework, or an op; or all those that differ in their numbers alone."""

    name: Annotated[Name, Field("Its name; `*` where numbers differ.", "scope or op")]
    total_ns: Annotated[Ns, Field("Time of all of them.", "time")]
    count: Annotated[Count, Field("How many there were.", "count")]
    flops_per_s: Annotated[FlopRate | None, Field("Operations per second.", "rate")]
    bytes_per_s: Annotated[ByteRate | None, Field("Bytes per second.", "bytes")]
    op: Annotated[ProgramOp | None, Field("What an op is, of several the one that takes longest; null for scopes.", "")]
    depth: Annotated[Count, Field("How far inside other scopes.")]
    flops: Annotated[Count | None, Field("Operations; null where those of an op are not known.")]
    bytes: Annotated[Bytes | None, Field("Bytes moved at least.")]
    times: NotRequired[Annotated[Positive, Field("How many scopes or ops it stands for; absent for one.")]]


class UnknownWork(TypedDict):
    """Time of ops whose operations are not known."""

    name: Annotated[str, Field("What has no formula.")]
    ns: Annotated[Ns, Field("The time.")]


class ProgramEntry(TypedDict):
    """A compiled program on one device."""

    module: Annotated[Name, Field("Name of the compiled module.", "program")]
    device: Annotated[Count, Field("Index of the device.", "device")]
    total_ns: Annotated[Ns, Field("Time of all of them.", "time")]
    flops_per_s: Annotated[FlopRate | None, Field("Operations per second.", "rate")]
    bytes_per_s: Annotated[ByteRate | None, Field("Bytes per second.", "bytes")]
    utilisation: Annotated[
        Ratio | None,
        Field(
            "Time its matrix products would take at the peak rate over the time it computes or waits; null "
            "where not all of it is known.",
            "MFU",
        ),
    ]
    rematerialised_ns: Annotated[Ns, Field("Of ops that compute again what was computed before.", "computed again")]
    outside_compilation_ns: Annotated[
        Ns, Field("Of ops that hand work to the host in the middle of the program.", "on the host")
    ]
    waiting_ns: Annotated[
        Ns, Field("Of ops in which the device only waits: for data, another device or the host.", "waits")
    ]
    unknown: Annotated[
        list[UnknownWork],
        Field("Time of ops whose operations are not known, by what has no formula.", "work not known"),
    ]
    program: Annotated[str | None, Field("Id of the program: a number of 64 bits, as text.")]
    count: Annotated[Count, Field("How many there were.")]
    flops: Annotated[Count | None, Field("Operations; null where those of an op are not known.")]
    bytes: Annotated[Bytes | None, Field("Bytes moved at least.")]
    count_of_nodes: Annotated[Count, Field("How many scopes and ops there are.")]
    nodes: Annotated[list[ProgramNode], Field("Scopes and ops, depth first and by time; at most 150.")]


class DutyCycleEntry(TypedDict):
    """How busy compiled modules keep a device."""

    device: Annotated[int, Field("Index of the device.", "device")]
    executions: Annotated[
        Count | None,
        Field(
            "Executions of compiled modules that began in the used steps; null, as the time they "
            "take, where nothing tells one from the next.",
            "executions",
        ),
    ]
    executing_ns_per_step: Annotated[Ns | None, Field("Time in which one executes.", "executing, per step")]
    share: Annotated[
        Share | None,
        Field(
            "Time from the first to the last op of each execution, as a share of the steps; null "
            "where the device executed no module, or nothing tells one execution from the next.",
            "duty cycle",
        ),
    ]
    collective_share: Annotated[
        Share | None,
        Field("Time in which collectives ran, hidden or exposed, as a share of the steps.", "in collectives"),
    ]


class GraphBuildingEntry(TypedDict):
    """Time in which the host builds graphs."""

    ns_per_step: Annotated[Ns, Field("Time per step.")]
    overlapped_share: Annotated[
        Share | None, Field("Share of it in which every device that executes modules worked: healthy.")
    ]


class CompilationEntry(TypedDict):
    """A compilation inside the profile."""

    step: Annotated[int | None, Field("Index of the step it lies in.", "step")]
    dur_ns: Annotated[Ns, Field("How long it takes.", "time")]
    module: Annotated[Name | None, Field("Name of the compiled module.", "module")]
    parameters: Annotated[str | None, Field("Types and shapes of the new program's parameters.", "parameters")]
    where: Annotated[WhereEntry | None, Field("The place in the user's program.", "where")]
    start_ns: Annotated[SignedNs, Field("When it begins.")]
    previous_parameters: Annotated[str | None, Field("Those of the program of this module that ran before it.")]
    again: Annotated[bool, Field("Whether another program of this module ran before in the profile.")]
    changed: Annotated[
        str | None, Field("The parameters that differ from the program before; null where that is not known.")
    ]


class Xla(TypedDict):
    """What XLA did in the used steps; absent from profiles without its ops."""

    duty_cycle: Annotated[list[DutyCycleEntry], Field("One row per device.")]
    graph_building: Annotated[
        GraphBuildingEntry | None, Field("Time the main thread traced and lowered graphs; null where it did not.")
    ]
    compilations: Annotated[list[CompilationEntry], Field("Compilations inside the profile, in time order.")]


class CountedEntry(TypedDict):
    """A counter of PyTorch/XLA."""

    name: Annotated[Name, Field("Its name.", "name")]
    count: Annotated[Positive, Field("How many there were.", "in the window")]
    total: Annotated[float | None, Field("Sum of its samples.", "together")]
    unit: Annotated[Literal["ns", "bytes"] | None, Field("Of the sum; null for other numbers.")]
    tells: Annotated[
        bool,
        Field("Whether it is a compilation, a transfer, a value that was read or an op that fell back to the CPU."),
    ]


class LazyMetricsEntry(TypedDict):
    """What PyTorch/XLA counted of itself (metrics_report()) in the recorded window, of which the used steps are a
    part; absent where that was not kept with the profile."""

    steps: Annotated[Positive | None, Field("Steps of the window.")]
    counted: Annotated[list[CountedEntry], Field("What happened at all in it.")]
