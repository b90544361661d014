"""``stepscope.try/1``: cures tried on the job itself. Times are ns per step, memory bytes."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.kinds import Bytes, Count, Field, Ns, Path, SignedNs
from stepscope.document.report import Tool


class CureEntry(TypedDict):
    """What a cure says of itself."""

    cure: Annotated[str, Field("Its name.")]
    title: Annotated[str, Field("What it does.")]
    sets: Annotated[str, Field("What it sets in the job.")]
    may_break: Annotated[str, Field("What it may break.")]
    undone: Annotated[str, Field("How it is undone.")]
    changes_numbers: Annotated[bool, Field("Whether results change by its nature.")]
    takes_number: Annotated[bool, Field("Whether it is tried with several numbers.")]
    answers: Annotated[list[str], Field("The rules whose findings it answers.")]
    value: NotRequired[Annotated[int | None, Field("Of a trial, the number it was tried with; null without one.")]]


class TriedArgument(TypedDict):
    """An argument of the command that was given another number."""

    name: Annotated[str, Field("Its name.")]
    at: Annotated[Count, Field("Which word of the command holds the number.")]
    before: Annotated[str, Field("What stands before the number in that word.")]
    given: Annotated[int, Field("The number as it was given.")]
    value: Annotated[int, Field("The number that was tried.")]
    spec: Annotated[str, Field("As it would be typed.")]


class PromisedStep(TypedDict):
    """What a finding promised of the step."""

    finding: Annotated[str, Field("Id of the finding.")]
    step_ns: Annotated[Ns | None, Field("The step without it.")]
    best_step_ns: Annotated[Ns | None, Field("The best end of the promise, where it was a range.")]


class MeasuredEntry(TypedDict):
    """A trial beside the unchanged job."""

    before_ns: Annotated[Ns, Field("A step as it is.")]
    after_ns: Annotated[Ns, Field("A step of the trial.")]
    saving_ns: Annotated[SignedNs, Field("Before less after.")]
    least_saving_ns: Annotated[SignedNs | None, Field("Lower end of its interval; null of one run.")]
    most_saving_ns: Annotated[SignedNs | None, Field("Its upper end.")]
    runs: Annotated[list[int], Field("Runs of both.")]
    runs_needed: Annotated[Count | None, Field("Where it cannot be told, about how many of each would tell.")]


class LossesEntry(TypedDict):
    """Whether a trial's losses are those of the unchanged job."""

    outcome: Annotated[str, Field("`equal`, `rounding`, `differs` or `unknown`.")]
    steps: Annotated[Count, Field("Steps compared.")]
    largest: Annotated[float | None, Field("The largest relative difference; null where only one is a number.")]
    since: Annotated[int | None, Field("The first step that differs by more than rounding.")]
    why: Annotated[str, Field("Why it is not known.")]


class TriedPlace(TypedDict):
    """Where a cure was put into effect."""

    file: Annotated[Path, Field("The file, from the working folder where it lies in there.")]
    line: Annotated[int | None, Field("The line.")]
    function: Annotated[str | None, Field("The function around it.")]


class TrialEntry(TypedDict):
    """One trial: the job with some cures, or with another number of an argument."""

    cures: Annotated[list[CureEntry], Field("What was put in.")]
    name: Annotated[str, Field("What it is called.")]
    argument: Annotated[TriedArgument | None, Field("Of a trial of an argument, which.")]
    findings: Annotated[list[str], Field("Ids of the findings that call for it.")]
    predicted: Annotated[PromisedStep | None, Field("What they promised.")]
    measured: Annotated[MeasuredEntry | None, Field("What was measured.")]
    verdict: Annotated[str, Field("`helps`, `hurts`, `nothing`, `unknown`, `failed`, `refused` or `not_run`.")]
    why: Annotated[str | None, Field("Why it was no longer tried.")]
    host_bytes: Annotated[Bytes | None, Field("The most memory of the host that a run held.")]
    device_bytes: Annotated[Bytes | None, Field("The most of a device.")]
    values: Annotated[LossesEntry, Field("Whether its results are the same.")]
    places: Annotated[list[TriedPlace], Field("Where its cures were put into effect.")]


class BaselineEntry(TypedDict):
    """The unchanged job."""

    verdict: Annotated[str, Field("Its diagnosis in one sentence.")]
    profiles: Annotated[list[Path], Field("The profiles recorded of it.")]
    step_ns: Annotated[Ns | None, Field("Its step while nobody records.")]
    runs: Annotated[Count, Field("Runs that were timed.")]
    steps_per_run: Annotated[Count, Field("The most steps of one.")]
    host_bytes: Annotated[Bytes | None, Field("The most memory of the host that a run held.")]
    device_bytes: Annotated[Bytes | None, Field("The most of a device.")]


class PatchEntry(TypedDict):
    """The change of the source that has the same effect as what helped."""

    diff: Annotated[str | None, Field("As a unified diff.")]
    by_hand: Annotated[list[str], Field("What is to be written by hand.")]


class UncuredFinding(TypedDict):
    """A finding that nothing was tried for."""

    finding: Annotated[str, Field("Its id.")]
    title: Annotated[str, Field("Its title.")]
    why: Annotated[str, Field("Why nothing was.")]


class TrialsDocument(TypedDict):
    """What ``stepscope try`` writes."""

    schema: Annotated[Literal["stepscope.try/1"], Field("The name and the major version of this document.")]
    tool: Annotated[Tool, Field("What wrote the document.")]
    command: Annotated[list[str], Field("As it was typed.")]
    baseline: Annotated[BaselineEntry, Field("The job as it is.")]
    trials: Annotated[list[TrialEntry], Field("What was tried, best first.")]
    together: Annotated[TrialEntry | None, Field("All that helps, at once; null where that was not tried.")]
    keep: Annotated[list[str], Field("What to keep.")]
    patch: Annotated[PatchEntry, Field("The change of the source for it.")]
    findings_without_cure: Annotated[list[UncuredFinding], Field("Findings that nothing was tried for.")]
    ended_early: Annotated[str | None, Field("Why trials ended before all could be told.")]
