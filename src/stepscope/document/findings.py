"""What costs time, and where."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from stepscope.document.kinds import Count, Field, Index, Name, NonEmpty, Ns, Time


class WhereEntry(TypedDict):
    """A place in the user's program, as exactly as it was recorded."""

    file: Annotated[str | None, Field("Source file.")]
    line: Annotated[Count | None, Field("Line in it, from 1.")]
    function: Annotated[str | None, Field("Function around it.")]
    op: Annotated[str | None, Field("Op of the framework.")]
    module: Annotated[str | None, Field("Module (layer) of the model.")]
    annotation: Annotated[str | None, Field("Innermost user annotation around it.")]
    defined: NotRequired[
        Annotated[
            bool,
            Field("Whether the line is the one at which the function begins: which line of it ran was not recorded."),
        ]
    ]
    ns_per_step: NotRequired[
        Annotated[
            Ns | None, Field("Of a finding's place, the time that passes there; null where that is not told by place.")
        ]
    ]


class EvidenceEntry(TypedDict):
    """A slice of the trace that shows a finding."""

    track: Annotated[str | None, Field("Thread or stream it is on.")]
    name: Annotated[str, Field("Its name.")]
    start_ns: Annotated[Time, Field("When it begins.")]
    dur_ns: Annotated[Ns, Field("How long it takes.")]
    device: Annotated[Index | None, Field("Index of the device; null for the host's time.")]
    step: Annotated[Index | None, Field("Index of the step it is in; null outside steps.")]


class OptionEntry(TypedDict):
    """One cure of several."""

    title: Annotated[NonEmpty, Field("The cure in words.")]
    predicted_step_ns: Annotated[Ns, Field("Step time with it.")]
    best_step_ns: Annotated[Ns | None, Field("That at best, where it is a range; null where it is none.")]
    workers: NotRequired[Annotated[Count | None, Field("Of a loader's workers: how many; null where it is no number.")]]


class FixPartEntry(TypedDict):
    """One of the places that must be fixed together."""

    title: Annotated[str, Field("What it is.")]
    where: Annotated[WhereEntry | None, Field("The place in the user's program.")]
    fix: Annotated[str, Field("What to do about it.")]
    cost_ns_per_step: Annotated[Ns, Field("Mean ns per step that it costs.")]
    saving_alone_ns_per_step: Annotated[
        Ns | None, Field("Mean ns per step that fixing it alone saves; null where nothing could be replayed.")
    ]


class FindingEntry(TypedDict):
    """What costs time, why, and what to do about it."""

    title: Annotated[Name, Field("What it is, in one sentence.", "what")]
    cost_ns_per_step: Annotated[
        Ns | None, Field("Time it takes of a step now; null where that is not known.", "per step", null="not recorded")
    ]
    saving_ns_per_step: Annotated[Ns | None, Field("What fixing it alone gains.", "a fix saves")]
    saving_after_ns_per_step: NotRequired[
        Annotated[
            Ns | None,
            Field(
                "What the fix gains once the findings above it are fixed; null where that is not known to differ.",
                "with those above fixed",
            ),
        ]
    ]
    where: Annotated[list[WhereEntry], Field("Places it comes from, those that cost most first.", "where")]
    id: Annotated[NonEmpty, Field("The rule and its place among that rule's findings.")]
    rule: Annotated[NonEmpty, Field("The rule that found it.")]
    basis: Annotated[
        Literal["measured", "modelled", "heuristic"], Field("Whether it is measured, modelled, or a rule of thumb.")
    ]
    confidence: Annotated[Literal["high", "medium", "low"], Field("How sure it is.")]
    rank: Annotated[Index | None, Field("Rank of the process; null where the profile does not say it.")]
    device: Annotated[Index | None, Field("Index of the device; null for the host's time.")]
    predicted_step_ns: Annotated[Ns | None, Field("Step time once it is fixed.")]
    best_step_ns: NotRequired[
        Annotated[
            Ns | None,
            Field("That at best, where the prediction is a range up to predicted_step_ns; null where it is none."),
        ]
    ]
    options: NotRequired[
        Annotated[
            list[OptionEntry],
            Field("The cures, each by itself, where they gain different amounts; the saving is the first's."),
        ]
    ]
    prediction_basis: Annotated[
        Literal["first_order", "replay"] | None, Field("How that was predicted; null without a prediction.")
    ]
    why: Annotated[str, Field("Plain text; `backticks` mark names and code.")]
    fix: Annotated[
        str, Field("Plain text; `backticks` mark names and code, a line that starts with four spaces is code.")
    ]
    fix_set: Annotated[list[FixPartEntry], Field("What must be fixed together; empty where there is one thing to fix.")]
    evidence: Annotated[list[EvidenceEntry], Field("What of the trace shows it.")]
    not_determined: Annotated[str | None, Field("What to record so that this can be told; null where it was told.")]
    provable: NotRequired[
        Annotated[
            bool,
            Field("Whether `stepscope try` can put a cure of it into the job and measure what it saves."),
        ]
    ]
    seen_once: NotRequired[Annotated[bool, Field("Whether one step alone has it; absent from older reports.")]]
