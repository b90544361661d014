"""What a fix saves on a machine with more to run than cores: a part of each saving is time in which none was free."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.core_waits import share_without_core
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.limits import NO_CORE_SHARE
from stepscope.diagnosis.rule import Rule
from stepscope.whatif.recording import told_step_ns


def without_core(facts: Facts) -> float:
    """Of the used steps the share in which their thread had no core, from ``NO_CORE_SHARE`` on; else 0."""
    steps = list(facts.used)
    start, end = (bounds[steps] for bounds in facts.step_bounds)
    share = share_without_core(facts.trace, facts.host.main, (start, end))
    return share if share >= NO_CORE_SHARE else 0.0


def as_starved(facts: Facts, rule: Rule, finding: Finding) -> Finding:
    """A finding on what the host does, whose saving is a range where that had no core for a while: at least what it is
    in time with a core, at most all of it, as long as the machine stays as busy."""
    step, saving, left = told_step_ns(facts), finding.saving_ns_per_step, finding.predicted_step_ns
    on_host = rule.host_bound or not facts.activities
    if step is None or not saving or left is None or left >= step or not on_host or not (share := without_core(facts)):
        return finding
    least = round(saving * (1 - share))
    best = left if finding.best_step_ns is None else finding.best_step_ns
    return replace(finding, saving_ns_per_step=least, predicted_step_ns=left + saving - least, best_step_ns=best)
