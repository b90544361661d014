"""Runs the rules, predicts what each fix gains, and ranks what they found by that."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

from stepscope.analysis.categories import Category
from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.chains import completed, together
from stepscope.diagnosis.evidence import booked, capture_slows_host
from stepscope.diagnosis.finding import Diagnosis, Finding, WhatIf
from stepscope.diagnosis.left_on_host import as_range
from stepscope.diagnosis.loader import by_workers
from stepscope.diagnosis.notices import notices, recording
from stepscope.diagnosis.notices.recording import Manifest
from stepscope.diagnosis.notices.steps import takes_little
from stepscope.diagnosis.ranking import Scale, bounded, least_told, merged, ranked
from stepscope.diagnosis.rules import DECLARED, RULES
from stepscope.diagnosis.starved import as_starved
from stepscope.diagnosis.unrecorded import best_unrecorded, places_unrecorded, unrecorded
from stepscope.diagnosis.untold import untold
from stepscope.diagnosis.verdict import verdict
from stepscope.trace.shared import shared
from stepscope.whatif.predictor import Predictor, predictor
from stepscope.whatif.recording import Overhead, overhead, told_step_ns

_SAMPLED = "The profile was sampled: record whole steps (no sampling, no event filter) to have costs per step."

_CONTRADICTED = "The profile is not what the job did (see its notices): costs cannot be told from it."


_OTHERS_IDLE = """\
Another device takes as long and idles meanwhile for reasons the profile does not record: whether it waits for this one
is not known."""


def diagnose(facts: Facts, manifest: Manifest | None = None) -> Diagnosis:
    """Apply every rule; ``manifest`` is what ``stepscope run`` says of how the profile came about."""
    replayed = predictor(facts)
    rules = () if facts.device_lost or facts.is_capture else RULES
    findings = merged(
        (finding for rule in rules for finding in rule.find(facts) if finding.device not in facts.unused),
        DECLARED,
        lambda finding: (finding.cost_ns_per_step or 0,),
        lambda group, worst: _over_devices(facts, group, worst, simulated=isinstance(replayed, Predictor)),
    )
    recorded = replayed.recording if isinstance(replayed, Predictor) else overhead(facts, None)
    findings = [_qualified(facts, _predicted(facts, replayed, recorded, finding)) for finding in findings]
    scale = Scale(DECLARED, facts.median_step_ns, replayed, takes_little(facts), facts.trace.info.framework)
    worth, minor, plan = ranked(findings, scale)
    sentence, bottleneck = verdict(facts)
    told = list(notices(facts))
    if manifest is not None:
        told = recording.together(told, facts, manifest)
    told += untold(facts, worth)
    return Diagnosis(worth, minor, tuple(told), sentence, bottleneck, _whatif(facts, replayed, worth), replayed, plan)


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
        finding = best_unrecorded(facts, recorded, finding)
    elif recorded is not None:
        finding = unrecorded(facts, recorded, finding)
    finding = bounded(finding, told_step_ns(facts))
    if finding.predicted_step_ns is None or finding.saving_ns_per_step is None:
        return finding
    return as_starved(facts, DECLARED[finding.rule], as_range(facts, by_workers(facts, replayed, recorded, finding)))


def _whatif(facts: Facts, replayed: Predictor | str, findings: tuple[Finding, ...]) -> WhatIf:
    if isinstance(replayed, str):
        return WhatIf(None, None, replayed, None)
    changes = [finding.change for finding in findings if finding.change is not None]
    combined = None
    step = told_step_ns(facts)
    if changes and step is not None:
        combined = max(step - replayed.saving_ns(reduce(or_, changes)), 0)
    return WhatIf(replayed.error, replayed.residual_share, None, combined)


def _over_devices(facts: Facts, group: list[Finding], worst: Finding, *, simulated: bool) -> Finding:
    """The device where a cause costs most speaks for all that have it.

    Waits are the host's, so those of all devices are one set, whatever each device names first.
    A step ends with its last device, so a fix gains what the longest window loses: a device that lacks
    the cause, or has less of it, holds the step. A device that computes nothing holds none, whatever it waits for.
    One that idles in nobody knows what may wait for that cause all the same: then only a replay tells what a fix gains.
    """
    if worst.saving_ns_per_step is None or worst.predicted_step_ns is not None or len(facts.working) < 2:
        return worst
    windows = _windows(facts)
    saved = {finding.device: finding.saving_ns_per_step or 0 for finding in group}
    holds = max(windows, key=lambda device: windows[device] - saved.get(device, 0))
    left = windows[holds] - saved.get(holds, 0)
    figures = f"the figures are those of device {worst.device}"
    also = f" {len(group)} of {len(windows)} devices have it; {figures}." if len(group) > 1 else ""
    saving = max(max(windows.values()) - left, 0)
    changes = [finding.change for finding in group if finding.change is not None]
    change = reduce(or_, changes) if changes else None
    told = replace(worst, saving_ns_per_step=saving, change=change).saying(also)
    short = worst.saving_ns_per_step - saving
    if not simulated and min(short, _unexplained(facts, holds)) >= max(least_told(facts.median_step_ns), saving):
        return replace(told, saving_ns_per_step=None, change=None, not_determined=_OTHERS_IDLE.replace("\n", " "))
    return told


@shared
def _windows(facts: Facts) -> dict[int | None, int]:
    """Each working device's mean window of a used step."""
    return {
        account.rows.device: facts.per_step(int(account.duration_ns[facts.used_rows(account)].sum()))
        for account in facts.working
    }


def _unexplained(facts: Facts, device: int | None) -> int:
    """What a device idles per step with work queued, for reasons the profile does not record."""
    return sum(booked(facts, one, Category.UNKNOWN_DEVICE) for one in facts.working if one.rows.device == device)


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
        finding = replace(finding, confidence="low" if finding.confidence == "low" else "medium")
        finding = finding.saying(f" Part of this is the capture's own: recording {recorded} slows the host.")
    # What the device did meanwhile is not known where nothing of it was recorded.
    unsure = facts.markers.source == "whole profile" or not facts.activities
    return replace(finding, confidence="medium") if unsure and finding.confidence == "high" else finding
