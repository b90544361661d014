"""Runs the rules, predicts what each fix gains, and ranks what they found by that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.chains import completed, together
from stepscope.diagnosis.evidence import booked, capture_slows_host
from stepscope.diagnosis.finding import Finding, Notice
from stepscope.diagnosis.left_on_host import as_range
from stepscope.diagnosis.loader import by_workers
from stepscope.diagnosis.notices import notices, recording
from stepscope.diagnosis.notices.recording import Manifest
from stepscope.diagnosis.notices.steps import takes_little
from stepscope.diagnosis.ranking import bounded, ids, least_told, order, tells
from stepscope.diagnosis.rules import DECLARED, RULES
from stepscope.diagnosis.unrecorded import places_unrecorded, unrecorded
from stepscope.diagnosis.untold import untold
from stepscope.diagnosis.verdict import verdict
from stepscope.limits import HIDDEN_SHARE
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor, predictor
from stepscope.whatif.recording import Overhead, overhead, told_step_ns

_SAMPLED = "The profile was sampled: record whole steps (no sampling, no event filter) to have costs per step."

_CONTRADICTED = "The profile is not what the job did (see its notices): costs cannot be told from it."


_OTHERS_IDLE = """\
Another device takes as long and idles meanwhile for reasons the profile does not record: whether it waits for this one
is not known."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """How good predictions are: shares of the mean step, None where nothing was replayed, and then why."""

    replay_error: float | None
    residual_share: float | None
    reason: str | None
    combined_step_ns: int | None
    """The step time with every finding fixed at once."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the rules say of one trace. Of what is ``minor`` the fix gains too little to be a finding, by itself or once
    the findings above it are fixed; it shows under ``-v`` only."""

    findings: tuple[Finding, ...]
    minor: tuple[Finding, ...]
    notices: tuple[Notice, ...]
    verdict: str
    bottleneck: str
    whatif: WhatIf
    replayed: Predictor | str
    """The replay behind the predictions, else why there is none."""
    plan: tuple[str, ...]
    """Ids of findings that say what they save, in the order one should work: that of ``RULES``, but for those that
    others fix along the way, which come last."""


def diagnose(facts: Facts, manifest: Manifest | None = None) -> Diagnosis:
    """Apply every rule; ``manifest`` is what ``stepscope run`` says of how the profile came about."""
    replayed = predictor(facts)
    rules = () if facts.device_lost or facts.is_capture else RULES
    simulated = isinstance(replayed, Predictor)
    by_rule = [_over_devices(facts, rule.find(facts), simulated=simulated) for rule in rules]
    place = {finding.rule: at for at, findings in enumerate(by_rule) for finding in findings}
    found = [finding for findings in by_rule for finding in findings]
    recorded = replayed.recording if isinstance(replayed, Predictor) else overhead(facts, None)
    found = [_qualified(facts, _predicted(facts, replayed, recorded, finding)) for finding in found]
    found = [found[at] for at in order(found, DECLARED)]
    found = [replace(finding, id=id_) for finding, id_ in zip(found, ids(found), strict=True)]
    worth, minor = _divided(facts, replayed, found)
    sentence, bottleneck = verdict(facts)
    planned = [finding for finding in worth if finding.saving_ns_per_step is not None]
    planned.sort(key=lambda finding: (_comes_with_others(facts, finding), place[finding.rule]))
    plan = tuple(finding.id for finding in planned)
    told, left = list(notices(facts)), untold(facts, worth)
    if manifest is not None:
        told, left = recording.together(told, facts, manifest), recording.reworded(left)
    told += left
    return Diagnosis(worth, minor, tuple(told), sentence, bottleneck, _whatif(facts, replayed, worth), replayed, plan)


def _comes_with_others(facts: Facts, finding: Finding) -> bool:
    """Whether hardly anything is left of it once those above it are fixed."""
    after = finding.saving_after_ns_per_step
    return after is not None and after < least_told(facts.median_step_ns)


def _divided(
    facts: Facts, replayed: Predictor | str, ranked: list[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What is worth telling, each with what it still gains once those above it are fixed, and what is not."""
    least = least_told(facts.median_step_ns)
    change, saved = Change(), 0
    worth: list[Finding] = []
    minor: list[Finding] = []
    for finding in ranked:
        tells = _is_worth_telling(facts, replayed, finding)
        if finding.change is not None and isinstance(replayed, Predictor) and (tells or saved):
            both = change | finding.change
            together = replayed.saving_ns(both)
            if worth and saved:
                then = max(together - saved, 0)
                finding = replace(finding, saving_after_ns_per_step=then)
                stands = then >= least or _stands(facts, finding, change, {above.rule for above in worth})
                tells = stands if tells else _uncovered(facts, replayed, then)
            if tells:
                change, saved = both, together
        (worth if tells else minor).append(finding)
    return tuple(worth), tuple(minor)


def _stands(facts: Facts, finding: Finding, above: Change, rules: set[str]) -> bool:
    """Whether it is told though its fix gains nothing once those above are made: it knows the cure of a part of theirs,
    or it is a large cause of its own, which they only hide."""
    if not rules.isdisjoint(DECLARED[finding.rule].cures_part_of):
        return True
    large = (finding.saving_ns_per_step or 0) >= HIDDEN_SHARE * (facts.median_step_ns or 0)
    return large and finding.change is not None and not above.holds(finding.change)


def _uncovered(facts: Facts, replayed: Predictor, then_ns: int) -> bool:
    """Whether it is told though its fix gains too little by itself: once those above it are fixed it is a large cause.
    Kernels gain nothing by being faster while the host cannot launch them any faster."""
    return not takes_little(facts) and then_ns >= max(HIDDEN_SHARE, replayed.error) * (facts.median_step_ns or 0)


