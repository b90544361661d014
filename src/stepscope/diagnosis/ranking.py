"""How findings are bounded, put in order and numbered, of a profile and of a job alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.rule import Rule
from stepscope.limits import FINDING_NS, FINDING_SHARE

_ALIKE = 0.1
"""What knows the cure of a part of a general finding is told before that, which gains no more than so much beyond."""


def bounded(finding: Finding, step_ns: int | None) -> Finding:
    """With the step time that its fix leaves, where the rule does not say it: no fix gains more than the step takes."""
    saving = finding.saving_ns_per_step
    if step_ns is None or saving is None or finding.predicted_step_ns is not None:
        return finding
    saving = min(max(saving, 0), step_ns)
    return replace(finding, saving_ns_per_step=saving, predicted_step_ns=step_ns - saving)


def order(found: Sequence[Finding], rules: Mapping[str, Rule]) -> list[int]:
    """Their places by what the fix gains, what says no gain last; a part that is nearly all of a general finding before
    that."""
    most: dict[str, int] = {}
    for finding in found:
        saving = finding.saving_ns_per_step
        for general in rules[finding.rule].cures_part_of if saving is not None else ():
            most[general] = max(most.get(general, 0), saving or 0)

    def rank(at: int) -> tuple[bool, int, bool]:
        finding = found[at]
        saving, part = ranked_ns(finding, rules[finding.rule]), most.get(finding.rule, 0)
        if saving is None:
            return True, -(finding.cost_ns_per_step or 0), False
        within = part < saving <= (1 + _ALIKE) * part
        return False, -(part if within else saving), finding.rule in most

    return sorted(range(len(found)), key=rank)


def ranked_ns(finding: Finding, rule: Rule) -> int | None:
    """What a finding is ranked by, in ns per step; None where its gain is not known."""
    saving = finding.saving_ns_per_step
    return min(saving, finding.cost_ns_per_step or 0) if saving and rule.at_most_its_cost else saving


def ids(found: Sequence[Finding]) -> list[str]:
    """Their names: each rule's findings are numbered from the first on."""
    seen: Counter[str] = Counter()
    named = []
    for finding in found:
        seen[finding.rule] += 1
        named.append(f"{finding.rule}.{seen[finding.rule]}")
    return named


def least_told(step_ns: int | None) -> float:
    """What a fix must gain per step to be a finding; where that is not known, what its cause must cost."""
    return max(FINDING_SHARE * (step_ns or 0), FINDING_NS)


def tells(finding: Finding, least: float) -> bool:
    """Whether its fix gains enough, or what it gains is to be measured and its cause costs enough, or is not known."""
    return (finding.not_determined is not None and finding.cost_ns_per_step is None) or size(finding) >= least


def size(finding: Finding) -> int:
    """What its fix gains; where that is not known, what its cause costs."""
    return finding.saving_ns_per_step if finding.saving_ns_per_step is not None else finding.cost_ns_per_step or 0
