"""What findings save of the step as it is when nobody records, where no replay says so."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.whatif.recording import Overhead


def unrecorded(facts: Facts, recorded: Overhead, finding: Finding) -> Finding:
    """The finding, whose saving is less what recording took of it: where the fix's time is known, the recording's part
    of that, else the part that it has of the whole step."""
    mean, saving = facts.mean_step_ns, finding.saving_ns_per_step
    if not mean or saving is None:
        return finding
    share = recorded.step_ns / mean
    if finding.change is not None and finding.change.host:
        left = min(recorded.left(facts, saving, finding.change.host), recorded.step_ns)
    else:
        left = round(saving * share)
    then, best = (None if ns is None else round(ns * share) for ns in (finding.predicted_step_ns, finding.best_step_ns))
    if best is not None:
        best = min(best, recorded.step_ns - left)
    return replace(finding, saving_ns_per_step=left, predicted_step_ns=then, best_step_ns=best)


def best_unrecorded(facts: Facts, recorded: Overhead | None, finding: Finding) -> Finding:
    """The finding whose saving a replay told of that step, with its best end in the ratio of the steps."""
    mean, best = facts.mean_step_ns, finding.best_step_ns
    if recorded is None or not mean or best is None:
        return finding
    return replace(finding, best_step_ns=round(best * recorded.step_ns / mean))


def places_unrecorded(facts: Facts, recorded: Overhead | None, finding: Finding) -> Finding:
    """The finding, whose times by place are of the step as it is when nobody records: in the ratio of the steps."""
    mean = facts.mean_step_ns
    if recorded is None or not mean:
        return finding
    share = min(recorded.step_ns / mean, 1.0)
    where = tuple(
        place if place.ns_per_step is None else replace(place, ns_per_step=round(place.ns_per_step * share))
        for place in finding.where
    )
    return replace(finding, where=where)
