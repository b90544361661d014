"""Memory of allocators and of compiled programs."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from stepscope.document.findings import WhereEntry
from stepscope.document.kinds import Bytes, Count, Factor, Field, Index, Name, Ns, Path, Share, SignedBytes, Time


class MemoryPlace(TypedDict):
    """Blocks of one kind allocated in one place."""

    category: Annotated[
        Literal["before_profile", "activation", "gradient", "optimizer_state", "temporary", "unknown"],
        Field("What it is for.", "what for"),
    ]
    bytes: Annotated[Bytes, Field("Bytes of all of them.", "bytes")]
    blocks: Annotated[Count, Field("How many blocks.", "blocks")]
    dtype: Annotated[
        str | None,
        Field("Type of the tensor's elements, where the allocator tells what it gave the block for.", "type"),
    ]
    shape: Annotated[str | None, Field("Shape of that tensor.", "shape")]
    where: Annotated[WhereEntry | None, Field("The place in the user's program.", "allocated in")]
    region: Annotated[str | None, Field("What the op asked for it as: `output`, `temp`, `persist`.")]


class MemoryByCategory(TypedDict):
    """What was in use by what it is for; adds up to `allocated_bytes`. Null where blocks cannot be followed."""

    before_profile: Annotated[Count, Field("Allocated before the profile began.")]
    activation: Annotated[Count, Field("Allocated in the forward pass or the loss, and kept beyond the op.")]
    gradient: Annotated[Count, Field("Allocated in the backward pass and kept beyond it.")]
    optimizer_state: Annotated[Count, Field("Allocated in the optimizer's step and kept beyond it.")]
    temporary: Annotated[
        Count, Field("Freed before the op, the backward pass or the optimizer's step that allocated it was over.")
    ]
    unknown: Annotated[Count, Field("Allocated where no phase of a step was recorded.")]


class MemoryPeak(TypedDict):
    """The moment at which most was in use."""

    time_ns: Annotated[Time, Field("When most was in use.")]
    step: Annotated[Index | None, Field("Index of the step of the host.")]
    allocated_bytes: Annotated[Bytes, Field("Bytes in use.")]
    reserved_bytes: Annotated[Bytes | None, Field("Bytes the allocator held then.")]
    by_category: Annotated[
        MemoryByCategory | None,
        Field("What was in use by what it is for; adds up to `allocated_bytes`. Null where blocks cannot be followed."),
    ]
    fragmentation: Annotated[
        Share | None,
        Field(
            "Share of the allocator's free bytes that lie outside of its largest free piece; null "
            "where it does not tell."
        ),
    ]
    places: Annotated[
        list[MemoryPlace],
        Field("What was allocated inside the profile and in use, by place; largest sum first.", most=50),
    ]


class MemoryOverTime(TypedDict):
    """Null where blocks cannot be followed."""

    before_profile: Annotated[list[Count], Field("Allocated before the profile began.")]
    activation: Annotated[list[Count], Field("Allocated in the forward pass or the loss, and kept beyond the op.")]
    gradient: Annotated[list[Count], Field("Allocated in the backward pass and kept beyond it.")]
    optimizer_state: Annotated[list[Count], Field("Allocated in the optimizer's step and kept beyond it.")]
    temporary: Annotated[
        list[Count], Field("Freed before the op, the backward pass or the optimizer's step that allocated it was over.")
    ]
    unknown: Annotated[list[Count], Field("Allocated where no phase of a step was recorded.")]


class MemoryTimeline(TypedDict):
    """Values after events: of each of 200 equal stretches of time the event with most in use and the last one,
    whose values hold until the next."""

    time_ns: Annotated[list[Time], Field("When.", most=401)]
    allocated_bytes: Annotated[list[Bytes], Field("Bytes in use.", most=401)]
    reserved_bytes: Annotated[
        list[Bytes | None] | None, Field("Bytes taken from the device; null where that is not recorded.")
    ]
    by_category: Annotated[MemoryOverTime | None, Field("Null where blocks cannot be followed.")]


class FragmentationEntry(TypedDict):
    """What is reserved and not in use."""

    free_bytes: Annotated[Bytes, Field("At the peak: what the allocator held beyond what was in use.")]
    share: Annotated[Share, Field("Of what it held.")]
    taken_beside_free: Annotated[
        Count, Field("How often, in the used steps, it took more from the device while that much of its own was free.")
    ]


class MemoryGrowth(TypedDict):
    """Memory in use at the end of each used step against that of the one before."""

    per_step_bytes: Annotated[list[SignedBytes], Field("By step.")]
    steps: Annotated[list[int], Field("Index of the step at whose end each of them is.")]
    mean_bytes: Annotated[SignedBytes, Field("The mean.")]
    grows: Annotated[bool, Field("Whether it rises in every step by blocks that stay.")]
    places: Annotated[list[MemoryPlace], Field("Blocks that outlive the step after their own; empty unless it grows.")]


class HeadroomEntry(TypedDict):
    """What the allocator has left of its limit, else the device; null where neither was recorded."""

    capacity_bytes: Annotated[Bytes, Field("The allocator's limit, else the memory of the device.")]
    of_allocator: Annotated[bool, Field("Whether it is the allocator's limit.")]
    free_bytes: Annotated[
        Bytes,
        Field(
            "Least of the limit that was left, else what this allocator does not hold of the device; "
            "others may hold some of it."
        ),
    ]
    batch_factor: Annotated[
        Factor | None,
        Field(
            "How many times as large could be what grows with the batch: at the peak, activations, "
            "temporaries and what is of no known phase."
        ),
    ]


class MemoryPool(TypedDict):
    """Memory of one allocator."""

    device: Annotated[Index | None, Field("Null for memory of the host, and where the profile does not tell.")]
    on_host: Annotated[bool, Field("Whether it is the host's.")]
    allocator: Annotated[str | None, Field("Its name; null where it has none.")]
    basis: Annotated[
        Literal["recorded", "at_least"], Field("`at_least` where what was allocated before the profile is not counted.")
    ]
    events: Annotated[Count, Field("Allocations and frees.")]
    blocks: Annotated[
        Count | None,
        Field(
            "Blocks allocated inside the profile; null where they cannot be followed (no addresses, "
            "or events are missing)."
        ),
    ]
    peak: Annotated[MemoryPeak, Field("When most was in use.")]
    reserved_bytes: Annotated[Bytes | None, Field("The most the allocator held.")]
    timeline: Annotated[
        MemoryTimeline,
        Field(
            "Values after events: of each of 200 equal stretches of time the event with most in use "
            "and the last one, whose values hold until the next."
        ),
    ]
    fragmentation: Annotated[
        FragmentationEntry | None, Field("What is reserved and not in use; null where that is not recorded.")
    ]
    growth: Annotated[
        MemoryGrowth | None, Field("Memory in use at the end of each used step against that of the one before.")
    ]
    headroom: Annotated[
        HeadroomEntry | None,
        Field("What the allocator has left of its limit, else the device; null where neither was recorded."),
    ]


class AllocatorCall(TypedDict):
    """Calls in the used steps that take memory from the driver and give it back; null where there were none."""

    taken: Annotated[Count, Field("Calls that take memory from the driver.")]
    freed: Annotated[Count, Field("Calls that give it back.")]
    retries: Annotated[
        Count | None,
        Field(
            "Requests that failed, so that the allocator gave back what it had cached and asked "
            "again. Null where no op was recorded around the calls."
        ),
    ]
    dur_ns: Annotated[Ns, Field("Sum of the calls.")]


class MemoryEntry(TypedDict):
    """Memory that allocators of the framework, or the driver, gave out."""

    not_recorded: Annotated[str | None, Field("What would have recorded it; null where it was recorded.")]
    pools: Annotated[list[MemoryPool], Field("One per allocator, devices first.")]
    allocator_calls: Annotated[
        AllocatorCall | None,
        Field("Calls in the used steps that take memory from the driver and give it back; null where there were none."),
    ]


class ProgramBuffer(TypedDict):
    """A buffer that is in memory at a program's peak."""

    name: Annotated[Name, Field("The instruction that makes it, with the part of its result.", "buffer")]
    use: Annotated[Literal["parameter", "output", "thread_local", "constant", "temporary"], Field("What it is.", "is")]
    shape: Annotated[str, Field("Its type and shape.", "shape")]
    bytes: Annotated[Bytes, Field("Bytes.", "bytes")]
    unpadded_bytes: Annotated[Bytes, Field("Bytes of its elements alone.", "padding")]
    peak_without_bytes: Annotated[Bytes, Field("What the program would need at most without it.", "without it")]
    way: Annotated[str | None, Field("What makes it go, a key of ways; null where nothing is gained.", "way")]
    source: Annotated[Path | None, Field("file:line of the user's program.", "from")]
    opcode: Annotated[str | None, Field("Its opcode.")]
    scope: Annotated[str | None, Field("Name scope of the framework's op.")]
    until: Annotated[
        str | None,
        Field("The last op that took memory while it lived; null for what lives as long as the program runs."),
    ]
    donor: Annotated[str | None, Field("Parameter of the same size whose memory a result could take.")]


