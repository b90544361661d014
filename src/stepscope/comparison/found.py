"""Findings of two runs: which are gone, which are new, and whether the time they were said to cost came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Literal

from stepscope.comparison.side import Side
from stepscope.diagnosis.finding import Finding
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor

State = Literal["gone", "less", "stays", "more", "new"]
_MUCH = 0.5
"""A finding that stays costs less or more where its cost changed by this share."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Achieved:
    """What the first run's replay said of fixing the findings that are gone, beside what was measured."""

    gone: tuple[str, ...]
    predicted_step_ns: int
    measured_step_ns: float

    @property
    def off_share(self) -> float:
        """The prediction less the measurement, as a share of the measurement."""
        return (self.predicted_step_ns - self.measured_step_ns) / self.measured_step_ns


def finding_changes(before: Side, after: Side) -> list[FindingChange]:
    """Each finding of either run. A finding has a counterpart in what the other run's minor findings say, too."""
    gone = _matched(before.findings, (*after.findings, *after.minor))
    back = _matched(after.findings, (*before.findings, *before.minor))
    found = [FindingChange(one, two) for one, two in gone]
    told = {id(change.after) for change in found}
    return [*found, *(FindingChange(two, one) for one, two in back if id(one) not in told)]


def achieved(
    changes: Sequence[FindingChange], replayed: Predictor | str, step_ns: float, after_ns: float
) -> Achieved | None:
    """The replay of all that is gone at once; None where nothing is, or it cannot be replayed."""
    gone = [change.before for change in changes if change.state == "gone" and change.before and change.before.change]
    if not gone or not isinstance(replayed, Predictor) or not after_ns:
        return None
    without = reduce(or_, (finding.change for finding in gone if finding.change), Change())
    predicted = round(step_ns) - replayed.saving_ns(without)
    return Achieved(tuple(finding.id for finding in gone), predicted, after_ns)


def _matched(findings: Sequence[Finding], others: Sequence[Finding]) -> list[tuple[Finding, Finding | None]]:
    """Each with the other of its rule that is at the same line, else in the same function, else the first one left."""
    free = list(others)
    made: dict[int, Finding] = {}
    for key in (_place, _function, _rule):
        for at, one in enumerate(findings):
            found = next((other for other in free if at not in made and key(other) == key(one)), None)
            if found is not None:
                made[at] = found
                free = [other for other in free if other is not found]
    return [(one, made.get(at)) for at, one in enumerate(findings)]


def _place(finding: Finding) -> tuple[str | None, ...]:
    where = finding.where[0] if finding.where else None
    return (*_function(finding), where.op, str(where.line)) if where else (finding.rule,)


def _function(finding: Finding) -> tuple[str | None, ...]:
    where = finding.where[0] if finding.where else None
    return (finding.rule, where.file, where.function) if where else (finding.rule,)


def _rule(finding: Finding) -> tuple[str | None, ...]:
    return (finding.rule,)
