"""What is left of a host's step once most of it is gone: at most what it took between, at best half of that and less
what its cause may have taken besides."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.limits import HOST_GONE_ERROR, HOST_LEFT_FASTER, HOST_LEFT_LEAST
from stepscope.whatif.recording import told_step_ns


def as_range(facts: Facts, finding: Finding) -> Finding:
    """A finding that promises to take away most of a step without a device, with what that leaves at best."""
    step, left = told_step_ns(facts), finding.predicted_step_ns
    if facts.activities or finding.best_step_ns is not None or step is None or left is None:
        return finding
    return replace(finding, best_step_ns=at_best(left, step)) if _most_goes(left, step) else finding


def at_best(left: int, step: int) -> int:
    """What is left at best of a host's step of which no more than ``left`` is."""
    if not _most_goes(left, step):
        return left
    faster = round((1 - HOST_LEFT_FASTER) * left - HOST_GONE_ERROR * (step - left))
    return max(faster, round(HOST_LEFT_LEAST * left))


def left_by_job(finding: Finding, step_ns: int, share: float, *, on_host: bool) -> Finding:
    """A finding on a job whose step takes ``step_ns`` when nobody records, that ``share`` of what it took recorded.

    A saving is the same share of what the recorded steps say. Where most of a step goes, what is left is a range: no
    more than it took recorded, since what recording cost may all have been in what goes, and at best that share of
    it, or as little as is left on a host.
    """
    saving, left = finding.saving_ns_per_step, finding.predicted_step_ns
    if saving is None or left is None or (share == 1 and not on_host):
        return finding
    best = round(share * left)
    if finding.best_step_ns is not None or not _most_goes(left, step_ns):
        return replace(finding, saving_ns_per_step=round(share * saving), predicted_step_ns=best)
    best = min(best, at_best(left, step_ns)) if on_host else best
    return replace(
        finding,
        saving_ns_per_step=step_ns - left,
        predicted_step_ns=left,
        best_step_ns=best if best < left else None,
    )


def _most_goes(left: int | None, step: int | None) -> bool:
    """Whether something is left, and that less than half."""
    return step is not None and bool(left) and 2 * (left or 0) <= step
