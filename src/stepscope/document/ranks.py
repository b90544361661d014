"""What the ranks of a job say together, and what they exchange."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.kinds import (
    ByteRate,
    Bytes,
    Count,
    Field,
    Index,
    LateCause,
    Name,
    Ns,
    Parts,
    Path,
    Positive,
    Rate,
    Ratio,
    Share,
    SignedBytes,
    SignedNs,
)


class UnreadableRank(TypedDict):
    """A file that could not be read."""

    rank: NotRequired[Annotated[Count | None, Field("Null where the file does not tell.", "rank")]]
    path: Annotated[Path, Field("Path of the file.", "file")]
    reason: Annotated[Name, Field("Why not.", "why")]


class RankClock(TypedDict):
    """How a rank's clock relates to the first rank's."""

    rank: Annotated[Count, Field("Rank of the process; null where the profile does not say it.", "rank")]
    offset_ns: Annotated[SignedNs | None, Field("What to add at `at_ns`.", "clock is behind by")]
    drift: Annotated[float | None, Field("ns per ns.", "drift (µs/s)")]
    uncertainty_ns: Annotated[Ns | None, Field("How far off that may be.", "±")]
    collectives: Annotated[Count, Field("Collectives it was found by.", "collectives")]
    at_ns: Annotated[SignedNs | None, Field("The time for which the offset holds.")]


class StragglerKernel(TypedDict):
    """A kernel that takes longer than on others."""

    name: Annotated[str, Field("Its name.")]
    times: Annotated[float, Field("How many times as long.")]


class StragglerEntry(TypedDict):
    """A rank that is late step after step."""

    rank: Annotated[Count, Field("Rank of the process; null where the profile does not say it.")]
    device: Annotated[Index | None, Field("Index of the device; null for the host's time.")]
    host: Annotated[str | None, Field("Name of the machine.")]
    waited_ns_per_step: Annotated[Ns, Field("What the other ranks wait for it, on average.")]
    saving_ns_per_step: Annotated[Ns, Field("What a step gains without it.")]
    steps: Annotated[Count, Field("Steps in which it was the late one.")]
    p_value: Annotated[Rate, Field("Probability of so many late steps by chance.")]
    cause: Annotated[LateCause, Field("Why it is late.")]
    category: Annotated[str | None, Field("The category that takes longer than on others.")]
    excess_ns_per_step: Annotated[Parts, Field("Time it spends more than the median of the others, by category.")]
    kernels: Annotated[list[StragglerKernel], Field("Kernels that take longer than on others.")]


class LateStepEntry(TypedDict):
    """Whom a step waited for."""

    number: Annotated[int, Field("Number of the step.", "step")]
    dur_ns: Annotated[Ns | None, Field("How long it takes.", "step time")]
    rank: Annotated[Count, Field("The late rank.", "late rank")]
    waited_ns: Annotated[Ns, Field("What the others waited.", "others waited")]
    cause: Annotated[LateCause, Field("Why it was late.", "because of")]
    chain: Annotated[list[Count], Field("Ranks from the one to blame to the one that came last.", "by way of")]
    used: NotRequired[Annotated[bool, Field("Whether the step is in the means.", "in the means")]]
    device: Annotated[Index | None, Field("Index of the device; null for the host's time.")]


class RankRow(TypedDict):
    """A rank, or one device of it."""

    rank: Annotated[Count, Field("Rank of the process; null where the profile does not say it.", "rank")]
    host: Annotated[Name | None, Field("Name of the machine.", "host")]
    step_ns: Annotated[Ns, Field("Mean step.", "step time")]
    parts_ns_per_step: Annotated[Parts, Field("Where it goes.", "")]
    made_wait_ns_per_step: Annotated[
        Ns | None, Field("What the others waited for it; null where not determined.", "others wait for it")
    ]
    late_steps: Annotated[
        Count | None, Field("Steps in which it was last; null where that is not told.", "late in steps")
    ]
    device: Annotated[Index | None, Field("Index of the device; null for the host's time.")]
    bottleneck: Annotated[str, Field("What bounds its step.")]
    findings: Annotated[list[str], Field("Rules that found something in this rank alone.")]
    pipeline_wait_ns_per_step: Annotated[
        Ns | None,
        Field("Waiting for a neighbour in a pipeline: the bubble. Null without sends from one rank to another."),
    ]
    p_value: Annotated[
        float | None, Field("How rarely chance makes any rank as late as this one; null where not tested.")
    ]


class RankOnPath(TypedDict):
    """How much of the step time a rank sets."""

    rank: Annotated[Count, Field("The rank.", "rank")]
    ns_per_step: Annotated[Ns, Field("Its time on the path.", "on the path")]
    share: Annotated[Share, Field("Share of the path.", "share")]
    parts_ns_per_step: Annotated[Parts, Field("What that time goes to.", "of which")]


class JobPathEntry(TypedDict):
    """The critical path over all ranks: at each collective it goes on along the rank that arrived last."""

    why_not: Annotated[str | None, Field("Why there is none, in words that follow 'because'.")]
    steps: Annotated[Count | None, Field("Steps it is of.")]
    ns_per_step: Annotated[Ns | None, Field("Its length; sum of its parts.")]
    longer_ns_per_step: Annotated[
        SignedNs | None,
        Field("By how much it is longer than these steps, the mean of ranks, which begin and end them apart."),
    ]
    hops_per_step: Annotated[Rate | None, Field("How often it goes to another rank.")]
    undivided_per_step: Annotated[
        Rate | None, Field("Collectives on it of which the last rank is not known: it stays on its rank.")
    ]
    parts_ns_per_step: Annotated[Parts | None, Field("What its time goes to, on all ranks.")]
    ranks: Annotated[list[RankOnPath], Field("Ranks on it, those with most of it first.", most=64)]


class RanksEntry(TypedDict):
    """What the ranks of a job say together."""

    world_size: Annotated[Count | None, Field("Ranks of the job; null where that is not recorded.")]
    present: Annotated[Count, Field("Ranks whose profile was read.")]
    missing: Annotated[list[Count], Field("Ranks of the job without a profile.")]
    unreadable: Annotated[list[UnreadableRank], Field("Files that could not be read.")]
    clocks: Annotated[
        list[RankClock],
        Field(
            "What to add to each rank's clock to have the first one's: offset_ns + drift x (time - "
            "at_ns). Null where no collective tells."
        ),
    ]
    determined: Annotated[bool, Field("Whether there are clocks and steps enough to tell a straggler from chance.")]
    stragglers: Annotated[list[StragglerEntry], Field("Ranks that are late step after step, beyond chance.")]
    steps: Annotated[list[LateStepEntry], Field("The rank that each step waited for.")]
    per_rank: Annotated[
        list[RankRow], Field("One entry per rank and device (or host); means over the steps that count.")
    ]
    critical_path: NotRequired[Annotated[JobPathEntry, Field("What sets the step time, over all ranks.")]]


class RankUse(TypedDict):
    """One rank's."""

    rank: Annotated[Count, Field("The rank.")]
    ns_per_step: Annotated[Ns, Field("Time over all its devices.")]
    count_per_step: Annotated[Rate | None, Field("How many; null where not counted.")]