class OtherBuffers(TypedDict):
    """Buffers that are not listed."""

    buffers: Annotated[Count, Field("How many.")]
    bytes: Annotated[SignedBytes, Field("Of the peak.")]


class ProgramUse(TypedDict):
    """What a program needs of one memory space."""

    module: Annotated[Name, Field("Name of the compiled module.", "program")]
    on_host: Annotated[bool, Field("Whether it is the host's memory.", "in")]
    space: Annotated[Count, Field("Memory space; 0 is the device's main memory.")]
    peak_bytes: Annotated[Bytes, Field("The most that is needed at once.", "needs at most")]
    unpadded_bytes: Annotated[Bytes, Field("The same without padding.", "padding")]
    allocated_bytes: Annotated[Bytes, Field("What the program takes while it runs.", "takes")]
    by_use: Annotated[dict[str, Bytes], Field("What the peak is made of.", "", null="0 B")]
    program: Annotated[str | None, Field("Id of the program, as text: it has 64 bits.")]
    buffers: Annotated[list[ProgramBuffer], Field("Alive at the peak, largest first.", most=25)]
    others: Annotated[OtherBuffers, Field("Buffers that are not listed.")]


class ProgramMemory(TypedDict):
    """What compiled programs need of memory, as XLA assigned it."""

    not_recorded: Annotated[str | None, Field("Why nothing is told; null where it is.")]
    without: Annotated[Count, Field("Programs that do not say it.")]
    left_out: Annotated[Count, Field("Entries left out, which need less.")]
    capacity_bytes: Annotated[Bytes | None, Field("What the smallest device has.")]
    programs: Annotated[
        list[ProgramUse],
        Field("One per program that ran and memory space, the device's main memory first, largest first.", most=20),
    ]
    ways: Annotated[dict[str, str], Field("What makes buffers go, in words.")]
