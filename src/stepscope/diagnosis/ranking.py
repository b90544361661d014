"""How findings are merged, bounded, put in order, numbered and divided, of a profile and of a job alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stepscope.analysis.limits import FINDING_NS, FINDING_SHARE
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.limits import HIDDEN_SHARE, PLAN_SHARE
from stepscope.diagnosis.rule import Rule
from stepscope.record import record
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor

_ALIKE = 0.1
"""What knows the cure of a part of a general finding is told before that, which gains no more than so much beyond."""


@record
class Scale:
    """What findings are held against."""

    rules: Mapping[str, Rule]
    """Every rule there is, in the order in which one should work."""
    step_ns: int | None
    replayed: Predictor | str
    short: bool = False
    """Whether steps are too short to be judged."""
    framework: str | None = None
    """The job's, as reports name it."""


def kind_of(finding: Finding, rules: Mapping[str, Rule]) -> tuple[str, str]:
    """What findings of several devices or ranks have in common that are told as one."""
    return finding.rule, "" if rules[finding.rule].is_one else finding.title


def merged(
    findings: Iterable[Finding],
    rules: Mapping[str, Rule],
    weight: Callable[[Finding], tuple[int, ...]],
    told: Callable[[list[Finding], Finding], Finding],
) -> list[Finding]:
    """One finding of each kind: what is told of all that have it by the heaviest of them."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(kind_of(finding, rules), []).append(finding)
    return [told(group, max(group, key=weight)) for group in groups.values()]


def bounded(finding: Finding, step_ns: int | None) -> Finding:
    """With the step time that its fix leaves, where the rule does not say it: no fix gains more than the step takes."""
    saving = finding.saving_ns_per_step
    if step_ns is None or saving is None or finding.predicted_step_ns is not None:
        return finding
    saving = min(max(saving, 0), step_ns)
    return replace(finding, saving_ns_per_step=saving, predicted_step_ns=step_ns - saving)


def ranked(
    findings: Sequence[Finding], scale: Scale
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[str, ...]]:
    """Those worth telling and those that are not, in order and numbered, and the plan: ids in the order of work."""
    worth, minor = _divided(_named(ordered(findings, scale.rules), scale), scale)
    order = list(scale.rules)
    planned = [finding for finding in worth if finding.saving_ns_per_step is not None]
    little = PLAN_SHARE * max(map(_at_most, planned), default=0)
    planned.sort(key=lambda each: (_comes_with_others(each, scale), _at_most(each) < little, order.index(each.rule)))
    return worth, minor, tuple(finding.id for finding in planned)


def ordered(findings: Sequence[Finding], rules: Mapping[str, Rule]) -> list[Finding]:
    """By what the fix gains, what says no gain last; a part that is nearly all of a general finding before that."""
    most: dict[str, int] = {}
    for finding in findings:
        saving, rule = finding.saving_ns_per_step, rules[finding.rule]
        for general in (*rule.cures_part_of, *rule.comes_before) if saving is not None else ():
            most[general] = max(most.get(general, 0), saving or 0)

    def rank(finding: Finding) -> tuple[bool, int, bool]:
        saving, part = _ranked_ns(finding, rules[finding.rule]), most.get(finding.rule, 0)
        if saving is None:
            return True, -(finding.cost_ns_per_step or 0), False
        within = part < saving <= (1 + _ALIKE) * part
        return False, -(part if within else saving), finding.rule in most

    return _behind_what_holds_them(sorted(findings, key=rank))


def _behind_what_holds_them(findings: list[Finding]) -> list[Finding]:
    """What goes with the cause of another comes right behind that."""
    saved = {finding.rule for finding in findings if finding.saving_ns_per_step}
    parts = [finding for finding in findings if finding.within in saved]
    placed: list[Finding] = []
    for finding in findings:
        if finding not in parts:
            first = finding.rule not in {each.rule for each in placed}
            placed.append(finding)
            placed += [part for part in parts if part.within == finding.rule and first]
    return placed


def _ranked_ns(finding: Finding, rule: Rule) -> int | None:
    """What a finding is ranked by, in ns per step; None where its gain is not known."""
    saving = finding.saving_ns_per_step
    return min(saving, finding.cost_ns_per_step or 0) if saving and rule.at_most_its_cost else saving


def _named(findings: Sequence[Finding], scale: Scale) -> list[Finding]:
    """With their names, each rule's findings numbered from the first on, and whether a cure can be tried on the job."""
    seen: Counter[str] = Counter()
    named = []
    for finding in findings:
        seen[finding.rule] += 1
        tried = scale.framework in scale.rules[finding.rule].tried_for and not finding.untried
        named.append(replace(finding, id=f"{finding.rule}.{seen[finding.rule]}", provable=tried))
    return named