class UseOverRanks(TypedDict):
    """What takes time under one name."""

    name: Annotated[Name, Field("Its name.")]
    of: Annotated[str | None, Field("The side of an op; who does a stage; else null.")]
    ranks: Annotated[Positive, Field("How many ranks have it among their 50 dearest.")]
    mean_ns_per_step: Annotated[Ns, Field("Their mean.")]
    count_per_step: Annotated[Rate | None, Field("How many; null where not counted.")]
    each: Annotated[list[RankUse], Field("Those with most first; of many ranks 8 with most and 8 with least.", most=16)]


class RankMemory(TypedDict):
    """One rank's."""

    rank: Annotated[Count, Field("The rank.")]
    bytes: Annotated[SignedBytes, Field("How much.")]


class MemoryOverRanks(TypedDict):
    """Memory of one kind."""

    what: Annotated[
        str,
        Field("`peak`, `reserved`, `left` of the limit, `growth` per step, or what is in use at the peak, by its use."),
    ]
    on_host: Annotated[bool, Field("Whether it is the host's.")]
    ranks: Annotated[Positive, Field("How many ranks recorded it.")]
    mean_bytes: Annotated[SignedBytes, Field("Their mean.")]
    each: Annotated[list[RankMemory], Field("As above.", most=16)]


