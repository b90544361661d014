"""``stepscope.comparison/1``: two runs beside each other."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.kinds import Field, SignedNs
from stepscope.document.report import Tool


class DifferenceEntry(TypedDict):
    """A change of a duration."""

    before_ns: Annotated[SignedNs, Field("Mean before, ns per step.")]
    after_ns: Annotated[SignedNs, Field("Mean after, ns per step.")]
    difference_ns: Annotated[SignedNs, Field("After less before.")]
    share: Annotated[float | None, Field("The difference as a share of before; null where that is 0.")]
    low_ns: Annotated[
        SignedNs | None, Field("Lower end of the 95 % interval of the difference; null where a run has too few steps.")
    ]
    high_ns: Annotated[SignedNs | None, Field("Its upper end.")]


class PartDifference(DifferenceEntry):
    """How a category changed."""

    category: Annotated[str, Field("A category of the accounting.")]
    label: Annotated[str, Field("Its words in reports.")]
    told: Annotated[bool, Field("Whether it changed by more than noise, and by enough to matter.")]


class FindingChangeEntry(TypedDict):
    """How a finding changed."""

    state: Annotated[Literal["gone", "less", "stays", "more", "new"], Field("What became of it.")]
    rule: Annotated[str, Field("The rule that found it.")]
    title: Annotated[str, Field("Before; after, where it was not found before.")]
    before: Annotated[ComparedCost | None, Field("What it cost before.")]
    after: Annotated[ComparedCost | None, Field("What it costs after.")]
    title_after: Annotated[str | None, Field("After; null where it is gone.")]


class AchievedEntry(TypedDict):
    """What was promised against what was measured."""

    gone: Annotated[list[str], Field("Findings of the first run that the second has not.")]
    less: Annotated[
        list[str], Field("Findings of the first run that cost less in the second: the part that went is promised.")
    ]
    predicted_step_ns: Annotated[SignedNs, Field("What the first run promised without them.")]
    best_step_ns: Annotated[SignedNs | None, Field("The best end of the promise, where it was a range.")]
    unrecorded: Annotated[bool, Field("Whether both times are of steps that nobody records.")]
    measured_step_ns: Annotated[SignedNs, Field("What the second run measured.")]
    off_share: Annotated[
        float, Field("Predicted less measured, as a share of measured; 0 within the range that was promised.")
    ]


class BudgetEntry(TypedDict):
    """A condition and whether it holds."""

    condition: Annotated[str, Field("The condition as given.")]
    fired: Annotated[bool, Field("Whether it is broken.")]
    text: Annotated[str, Field("That in words.")]


class ScalingLoss(TypedDict):
    """What a step takes longer by."""

    cause: Annotated[str, Field("Why.")]
    ns_per_step: Annotated[SignedNs, Field("Time per step.")]


class ScalingEntry(TypedDict):
    """Where the second run has more devices (without any, processes): how well the job scales if each has the same
    batch."""

    unit: Annotated[
        Literal["devices", "processes"], Field("What is counted: processes where neither run has a device.")
    ]
    devices_before: Annotated[int, Field("Of the first run.")]
    devices_after: Annotated[int, Field("Of the second run.")]
    efficiency: Annotated[float, Field("Step before as a share of the step after.")]
    speedup: Annotated[float, Field("How many times the work per second.")]
    negative: Annotated[bool, Field("Whether more devices do less work.")]
    losses: Annotated[list[ScalingLoss], Field("What a step takes longer by; they sum to the difference of the step.")]


class ComparedSide(TypedDict):
    """One of the runs."""

    path: Annotated[str, Field("Path of the file.")]
    steps_used: Annotated[int, Field("Steps the figures are taken from.")]
    step_ns: Annotated[list[SignedNs], Field("Duration of each used step.")]
    mean_step_ns: Annotated[SignedNs | None, Field("Mean of them; null without steps.")]
    median_step_ns: Annotated[SignedNs | None, Field("Their median; null without steps.")]
    verdict: Annotated[str, Field("The diagnosis in one sentence.")]
    runs: Annotated[int, Field("Runs of the same code that are taken together.")]
    damaged: Annotated[
        str | None, Field("What of it could not be read, as the end of a sentence; null where all could.")
    ]
    steps_apart_ns: Annotated[list[SignedNs], Field("Durations of the steps left out as far slower than the others.")]


class ComparedItem(DifferenceEntry):
    """A kernel, op or layer that changed."""

    name: Annotated[str, Field("Its name before; after, where it was not there before.")]
    renamed: Annotated[str | None, Field("Its name after, where that is another.")]
    op: Annotated[str | None, Field("Of a kernel, the op it works for.")]
    count_before: Annotated[float, Field("Launches or calls per step.")]
    count_after: Annotated[float, Field("The same after.")]


class ComparedBox(TypedDict):
    """Work in one place."""

    path: Annotated[list[str], Field("Layers, `*` for their numbers; op; kernel.")]
    before_ns: Annotated[SignedNs, Field("Mean before, ns per step.")]
    after_ns: Annotated[SignedNs, Field("Mean after.")]


class ComparedCall(TypedDict):
    """A Python function where it is called."""

    name: Annotated[str, Field("Its name.")]
    caller: Annotated[int, Field("Place of its caller in the list, -1 for none.")]
    before_ns: Annotated[SignedNs, Field("Mean before, ns per step, with what it calls.")]
    after_ns: Annotated[SignedNs, Field("Mean after.")]


class ComparedCost(TypedDict):
    """Null where the run has no such finding."""

    id: Annotated[str, Field("Id of the finding.")]
    cost_ns_per_step: Annotated[SignedNs | None, Field("Time it takes of a step.")]
    saving_ns_per_step: Annotated[SignedNs | None, Field("What fixing it gains.")]


class ComparisonDocument(TypedDict):
    """What stepscope compare writes. Times are integer nanoseconds, null where not determined; keys are only
    added."""

    schema: Annotated[Literal["stepscope.comparison/1"], Field("The name and the major version of this schema.")]
    tool: Annotated[Tool, Field("What wrote the document.")]
    changed: Annotated[
        bool | None,
        Field(
            "Whether the step time changed by more than noise; false where the interval leaves out "
            "every change of 10 %; null where that cannot be told."
        ),
    ]
    not_determined: Annotated[str | None, Field("Why it cannot, and what would tell it.")]
    before: Annotated[ComparedSide, Field("The first run.")]
    after: Annotated[ComparedSide, Field("The second run.")]
    step_time: Annotated[DifferenceEntry, Field("How the step time changed.")]
    differences: Annotated[list[str], Field("What else differs between the runs and may be the reason.")]
    parts: Annotated[list[PartDifference], Field("Every category booked in either run, mean over the devices.")]
    kernels: Annotated[list[ComparedItem], Field("The kernels that changed, largest difference first (at most 50).")]
    ops: Annotated[list[ComparedItem], Field("The ops that changed, largest difference first (at most 50).")]
    layers: Annotated[list[ComparedItem], Field("The layers that changed, largest difference first (at most 50).")]
    work: NotRequired[Annotated[list[ComparedBox], Field("All work by its place, at most 400; none of jobs.")]]
    calls: NotRequired[
        Annotated[
            list[ComparedCall],
            Field("Python functions by who calls them, at most 400; none where a run has no Python, nor of jobs."),
        ]
    ]
    findings: Annotated[list[FindingChangeEntry], Field("How findings changed.")]
    achieved: Annotated[
        AchievedEntry | None, Field("What was promised against what was measured; null where nothing was promised.")
    ]
    budgets: Annotated[list[BudgetEntry], Field("Conditions that were given, and whether they hold.")]
    scaling: Annotated[
        ScalingEntry | None,
        Field(
            "Where the second run has more devices (without any, processes): how well the job scales "
            "if each has the same batch."
        ),
    ]
