"""What is left of a host's step once most of it is gone: at most what it took between, at best half of that."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.limits import HOST_LEFT_FASTER
from stepscope.whatif.recording import told_step_ns


def as_range(facts: Facts, finding: Finding) -> Finding:
    """A finding that promises to take away most of a step without a device, with what that leaves at best."""
    step, left = told_step_ns(facts), finding.predicted_step_ns
    if facts.activities or finding.best_step_ns is not None or step is None or not left or 2 * left > step:
        return finding
    return replace(finding, best_step_ns=round(left * (1 - HOST_LEFT_FASTER)))
