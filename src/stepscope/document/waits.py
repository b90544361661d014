"""What devices and the host wait for."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.findings import WhereEntry
from stepscope.document.kinds import Bytes, Count, Field, Index, Name, Ns, Parts, Rate, Share, SignedNs, Time


class DeviceIdle(TypedDict):
    """Idle time of one device."""

    device: Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]
    total_ns: Annotated[Ns, Field("Idle time in all.", "idle in all")]
    between_steps_ns: Annotated[
        Ns | None,
        Field(
            "Before the first op of each step, since the last op of the step before.",
            "before first op",
            null="not recorded",
        ),
    ]
    within_steps_ns: Annotated[
        Ns | None, Field("The rest: behind the first op of each step.", "behind first op", null="not recorded")
    ]


class GapEntry(TypedDict):
    """A stretch in which a device had nothing to do."""

    device: Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]
    step: Annotated[Index | None, Field("Index of the step it is in; null outside steps.", "step")]
    start_ns: Annotated[Time, Field("When it begins.", "at")]
    dur_ns: Annotated[Ns, Field("How long it takes.", "idle")]
    parts: Annotated[Parts, Field("What the time goes to.", "mostly")]
    op: Annotated[Name | None, Field("Device op that ends the gap.", "first op after it")]
    where: Annotated[WhereEntry | None, Field("The place in the user's program.", "place, or what the host is in")]
    crosses_step: Annotated[bool, Field("Whether it goes on into the next step.")]
    thread: Annotated[str | None, Field("Thread that launched the op.")]
    launch: Annotated[str | None, Field("Runtime call that launched the op.")]
    blocking: Annotated[str | None, Field("Slice the host was held up in.")]


class IdleEntry(TypedDict):
    """When devices were idle."""

    per_device: Annotated[list[DeviceIdle], Field("Sums over the steps.")]
    gaps: Annotated[list[GapEntry], Field("Longest first.")]


class LaunchDelayEntry(TypedDict):
    """Launch call's start to device start."""

    device: Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]
    count: Annotated[Count, Field("Launches.", "launches")]
    median_ns: Annotated[
        SignedNs | None, Field("The median; below 0 where clocks disagree.", "median", null="not recorded")
    ]
    p95_ns: Annotated[SignedNs | None, Field("19 of 20 take no longer.", "p95", null="not recorded")]
    waiting_share: Annotated[
        Share | None,
        Field("Share of step time the device waited for launches.", "step time spent waiting", null="not recorded"),
    ]


class SyncEntry(TypedDict):
    """A place where the host waits for a device."""

    op: Annotated[Name | None, Field("Host op that waits.", "host waits in")]
    device: NotRequired[Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]]
    per_step: Annotated[Rate | None, Field("How many per step.", "per step")]
    blocked_ns_per_step: Annotated[Ns | None, Field("Time the host is held up.", "host blocked", null="not recorded")]
    cost_ns_per_step: Annotated[
        Ns | None, Field("Device idle time the wait caused.", "device idle for it", null="not recorded")
    ]
    where: Annotated[WhereEntry | None, Field("The place in the user's program.", "where")]
    call: Annotated[str | None, Field("Runtime call it waits in.")]
    count: Annotated[Count, Field("How many there were.")]
    cause: NotRequired[Annotated[str | None, Field("What makes it wait, where its op tells.")]]


class Copy(TypedDict):
    """Copies at one place."""

    direction: Annotated[str, Field("h2d, d2h, d2d or p2p.", "copy")]
    source_memory: Annotated[str, Field("Kind of memory it reads.", "memory")]
    op: Annotated[Name | None, Field("Host op that launches it.", "from op")]
    device: NotRequired[Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]]
    per_step: Annotated[Rate | None, Field("How many per step.", "per step")]
    bytes_per_step: Annotated[Bytes | None, Field("Bytes per step.", "bytes", null="not recorded")]
    exposed_ns_per_step: Annotated[Ns | None, Field("Time that nothing else hides.", "exposed", null="not recorded")]
    every_step: Annotated[bool | None, Field("The copy recurs at the same place in every step.", "every step")]
    target_memory: Annotated[str, Field("Kind of memory it writes.")]
    count: Annotated[Count, Field("How many there were.")]
    bytes: Annotated[Bytes | None, Field("Bytes in all.")]
    launch_link: Annotated[
        Literal["recorded", "heuristic"], Field("Whether the op is recorded as its launcher, or the nearest one.")
    ]
    where: Annotated[WhereEntry | None, Field("The place in the user's program.")]


class OverlapEntry(TypedDict):
    """What other work hides."""

    what: Annotated[
        Literal["collectives", "copies"], Field("Collectives are hidden by kernels, copies by either.", "what")
    ]
    ns_per_step: Annotated[Ns, Field("Mean over devices; instants in which several run count once.", "per step")]
    hidden_ns_per_step: Annotated[Ns, Field("What of it other work hides.", "hidden")]
    hidden_share: Annotated[Share, Field("The same as a share.", "of it")]


class CriticalElement(TypedDict):
    """What is part of the critical path, all of one name and kind of time."""

    name: Annotated[
        Name | None, Field("The op, the wait, or the outermost host op.", "element", null="nothing recorded")
    ]
    category: Annotated[Name, Field("What the time goes to.", "kind")]
    total_ns: Annotated[Ns, Field("Its time on the path, in the used steps.", "time")]
    share: Annotated[Share, Field("Share of the path.", "share")]
    count: Annotated[Count, Field("How often it is part of the path.", "count")]
    zero_ns_per_step: Annotated[
        Ns | None,
        Field(
            "What a step gains by the replay where it takes no time, at most its time on the path; null for delays.",
            "gain if it took no time",
            null="not predicted",
        ),
    ]


class CriticalPathEntry(TypedDict):
    """The chain of ops, launches, waits and host work that sets the step time."""

    why_not: Annotated[str | None, Field("Why there is none, in words that follow 'because'.")]
    steps: Annotated[Count | None, Field("Steps it is of.")]
    total_ns: Annotated[Ns | None, Field("Its length: exactly the time of these steps.")]
    parts: Annotated[Parts | None, Field("What its time goes to; sums to its length.")]
    ops: Annotated[list[CriticalElement], Field("Its elements, those that take most first.", most=12)]
