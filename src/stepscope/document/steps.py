"""Steps, the accounting of their time, and the summary above it."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.kinds import CategoryName, Count, Field, Index, NonEmpty, Ns, Parts, PartShares, Share, Time


class StepEntry(TypedDict):
    """A step."""

    number: Annotated[int | None, Field("The number the marker gives.", "step")]
    rank: Annotated[Index | None, Field("Rank of the process; null where the profile does not say it.", "rank")]
    dur_ns: Annotated[
        Ns,
        Field(
            "From where the last used device had done the step before to where the last one has done this one, "
            "so that steps add up; the host's period where there is no device.",
            "step time",
        ),
    ]
    host_dur_ns: Annotated[Ns | None, Field("The host's period.", "host time", null="not recorded")]
    basis: Annotated[
        Literal["device", "host"], Field("Whether it is measured on the device or on the host.", "measured on")
    ]
    complete: Annotated[bool, Field("Whether the profile holds all of it.", "complete")]
    index: Annotated[Count, Field("Position in the profile, from 0.")]
    start_ns: Annotated[Time, Field("When it begins.")]
    inferred: Annotated[bool, Field("Whether no marker says so.")]
    slow: Annotated[bool, Field("Whether it is set apart: much longer for a cause that the others do not have.")]


class AccountingRow(TypedDict):
    """A device's time in one step, or before, between or after the steps."""

    device: Annotated[Index | None, Field("Index of the device; null for the host's time.", "device")]
    phase: Annotated[Literal["step", "before", "after", "gap"], Field("step, before, gap or after.", "when")]
    start_ns: Annotated[Time, Field("When it begins.", "at")]
    dur_ns: Annotated[Ns, Field("Its parts sum to it.", "time")]
    rank: Annotated[Index | None, Field("Rank of the process; null where the profile does not say it.")]
    step: Annotated[Index | None, Field("Index of the step; null outside steps.")]
    parts: Annotated[Parts, Field("The time by category.")]


class StepTimeEntry(TypedDict):
    """Duration of the used steps."""

    median: Annotated[Ns | None, Field("The median step.")]
    p95: Annotated[Ns | None, Field("Null under 20 steps.")]
    mean: NotRequired[Annotated[Ns | None, Field("What parts, costs and savings per step are shares of.")]]


class TwoSharesEntry(TypedDict):
    """A share in two ways."""

    by_count: Annotated[Share | None, Field("Share of their number.")]
    by_time: Annotated[Share | None, Field("Share of their time.")]


class Phases(TypedDict):
    """Device time by what the program does."""

    forward: Annotated[Ns, Field("The forward pass.")]
    loss: Annotated[Ns, Field("The loss.")]
    backward: Annotated[Ns, Field("The backward pass.")]
    communication: Annotated[Ns, Field("Collectives.")]
    optimizer: Annotated[Ns, Field("The optimizer's update.")]
    between_steps: Annotated[Ns, Field("Between steps.")]
    unknown: Annotated[Ns, Field("Of no known phase.")]


class SummaryEntry(TypedDict):
    """The diagnosis, and the figures above everything else."""

    verdict: Annotated[NonEmpty, Field("The diagnosis in one sentence.")]
    bottleneck: Annotated[
        NonEmpty,
        Field(
            "What bounds the step: device, input, sync, launch, copy, communication, python, unknown, "
            "or another word of a later version."
        ),
    ]
    step_time_ns: Annotated[StepTimeEntry, Field("Duration of the used steps.")]
    unrecorded_step_ns: NotRequired[
        Annotated[
            Ns | None,
            Field(
                "The mean step as it is when nobody records, which savings are told of; null where that "
                "is not known, or recording costs nothing that shows."
            ),
        ]
    ]
    steps_used: Annotated[Count, Field("Steps the figures are taken from: complete, usual ones.")]
    steps_slow: Annotated[Count, Field("Complete steps that are `slow`.")]
    step_basis: Annotated[
        Literal["device", "host"] | None,
        Field("Whether step times are the device's or the host's; null without steps."),
    ]
    inferred: Annotated[bool, Field("The steps were inferred from repetition, not marked.")]
    parts_ns_per_step: Annotated[Parts, Field("Mean over the used steps and the devices that compute.")]
    parts_share: Annotated[PartShares, Field("Share of the time of the same rows.")]
    device_busy_share: Annotated[Share | None, Field("Share of the step in which a device works, collectives counted.")]
    device_busy_share_without_collectives: Annotated[Share | None, Field("The same with collectives not counted.")]
    device_ops_share: Annotated[TwoSharesEntry, Field("Share of the ops that ran on a device.")]
    low_precision_share: Annotated[
        TwoSharesEntry, Field("Of the kernels whose precision is known, the share that computes in 16 bits or fewer.")
    ]
    precision_known_share: NotRequired[Annotated[Share | None, Field("Share of kernel time whose precision is known.")]]
    launch_wait_share: Annotated[Share | None, Field("Share of step time the device waited for launches.")]
    idle_between_steps_ns: Annotated[
        Ns | None,
        Field("Per step, median: from the last op of the step before to the step's first, on each device."),
    ]
    idle_within_steps_ns: Annotated[
        Ns | None, Field("Per step, median: the rest of its idle time, behind its first op.")
    ]
    phases_ns_per_step: Annotated[Phases | None, Field("Device time by phase; null where phases are not known.")]
    step_source: NotRequired[Annotated[str, Field("What marked the steps.")]]
    duty_cycle_share: NotRequired[
        Annotated[
            Share | None,
            Field(
                "Share of the steps in which compiled modules execute, mean over the devices that do; null without XLA."
            ),
        ]
    ]


class BreakdownPart(TypedDict):
    """What one category takes of a step."""

    category: Annotated[CategoryName, Field("A category of the accounting.", "part")]
    busy: Annotated[bool, Field("Whether that is work, not waiting.", "")]
    ns_per_step: Annotated[Ns, Field("Time per step.", "per step")]
    share: Annotated[Share, Field("Share of the whole.", "share")]
    label: Annotated[str, Field("Its words in reports.")]


class BreakdownEntry(TypedDict):
    """Mean over the used steps of one device."""

    unused: NotRequired[
        Annotated[
            bool,
            Field(
                "Whether the device computed nothing in the steps: it may copy or clear memory, but no "
                "step waits for it, so that step times, means and findings leave it out."
            ),
        ]
    ]
    rank: Annotated[Index | None, Field("Rank of the process; null where the profile does not say it.")]
    device: Annotated[Index | None, Field("Index of the device; null for the host's time.")]
    basis: Annotated[Literal["device", "host"], Field("Whether it is measured on the device or on the host.")]
    steps: Annotated[Count, Field("How many steps it is a mean of.")]
    step_ns: Annotated[Ns, Field("Mean step; the parts sum to it.")]
    behind_ns: NotRequired[
        Annotated[
            Ns | None,
            Field(
                "How long, on average, the device ends a step after the first one that does; null where "
                "there is one device alone."
            ),
        ]
    ]
    parts: Annotated[list[BreakdownPart], Field("Largest first.")]
    ended_last: NotRequired[
        Annotated[
            Count | None,
            Field(
                "In how many of the steps this device ended after all others; null where it is the only "
                "one, or takes no part."
            ),
        ]
    ]