class OverRanks(TypedDict):
    """Time and memory of the ranks of a job by name, means of their used steps."""

    kernels: Annotated[list[UseOverRanks], Field("Kernels.", most=50)]
    ops: Annotated[
        list[UseOverRanks],
        Field("Ops by type: device time they launch themselves, without any their own on the host.", most=50),
    ]
    layers: Annotated[list[UseOverRanks], Field("Layers without those inside.", most=50)]
    stages: Annotated[list[UseOverRanks], Field("Stages of the input.", most=50)]
    memory: Annotated[list[MemoryOverRanks], Field("Of the allocator that holds most.")]


class GradientsEntry(TypedDict):
    """The quick estimate of what reducing gradients takes."""

    source: Annotated[
        Literal["trace", "given"],
        Field("Whether bytes are those of the trace, or of a number of parameters that was given."),
    ]
    parameters: Annotated[Count, Field("How many there are.")]
    bytes_per_parameter: Annotated[Count, Field("4 of TensorFlow, whose variables stay float32 with fp16 on.")]
    bytes_per_step: Annotated[Count, Field("Bytes that are reduced per step.")]
    ranks: Annotated[Count | None, Field("Of the group that reduces them.")]
    link_bandwidth: Annotated[ByteRate | None, Field("Bytes per second in one direction.")]
    link_source: Annotated[Literal["device", "given"] | None, Field("Whether that is the device's peak or was given.")]
    one_host: Annotated[bool | None, Field("Whether the ranks share a host, as the link's peak assumes.")]
    estimate_ns: Annotated[Ns | None, Field("Bytes by bandwidth.")]
    ring_estimate_ns: Annotated[Ns | None, Field("The same times what each link of a ring carries per byte.")]
    measured_ns: Annotated[Ns | None, Field("What these collectives take per step, waiting included.")]


class TrafficEntry(TypedDict):
    """Collectives of one kind and size in one group."""

    kind: Annotated[str, Field("Kind of the collective.", "collective", view="traffic bandwidth")]
    group: Annotated[Name, Field("Name of the group.", "group", view="traffic bandwidth")]
    size: Annotated[
        Count | None, Field("Ranks of the group; null where that is not recorded.", "ranks", view="traffic")
    ]
    bytes: Annotated[
        Bytes | None, Field("Size as bandwidth counts it: the larger buffer.", "size", view="traffic bandwidth")
    ]
    per_step: Annotated[Rate, Field("How many per step.", "per step", view="traffic")]
    duration_ns: Annotated[Ns, Field("Median over ranks.", "takes", view="traffic")]
    transfer_ns: Annotated[
        Ns,
        Field(
            "From the last rank's arrival to the end; where `bound` is true at most this.", "transfer", view="traffic"
        ),
    ]
    wait_ns: Annotated[
        Ns | None, Field("Mean wait of a rank for the last one; null where not told.", "waits", view="traffic")
    ]
    exposed_ns_per_step: Annotated[Ns, Field("Time that no work hides.", "exposed per step", view="traffic")]
    imbalance: Annotated[
        float | None,
        Field("What the rank that puts in most puts in, as a multiple of the mean.", "most uneven", view="traffic"),
    ]
    algorithm_bandwidth: Annotated[ByteRate | None, Field("Bytes per second.", "algorithm GB/s", view="bandwidth")]
    bus_bandwidth: Annotated[
        ByteRate | None,
        Field("algorithm_bandwidth times formula (nccl-tests, doc/PERFORMANCE.md).", "bus GB/s", view="bandwidth"),
    ]
    link_share: Annotated[
        Ratio | None,
        Field("Bus bandwidth over that peak; at least this where `bound`.", "of the link", view="bandwidth"),
    ]
    ranks: Annotated[list[Count], Field("Ranks of the group that were read.")]
    count: Annotated[Count, Field("How many there were.")]
    bound: Annotated[bool, Field("Whether transfer and wait could not be told apart.")]
    formula: Annotated[str | None, Field("What the bus bandwidth is by.")]
    link_bandwidth: Annotated[
        ByteRate | None, Field("Peak of the link in one direction, where the group shares a host.")
    ]
    estimate_ns_per_step: Annotated[Ns | None, Field("Bytes by the link's bandwidth.")]
    corrected_estimate_ns_per_step: Annotated[Ns | None, Field("The same times the formula.")]
