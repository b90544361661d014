"""What PyTorch/XLA counts: ops that fall back to the CPU, and compilations that the profile shows or does not show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from stepscope.formats.beside.lazy_metrics import with_metrics
from stepscope.trace.trace import Trace
from tests.analysis.test_xla import compiling, lazy_loop
from tests.kit.lazy_reports import AFTER, BEFORE, STEPS
from tests.kit.xla import Job, build

Change = Callable[[str], str]


def same(report: str) -> str:
    return report


def counted(job: Job, after: Change = same, steps: int | None = STEPS) -> Facts:
    """A job of which PyTorch/XLA counted what the true report says, or a variant of it."""
    trace: Trace = build(replace(job, framework="PyTorch/XLA"))
    entry = {"path": "a.pb", "steps": steps, "metrics": {"before": BEFORE, "after": after(AFTER)}}
    return analyse(with_metrics(trace, {"files": [entry]}, "a.pb"))


def told(facts: Facts, rule: str) -> list[Finding]:
    diagnosis = diagnose(facts)
    return [finding for finding in (*diagnosis.findings, *diagnosis.minor) if finding.rule == rule]


def test_ops_that_fall_back_are_named_with_how_often_they_do() -> None:
    (finding,) = told(counted(lazy_loop()), "ops_fall_back")
    assert finding.title.endswith("cannot compile them: `aten::_linalg_solve_ex` and 2 more")
    assert "in the 4 recorded steps" in finding.why
    assert "`aten::nonzero` 1 per step" in finding.why
    assert "_local_scalar_dense" not in finding.why + finding.title
    assert "torch.where(mask, values, 0.0)" in finding.fix
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (None, None)


@pytest.mark.parametrize(
    ("after", "steps"),
    [
        (lambda report: report[: report.index("Counter: aten::")], STEPS),  # there are none
        (lambda report: report.replace("  Value: 6", "  Value: 3"), STEPS),  # once in four steps
        (same, None),  # of how many steps is not known; and counters that were set back
        (lambda report: report.replace("Counter: xla::mm\n  Value: 12", "Counter: xla::mm\n  Value: 0"), STEPS),
    ],
)
def test_what_seldom_falls_back_is_no_finding(after: Change, steps: int | None) -> None:
    assert told(counted(lazy_loop(), after, steps), "ops_fall_back") == []


def often_compiled(report: str) -> str:
    return report.replace("Metric: CompileTime\n  TotalSamples: 11", "Metric: CompileTime\n  TotalSamples: 16")


def test_compilations_that_only_the_counter_knows_are_told_without_a_saving() -> None:
    (finding,) = told(counted(lazy_loop(), often_compiled), "recompilation")
    assert "PyTorch/XLA counted 8 graphs compiled (2 per step, " in finding.why
    assert finding.cost_ns_per_step == pytest.approx((2_739_832_684 - 1_360_230_398) / STEPS)
    assert finding.saving_ns_per_step is None
    assert "PT_XLA_DEBUG_LEVEL=2" in finding.fix


def test_one_compilation_in_the_window_is_none_that_comes_back() -> None:
    once = counted(lazy_loop(), lambda report: report.replace("TotalSamples: 11", "TotalSamples: 9"))
    assert told(once, "recompilation") == []


def test_compilations_that_the_profile_shows_are_told_once_with_the_count() -> None:
    job = compiling()
    plain = told(analyse(build(replace(job, framework="PyTorch/XLA"))), "recompilation")
    found = told(counted(job, often_compiled), "recompilation")
    assert [one.cost_ns_per_step for one in found] == [one.cost_ns_per_step for one in plain]
    assert found
    assert all("PyTorch/XLA counted 8 graphs compiled (2 per step, 345 ms)." in one.why for one in found)
    assert not any("counted" in one.why for one in plain)


def test_transfers_are_told_with_how_many_there_are() -> None:
    (finding,) = told(counted(lazy_loop()), "transfer_bound")
    assert finding.why.endswith(" PyTorch/XLA counted the transfers to the device: 7 per step, 56.1 µs.")


def test_a_profile_without_counters_has_none_of_it() -> None:
    facts = analyse(build(replace(lazy_loop(), framework="PyTorch/XLA")))
    assert (facts.lazy_metrics, told(facts, "ops_fall_back")) == (None, [])
    assert not np.any(facts.trace.metrics.count_after)