def _is_worth_telling(facts: Facts, replayed: Predictor | str, finding: Finding) -> bool:
    """Whether its fix gains enough, and more than the replay is off, in steps long enough to be judged."""
    step = facts.median_step_ns or 0
    off = replayed.error if isinstance(replayed, Predictor) and finding.prediction_basis == "replay" else 0.0
    return not takes_little(facts) and tells(finding, max(least_told(step), off * step))


def _predicted(facts: Facts, replayed: Predictor | str, recorded: Overhead | None, finding: Finding) -> Finding:
    """With what the fix gains, replayed where that can be done, and the step time that leaves."""
    finding = places_unrecorded(facts, recorded, completed(replayed, finding))
    if finding.change is not None and finding.not_determined is not None:
        # The change is the most that a fix could do: of what even that gains too little nothing more is to be known.
        most = replayed.saving_ns(finding.change) if isinstance(replayed, Predictor) else None
        if most is None or most >= least_told(facts.median_step_ns):
            return replace(finding, change=None)
        finding = replace(finding, not_determined=None)
    if finding.change is not None and isinstance(replayed, Predictor):
        parts = tuple(
            replace(part, saving_alone_ns_per_step=replayed.saving_ns(part.change)) for part in finding.fix_set
        )
        saving = replayed.saving_ns(finding.change)
        finding = together(replace(finding, saving_ns_per_step=saving, prediction_basis="replay", fix_set=parts))
    elif recorded is not None:
        finding = unrecorded(facts, recorded, finding)
    finding = bounded(finding, told_step_ns(facts))
    if finding.predicted_step_ns is None or finding.saving_ns_per_step is None:
        return finding
    return as_range(facts, by_workers(facts, replayed, recorded, finding))


def _whatif(facts: Facts, replayed: Predictor | str, findings: tuple[Finding, ...]) -> WhatIf:
    if isinstance(replayed, str):
        return WhatIf(None, None, replayed, None)
    changes = [finding.change for finding in findings if finding.change is not None]
    combined = None
    step = told_step_ns(facts)
    if changes and step is not None:
        combined = max(step - replayed.saving_ns(reduce(or_, changes)), 0)
    return WhatIf(replayed.error, replayed.residual_share, None, combined)


def _over_devices(facts: Facts, found: list[Finding], *, simulated: bool) -> list[Finding]:
    """One finding per rule and title: the device where it costs most speaks for all that have it.

    Waits are the host's, so those of all devices are one set, whatever each device names first.
    A step ends with its last device, so a fix gains what the longest window loses: a device that lacks
    the cause, or has less of it, holds the step. A device that computes nothing holds none, whatever it waits for.
    One that idles in nobody knows what may wait for that cause all the same: then only a replay tells what a fix gains.
    """
    merged = []
    found = [finding for finding in found if finding.device not in facts.unused]
    keys = [(f.rule, "" if DECLARED[f.rule].is_one else f.title) for f in found]
    alike: dict[tuple[str, str], list[Finding]] = {key: [] for key in keys}
    for finding, key in zip(found, keys, strict=True):
        alike[key].append(finding)
    windows = {account.rows.device: _mean_window(facts, account) for account in facts.working} if found else {}
    for group in alike.values():
        worst = max(group, key=lambda finding: finding.cost_ns_per_step or 0)
        if worst.saving_ns_per_step is None or worst.predicted_step_ns is not None or len(facts.working) < 2:
            merged.append(worst)
            continue
        saved = {finding.device: finding.saving_ns_per_step or 0 for finding in group}
        holds = max(windows, key=lambda device: windows[device] - saved.get(device, 0))
        left = windows[holds] - saved.get(holds, 0)
        figures = f"the figures are those of device {worst.device}"
        also = f" {len(group)} of {len(windows)} devices have it; {figures}." if len(group) > 1 else ""
        saving = max(max(windows.values()) - left, 0)
        changes = [finding.change for finding in group if finding.change is not None]
        change = reduce(or_, changes) if changes else None
        told = replace(worst, saving_ns_per_step=saving, change=change, why=worst.why + also)
        short = worst.saving_ns_per_step - saving
        if not simulated and min(short, _unexplained(facts, holds)) >= max(least_told(facts.median_step_ns), saving):
            told = replace(told, saving_ns_per_step=None, change=None, not_determined=_OTHERS_IDLE.replace("\n", " "))
        merged.append(told)
    return merged


def _unexplained(facts: Facts, device: int | None) -> int:
    """What a device idles per step with work queued, for reasons the profile does not record."""
    return sum(booked(facts, one, Category.UNKNOWN_DEVICE) for one in facts.working if one.rows.device == device)


def _mean_window(facts: Facts, account: Account) -> int:
    return facts.per_step(int(account.duration_ns[facts.used_rows(account)].sum()))


def _qualified(facts: Facts, finding: Finding) -> Finding:
    """Lower what a finding claims where the profile does not carry it."""
    if facts.sampling.sampled or contradictions(facts).withholds:
        return replace(
            finding,
            cost_ns_per_step=None,
            saving_ns_per_step=None,
            prediction_basis=None,
            confidence="low",
            not_determined=_CONTRADICTED if contradictions(facts).withholds else _SAMPLED,
        )
    recorded = capture_slows_host(facts)
    if DECLARED[finding.rule].host_bound and recorded is not None:
        finding = replace(
            finding,
            confidence="low" if finding.confidence == "low" else "medium",
            why=f"{finding.why} Part of this is the capture's own: recording {recorded} slows the host.",
        )
    # What the device did meanwhile is not known where nothing of it was recorded.
    unsure = facts.markers.source == "whole profile" or not facts.activities
    return replace(finding, confidence="medium") if unsure and finding.confidence == "high" else finding