def _divided(ranked: Sequence[Finding], scale: Scale) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What is worth telling, each with what it still gains once those above it are fixed, and what is not."""
    least, replayed = least_told(scale.step_ns), scale.replayed
    if not isinstance(replayed, Predictor):
        return _divided_by_time(ranked, scale)
    change, saved = Change(), 0
    worth: list[Finding] = []
    minor: list[Finding] = []
    for finding in ranked:
        tells = _is_worth_telling(finding, scale)
        if finding.change is not None and (tells or saved):
            both = change | finding.change
            together = replayed.saving_ns(both)
            if worth and saved:
                then = max(together - saved, 0)
                finding = replace(finding, saving_after_ns_per_step=then)
                stands = then >= least or _stands(finding, scale, change, {above.rule for above in worth})
                tells = stands if tells else _uncovered(scale, replayed, then)
            if tells:
                change, saved = both, together
        (worth if tells else minor).append(_gone_with(finding, worth))
    return tuple(worth), tuple(minor)


def _divided_by_time(ranked: Sequence[Finding], scale: Scale) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The same where nothing is replayed: what lies in the host's time that one above takes away goes with it."""
    above = Change()
    worth: list[Finding] = []
    minor: list[Finding] = []
    for finding in ranked:
        tells, change = _is_worth_telling(finding, scale), finding.change
        share = 1.0 if change is None else change.left_by(above)
        if change is not None and share < 1.0 and finding.saving_ns_per_step is not None:
            finding = replace(finding, saving_after_ns_per_step=round(share * finding.saving_ns_per_step))
            tells = tells and not above.holds(change) and share * _at_most(finding) >= least_told(scale.step_ns)
        if tells and change is not None:
            above |= change
        (worth if tells else minor).append(_gone_with(finding, worth))
    return tuple(worth), tuple(minor)


def _gone_with(finding: Finding, above: Sequence[Finding]) -> Finding:
    """Of what goes with a cause that is told above nothing is left."""
    if finding.within not in {each.rule for each in above} or not finding.saving_ns_per_step:
        return finding
    return replace(finding, saving_after_ns_per_step=0)


def _is_worth_telling(finding: Finding, scale: Scale) -> bool:
    """Whether its fix may gain enough, and more than the replay is off, in steps long enough to be judged; or what it
    gains is to be measured and its cause costs enough, or is not known."""
    replayed = scale.replayed
    off = replayed.error if isinstance(replayed, Predictor) and finding.prediction_basis == "replay" else 0.0
    if scale.short:
        return False
    open_ = finding.not_determined is not None and finding.cost_ns_per_step is None
    return open_ or _at_most(finding) >= max(least_told(scale.step_ns), off * (scale.step_ns or 0))


def _stands(finding: Finding, scale: Scale, above: Change, rules: set[str]) -> bool:
    """Whether it is told though its fix gains nothing once those above are made: it knows the cure of a part of theirs,
    or it is a large cause of its own, which they only hide."""
    if not rules.isdisjoint(scale.rules[finding.rule].cures_part_of):
        return True
    large = (finding.saving_ns_per_step or 0) >= HIDDEN_SHARE * (scale.step_ns or 0)
    return large and finding.change is not None and not above.holds(finding.change)


def _uncovered(scale: Scale, replayed: Predictor, then_ns: int) -> bool:
    """Whether it is told though its fix gains too little by itself: once those above it are fixed it is a large cause.
    Kernels gain nothing by being faster while the host cannot launch them any faster."""
    return not scale.short and then_ns >= max(HIDDEN_SHARE, replayed.error) * (scale.step_ns or 0)


def _comes_with_others(finding: Finding, scale: Scale) -> bool:
    """Whether hardly anything is left of it once those above it are fixed."""
    after = finding.saving_after_ns_per_step
    return after is not None and after < least_told(scale.step_ns)


def least_told(step_ns: int | None) -> float:
    """What a fix must gain per step to be a finding; where that is not known, what its cause must cost."""
    return max(FINDING_SHARE * (step_ns or 0), FINDING_NS)


def _at_most(finding: Finding) -> int:
    """What its fix gains at best, where that is a range."""
    if finding.predicted_step_ns is None or finding.best_step_ns is None:
        return size(finding)
    return size(finding) + max(finding.predicted_step_ns - finding.best_step_ns, 0)


def size(finding: Finding) -> int:
    """What its fix gains; where that is not known, what its cause costs."""
    return finding.saving_ns_per_step if finding.saving_ns_per_step is not None else finding.cost_ns_per_step or 0
