"""``stepscope.report/1``: the whole document."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.findings import FindingEntry
from stepscope.document.input import InputPipeline
from stepscope.document.kernels import (
    KernelEntry,
    LoggedOpEntry,
    PlacementEntry,
    PrecisionEntry,
    Roofline,
    UtilisationEntry,
)
from stepscope.document.kinds import Field, NonEmpty, Ns, Share
from stepscope.document.memory import MemoryEntry, ProgramMemory
from stepscope.document.ops import AnnotationsEntry, FunctionUseEntry, LayersEntry, OpsEntry
from stepscope.document.profile import ProfileEntry
from stepscope.document.programs import LazyMetricsEntry, ProgramEntry, Xla
from stepscope.document.ranks import GradientsEntry, OverRanks, RanksEntry, TrafficEntry
from stepscope.document.serving import CounterUseEntry, NetworkUseEntry, ServingEntry
from stepscope.document.steps import AccountingRow, BreakdownEntry, StepEntry, SummaryEntry
from stepscope.document.waits import Copy, CriticalPathEntry, IdleEntry, LaunchDelayEntry, OverlapEntry, SyncEntry


class Tool(TypedDict):
    """What wrote a document."""

    name: Annotated[Literal["stepscope"], Field("Always the same.")]
    version: Annotated[NonEmpty, Field("Version that wrote it.")]


class WhatIfEntry(TypedDict):
    """How far the replay can be trusted, and the step time with every finding of the plan fixed."""

    replay_error: Annotated[
        float | None, Field("Replayed step time less the measured one, as a share of it; null without a replay.")
    ]
    residual_share: Annotated[
        Share | None, Field("Share of the step that the replay takes as it was, without a reason.")
    ]
    reason: Annotated[str | None, Field("Why there is no replay.")]
    combined_step_ns: Annotated[
        Ns | None, Field("Step time with every finding of the plan fixed; null where that was not replayed.")
    ]


class Analyses(TypedDict):
    """A value per analysis; one that had nothing to look at may be missing."""

    breakdown: NotRequired[
        Annotated[list[BreakdownEntry], Field("Where each device's steps go on average; of very many the first 64.")]
    ]
    idle: NotRequired[Annotated[IdleEntry, Field("When devices were idle.")]]
    functions: NotRequired[
        Annotated[
            list[FunctionUseEntry],
            Field("Of a profile of Python functions alone: those with most time of their own."),
        ]
    ]
    launch_delay: NotRequired[
        Annotated[list[LaunchDelayEntry], Field("How long devices take to start what is launched, a row per device.")]
    ]
    syncs: NotRequired[Annotated[list[SyncEntry], Field("Where the host waits for a device.")]]
    copies: NotRequired[Annotated[list[Copy], Field("Copies, by place and direction.")]]
    overlap: NotRequired[
        Annotated[
            list[OverlapEntry],
            Field(
                "How much of collectives and copies other work hides; none where none ran in the used steps.", most=2
            ),
        ]
    ]
    critical_path: NotRequired[
        Annotated[CriticalPathEntry, Field("What sets the step time; of profiles with a device.")]
    ]
    kernels: NotRequired[Annotated[list[KernelEntry], Field("Kernels, those that take longest.", most=50)]]
    precision: NotRequired[Annotated[PrecisionEntry, Field("Number formats and tensor cores; of GPUs alone.")]]
    placement: NotRequired[Annotated[PlacementEntry, Field("Which ops ran on the host and which on devices.")]]
    logged_placement: NotRequired[
        Annotated[
            list[LoggedOpEntry],
            Field(
                "Ops of the used steps on the host that a log of device placement beside the profile has on the CPU."
            ),
        ]
    ]
    minor_findings: NotRequired[
        Annotated[
            list[FindingEntry],
            Field("What rules found whose fix gains too little, by itself or once the findings are fixed."),
        ]
    ]
    xla: NotRequired[Annotated[Xla, Field("What XLA compiled and ran.")]]
    lazy_metrics: NotRequired[Annotated[LazyMetricsEntry, Field("What PyTorch/XLA counted of itself.")]]
    ops: NotRequired[Annotated[OpsEntry, Field("Ops of the framework, by type and by place.")]]
    layers: NotRequired[
        Annotated[
            list[LayersEntry],
            Field(
                "What layers cost, per device (or on the host, where there is no device): modules of "
                "PyTorch, name scopes of JAX and TensorFlow."
            ),
        ]
    ]
    annotations: NotRequired[Annotated[AnnotationsEntry, Field("Time per annotation.")]]
    counters: NotRequired[
        Annotated[
            list[CounterUseEntry],
            Field(
                "Values that devices counted in the used steps (power, utilisation, hardware counters); "
                "units are not recorded."
            ),
        ]
    ]
    network: NotRequired[
        Annotated[
            list[NetworkUseEntry],
            Field("What Megascale did to exchange data between slices of TPUs, what took longest first."),
        ]
    ]
    serving: NotRequired[Annotated[ServingEntry, Field("Iterations of a server of language models.")]]
    memory: NotRequired[Annotated[MemoryEntry, Field("Memory that allocators gave.")]]
    program_memory: NotRequired[Annotated[ProgramMemory, Field("Memory of compiled programs.")]]
    roofline: NotRequired[
        Annotated[Roofline, Field("Where ops and kernels whose cost is known stand under the device's roofline.")]
    ]
    mfu: NotRequired[
        Annotated[
            list[UtilisationEntry], Field("Model FLOPs utilisation per device; activations computed again count.")
        ]
    ]
    op_tree: NotRequired[
        Annotated[
            list[ProgramEntry],
            Field("Ops of compiled programs (XLA) by scope: a row per program and device, what takes longest first."),
        ]
    ]
    input: NotRequired[Annotated[InputPipeline, Field("The input pipeline.")]]
    ranks: NotRequired[Annotated[RanksEntry, Field("What the ranks of a job say together.")]]
    over_ranks: NotRequired[Annotated[OverRanks, Field("Ranks of a job merged by name.")]]
    gradients: NotRequired[
        Annotated[
            GradientsEntry,
            Field("The quick estimate of what reducing gradients takes: parameters × bytes / bandwidth."),
        ]
    ]
    collectives: NotRequired[Annotated[list[TrafficEntry], Field("Collectives by group, kind and size.")]]


class Report(TypedDict):
    """Why each step takes as long as it does. Times are integer nanoseconds, sizes are bytes, shares are fractions
    of one. An absent fact is null, never 0. Within major version 1 keys are only ever added: ignore the ones
    you do not know."""

    schema: Annotated[Literal["stepscope.report/1"], Field("The name and the major version of this schema.")]
    tool: Annotated[Tool, Field("What wrote the document.")]
    profile: Annotated[ProfileEntry, Field("What was read.")]
    steps: Annotated[list[StepEntry], Field("Every step of every rank, in order.")]
    accounting: Annotated[
        list[AccountingRow],
        Field(
            "A row per device and step, and what lies before, between and after; the parts of a row sum to its "
            "duration, and a device's rows tile its time."
        ),
    ]
    summary: Annotated[SummaryEntry, Field("The diagnosis and the figures above everything else.")]
    findings: Annotated[
        list[FindingEntry],
        Field("What costs time, largest saving first, what could not be determined last."),
    ]
    plan: Annotated[list[str], Field("Ids of findings in the order one should work.", distinct=True)]
    whatif: Annotated[
        WhatIfEntry,
        Field("How far the replay can be trusted, and the step time with every finding of the plan fixed."),
    ]
    analyses: Annotated[Analyses, Field("A value per analysis; one that had nothing to look at may be missing.")]
