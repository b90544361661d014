"""Findings of two runs: which are gone, which are new, and whether the time they were said to cost came back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Literal

from stepscope.comparison.noise import Difference
from stepscope.comparison.side import Side
from stepscope.diagnosis.finding import Finding
from stepscope.record import record
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor

State = Literal["gone", "less", "stays", "more", "new"]
_MUCH = 0.5
"""A finding that stays costs less or more where its cost changed by this share."""


@record
class FindingChange:
    """A finding before and after; None where it was not made."""

    before: Finding | None
    after: Finding | None

    @property
    def state(self) -> State:
        """What became of it."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        first, second = self.before.cost_ns_per_step, self.after.cost_ns_per_step
        if first is None or second is None or abs(second - first) < _MUCH * first:
            return "stays"
        return "less" if second < first else "more"


@record
class Achieved:
    """What the first run promised of what was then fixed, beside what was measured: of steps when nobody records,
    where both runs know those."""

    gone: tuple[str, ...]
    less: tuple[str, ...]
    """Findings that became less: of these the part that went is promised."""
    predicted_step_ns: int
    best_step_ns: int | None
    """Where the promise was a range its best end."""
    measured_step_ns: float
    unrecorded: bool
    """Whether the times are those of steps that nobody records."""

    @property
    def off_share(self) -> float:
        """The promise less the measurement, as a share of the measurement; 0 within the range that was promised."""
        best = self.predicted_step_ns if self.best_step_ns is None else self.best_step_ns
        nearest = min(max(self.measured_step_ns, best), self.predicted_step_ns)
        return (nearest - self.measured_step_ns) / self.measured_step_ns


def finding_changes(before: Side, after: Side) -> list[FindingChange]:
    """Each finding of either run. A finding has a counterpart in what the other run's minor findings say, too."""
    gone = _matched(before.findings, (*after.findings, *after.minor))
    back = _matched(after.findings, (*before.findings, *before.minor))
    changes = [FindingChange(one, two) for one, two in gone]
    told = {id(change.after) for change in changes}
    return [*changes, *(FindingChange(two, one) for one, two in back if id(one) not in told)]


def achieved(changes: Sequence[FindingChange], before: Side, after: Side, step: Difference) -> Achieved | None:
    """All that is gone or less, at once; None where nothing is, or nothing was promised of it."""
    chosen = [one for one in changes if one.state in ("gone", "less") and one.before and one.before.saving_ns_per_step]
    if not chosen or not step.after_ns:
        return None
    shares, unrecorded = (before.unrecorded_share or 1.0, after.unrecorded_share or 1.0), before.knows and after.knows
    whole = step.before_ns * (shares[0] if unrecorded else 1.0)
    # Savings are of the unrecorded step, where the first run knows it: of a recorded one they are as large a part.
    scale = 1.0 if unrecorded else 1 / shares[0]
    alone = [one for one in chosen if not (one.state == "gone" and one.before and one.before.change)]
    gone = [one.before.change for one in chosen if one not in alone and one.before and one.before.change]
    if not isinstance(before.replayed, Predictor):
        alone, gone = chosen, []
    saved, more = 0.0, 0.0
    if gone and isinstance(before.replayed, Predictor):
        saved = before.replayed.saving_ns(reduce(or_, gone, Change()))
        more = max((_range(one.before) for one in chosen if one not in alone and one.before), default=0)
    for one in alone:
        least, most = _saved(one, whole / scale)
        saved, more = saved + least, more + most - least
    predicted = max(whole - scale * saved, 0)
    best = max(whole - scale * (saved + more), 0)
    ids = [(one.state, one.before.id) for one in chosen if one.before]
    return Achieved(
        gone=tuple(id_ for state, id_ in ids if state == "gone"),
        less=tuple(id_ for state, id_ in ids if state == "less"),
        predicted_step_ns=round(predicted),
        best_step_ns=round(best) if best < predicted else None,
        measured_step_ns=step.after_ns * (shares[1] if unrecorded else 1.0),
        unrecorded=unrecorded,
    )


def _range(finding: Finding) -> int:
    """By how much more than it says the fix of a finding may gain."""
    then, best = finding.predicted_step_ns, finding.best_step_ns
    return 0 if then is None or best is None else then - best


def _saved(one: FindingChange, step_ns: float) -> tuple[float, float]:
    """What was promised of what became of a finding, at least and at most: of what went the part that it is of all, but
    of a loader whose batches workers make now all that was promised of those."""
    before, after = one.before, one.after
    assert before is not None
    assert before.saving_ns_per_step is not None
    saving = float(before.saving_ns_per_step)
    if one.state == "gone" or after is None or not before.cost_ns_per_step:
        return saving, saving + _range(before)
    share = 1 - (after.cost_ns_per_step or 0) / before.cost_ns_per_step
    if before.loading is None:
        return share * saving, share * (saving + _range(before))
    if after.loading is None or after.loading.workers:
        return saving, saving + _range(before)
    rest = min((option.predicted_step_ns for option in before.options), default=before.predicted_step_ns or 0)
    return share * (step_ns - rest), share * (step_ns - rest)


def _matched(findings: Sequence[Finding], others: Sequence[Finding]) -> list[tuple[Finding, Finding | None]]:
    """Each with the other of its rule that is at the same line, else in the same function, else the first one left."""
    free = list(others)
    made: dict[int, Finding] = {}
    for key in (_place, _function, _rule):
        for at, one in enumerate(findings):
            match = next((other for other in free if at not in made and key(other) == key(one)), None)
            if match is not None:
                made[at] = match
                free = [other for other in free if other is not match]
    return [(one, made.get(at)) for at, one in enumerate(findings)]


def _place(finding: Finding) -> tuple[str | None, ...]:
    where = finding.where[0] if finding.where else None
    return (*_function(finding), where.op, str(where.line)) if where else (finding.rule,)


def _function(finding: Finding) -> tuple[str | None, ...]:
    where = finding.where[0] if finding.where else None
    return (finding.rule, where.file, where.function) if where else (finding.rule,)


def _rule(finding: Finding) -> tuple[str | None, ...]:
    return (finding.rule,)
