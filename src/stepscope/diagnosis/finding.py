"""What a diagnosis consists of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from stepscope.analysis.loading import Loading
from stepscope.analysis.where import Where
from stepscope.record import record
from stepscope.whatif.change import Change

if TYPE_CHECKING:
    from stepscope.whatif.predictor import Predictor

Basis = Literal["measured", "modelled", "heuristic"]
Confidence = Literal["high", "medium", "low"]


def paragraphs(text: str) -> str:
    """Join the lines of a paragraph, so that whoever shows it wraps it; lines indented by four spaces are code,
    empty ones are left out.

    >>> paragraphs("Pin the\\nbatches:\\n    pin_memory=True")
    'Pin the batches:\\n    pin_memory=True'
    """
    made: list[str] = []
    for line in filter(None, text.splitlines()):
        starts_anew = line.startswith(("    ", "- ")) or not made or made[-1].startswith("    ")
        if starts_anew:
            made.append(line)
        else:
            made[-1] += " " + line
    return "\n".join(made)


@record
class Evidence:
    """A slice or an interval that shows what a finding says."""

    name: str
    start_ns: int
    dur_ns: int
    track: str | None = None
    device: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FixPart:
    """One of several things to fix together, and what fixing it alone gains: often nothing, as the next one waits."""

    title: str
    where: Where
    fix: str
    cost_ns_per_step: int
    change: Change = field(compare=False)
    saving_alone_ns_per_step: int | None = None
    """None where nothing could be replayed."""


@record
class Option:
    """One of several cures of the same cause, each by itself; times in ns."""

    title: str
    predicted_step_ns: int
    best_step_ns: int | None = None
    workers: int | None = None
    """Of a loader's workers: how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that costs time in every step, where, and what to do about it.

    ``cost_ns_per_step`` is what the accounting books to the cause. ``saving_ns_per_step`` is what the fix gains of the
    step as it is when nobody records, where that is known (``whatif/recording.py``): by a
    replay of the profile with ``change``, else (``prediction_basis``) to first order the cost itself, as if nothing
    else moved. Both are means over the used steps, None where not determined; ``not_determined`` then says what to
    record. ``fix_set`` lists what must be fixed together.
    """

    rule: str
    title: str
    why: str
    fix: str
    cost_ns_per_step: int | None
    saving_ns_per_step: int | None
    basis: Basis = "measured"
    confidence: Confidence = "high"
    device: int | None = None
    where: tuple[Where, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    saving_after_ns_per_step: int | None = None
    """What the fix gains where all that ranks above it is fixed already: in the same replay, or where without one that
    takes away some of its host time; None elsewhere. Far less than the saving where two findings speak of the same
    time, more where one hides the other."""
    predicted_step_ns: int | None = None
    """The step time once fixed; the engine takes the saving off the mean step where a rule gives none."""
    best_step_ns: int | None = None
    """What it takes at best, where the prediction is a range."""
    options: tuple[Option, ...] = ()
    """The cures that there are, where they gain different amounts: the saving is that of the first."""
    prediction_basis: Literal["first_order", "replay"] | None = "first_order"
    not_determined: str | None = None
    seen_once: bool = False
    """Whether one step alone has it: its times are then means over a recording that may not be like the job."""
    change: Change | None = field(default=None, compare=False)
    fix_set: tuple[FixPart, ...] = ()
    next_waits: tuple[FixPart, ...] = field(default=(), compare=False)
    """What costs nothing yet and may do so once this is fixed; the engine moves what does into the fix set."""
    loading: Loading | None = field(default=None, compare=False)
    """Of a loader: what making its batches takes. The engine bounds the saving by what workers can do."""
    around: tuple[str, str] | None = field(default=None, compare=False)
    """What of ``why`` stands before and behind what holds of one rank's profile alone, if anything does: read together,
    the ranks tell what that leaves open."""
    within: str | None = field(default=None, compare=False)
    """The rule of whose cause this is a part: where that has a finding, its cure takes this away too."""
    id: str = ""
    untried: bool = False
    """Whether the rule's cures that can be tried are for other causes than this one's."""
    provable: bool = False
    """Whether ``stepscope try`` can put a cure of it into the job and measure what it saves."""
    rank: int | None = None
    """Of a job: the rank it is told of, that where it costs most; None where it is the whole job's."""
    ranks: int = 1
    """How many ranks have it."""

    def saying(self, more: str) -> Finding:
        """The finding with more behind its ``why``."""
        around = None if self.around is None else (self.around[0], self.around[1] + more)
        return replace(self, why=self.why + more, around=around)


@record
class Notice:
    """Something about the profile itself that a reader of the report must know."""

    code: str
    text: str
    count: int | None = None
    says_count: bool = False
    """Whether the text says how many there are, so that nobody need add it."""


@record
class WhatIf:
    """How good predictions are: shares of the mean step, None where nothing was replayed, and then why."""

    replay_error: float | None
    residual_share: float | None
    reason: str | None
    combined_step_ns: int | None
    """The step time with every finding fixed at once."""


@record
class Diagnosis:
    """What the rules say of one trace, or of a job. Of what is ``minor`` the fix gains too little to be a finding, by
    itself or once the findings above it are fixed; it shows under ``-v`` only."""

    findings: tuple[Finding, ...]
    minor: tuple[Finding, ...]
    notices: tuple[Notice, ...]
    verdict: str
    bottleneck: str
    whatif: WhatIf
    replayed: Predictor | str
    """The replay behind the predictions, else why there is none."""
    plan: tuple[str, ...]
    """Ids of findings that say what they save, in the order one should work: that of the rules, but for those that
    others fix along the way, which come last."""
