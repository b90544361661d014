"""Savings are of the step as it is when nobody records: the host's time shrinks where it made calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.facts import Facts
from stepscope.analysis.recording import RecordedRun, run_of
from stepscope.analysis.summary import unrecorded_step_ns
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.report import document
from stepscope.report.finding_phrases import saving
from stepscope.report.phrases import step_time
from stepscope.whatif.recording import told_step_ns
from tests.kit.builder import TraceDrawing
from tests.support import facts_of

US = 1_000
STEP, STEPS, CALLS = 10_000, 8, 100
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def job(*, calls_in_input: bool) -> Facts:
    """Steps of 10 ms on the CPU, 4 ms in the loader and 4 ms in the user's function ``log``; 100 calls in one of
    them."""
    drawing = TraceDrawing()
    for number in range(STEPS):
        start = number * STEP
        drawing.step(number, start, STEP)
        drawing.annotation(LOADER, start, 4_000)
        drawing.python("data.py(12): augment", start, 4_000)
        drawing.python("train.py(40): log", start + 4_000, 4_000)
        drawing.host("aten::mm", start + 8_000, 2_000)
        busy = start if calls_in_input else start + 4_000
        for call in range(CALLS):
            drawing.python("data.py(3): one", busy + 10 + 39 * call, 30)
    return facts_of(drawing.events())


def told(facts: Facts, recorded_us: int, unrecorded_us: int) -> tuple[Facts, Diagnosis]:
    facts = replace(facts, run=RecordedRun(recorded_us * US, unrecorded_us * US, cores=64))
    return facts, diagnose(facts)


def by_rule(diagnosis: Diagnosis) -> dict[str, int]:
    return {one.rule: one.saving_ns_per_step or 0 for one in (*diagnosis.findings, *diagnosis.minor)}


def test_what_makes_the_calls_is_what_recording_inflates() -> None:
    _, within = told(job(calls_in_input=False), 10_000, 8_000)
    _, before = told(job(calls_in_input=False), 10_000, 10_000)
    # All but four of the calls are in ``log``: nearly all of the two milliseconds are its.
    assert by_rule(before)["between_steps"] - by_rule(within)["between_steps"] == pytest.approx(2_000 * US, rel=0.06)
    assert by_rule(within)["input_bound"] == pytest.approx(by_rule(before)["input_bound"], rel=0.05)


def test_a_loader_that_makes_them_promises_less() -> None:
    _, within = told(job(calls_in_input=True), 10_000, 8_000)
    (finding,) = (one for one in within.findings if one.rule == "input_bound")
    assert finding.saving_ns_per_step == pytest.approx(2_000 * US, rel=0.3)
    assert finding.predicted_step_ns is not None
    assert finding.predicted_step_ns + (finding.saving_ns_per_step or 0) == 8_000 * US


def test_no_promise_is_above_the_unrecorded_step() -> None:
    facts, diagnosis = told(job(calls_in_input=True), 10_000, 3_000)
    assert all((one.saving_ns_per_step or 0) <= 3_000 * US for one in (*diagnosis.findings, *diagnosis.minor))
    assert told_step_ns(facts) == 3_000 * US


def test_calls_cost_no_more_than_what_lies_between_them() -> None:
    """Other work slowed the machine while it recorded: what made the calls does not vanish, all shrinks alike."""
    _, within = told(job(calls_in_input=True), 10_000, 4_000)
    calls_took = CALLS * 0.85 * 39 * US
    (finding,) = (one for one in within.findings if one.rule == "input_bound")
    left = 4_000 / (10_000 - calls_took / US)
    assert finding.saving_ns_per_step == pytest.approx((4_000 * US - calls_took) * left, rel=0.1)
    assert by_rule(within)["between_steps"] == pytest.approx(4_000 * US * left, rel=0.1)


def test_without_the_unrecorded_step_all_is_as_recorded() -> None:
    facts = job(calls_in_input=True)
    assert unrecorded_step_ns(facts) is None
    assert told_step_ns(facts) == facts.mean_step_ns
    _, slower = told(facts, 10_000, 11_000)
    assert by_rule(slower) == by_rule(told(facts, 10_000, 10_000)[1])


@pytest.mark.parametrize(
    ("recorded", "unrecorded"),
    [
        ([10_000] * 19 + [110_000], [8_000] * 10),  # Validation, or saving, while it was recorded,
        ([10_000] * 20, [8_000] * 9 + [90_000]),  # and after it.
    ],
)
def test_what_recording_costs_is_told_by_steps_that_hold_training_alone(
    recorded: list[int], unrecorded: list[int]
) -> None:
    def told_of(*named: str) -> int | None:
        times = {"recorded": recorded, "unrecorded": unrecorded}
        step_ns: dict[str, object] = {name: sum(each) * US // len(each) for name, each in times.items()}
        step_ns |= {"each": {name: [one * US for one in times[name]] for name in named}}
        return unrecorded_step_ns(replace(job(calls_in_input=True), run=run_of({"step_ns": step_ns})))

    assert told_of("recorded", "unrecorded") == 8_000 * US
    assert told_of() != 8_000 * US


@pytest.mark.parametrize("each", [None, [], {"recorded": "many"}, {"recorded": [5, "x"], "unrecorded": [3]}])
def test_times_of_steps_that_are_none_are_not_used(each: object) -> None:
    run = run_of({"step_ns": {"recorded": 10_000 * US, "unrecorded": 8_000 * US, "each": each}})
    assert unrecorded_step_ns(replace(job(calls_in_input=True), run=run)) == 8_000 * US


def test_the_report_says_which_step_is_meant() -> None:
    facts, diagnosis = told(job(calls_in_input=True), 10_000, 8_000)
    made = document.make(facts, diagnosis, [])
    assert made["summary"]["unrecorded_step_ns"] == 8_000 * US
    assert "8.00 ms when not recorded" in step_time(made["summary"]).rest
    assert "of 8.00 ms per step" in saving(made["findings"][0], made["summary"])


def test_sleeping_is_not_inflated() -> None:
    drawing = TraceDrawing()
    for number in range(STEPS):
        start = number * STEP
        drawing.step(number, start, STEP)
        drawing.annotation(LOADER, start, 5_000)
        drawing.python("<built-in function sleep>", start + 10, 4_900)
        for call in range(CALLS):
            drawing.host("aten::add", start + 5_000 + 45 * call, 40)
    _, diagnosis = told(facts_of(drawing.events()), 10_000, 7_000)
    (finding,) = (one for one in diagnosis.findings if one.rule == "input_bound")
    assert finding.best_step_ns == pytest.approx(2_000 * US, rel=0.1)
    assert finding.predicted_step_ns < 4_500 * US


@pytest.mark.parametrize(
    ("manifest", "cores"),
    [
        ({}, None),
        ({"machine": {"cores": 2, "machine_cores": 2, "ranks_here": None}}, 2),
        ({"machine": {"cores": 64, "machine_cores": 64, "ranks_here": 8}}, 8),
        ({"machine": {"cores": 8, "machine_cores": 64, "ranks_here": 8}}, 8),
        ({"machine": {"cores": 4, "machine_cores": 8, "ranks_here": 8}}, 1),
        ({"machine": {"cores": "many"}}, None),
        ({"machine": None}, None),
    ],
)
def test_ranks_share_cores_unless_each_has_its_own(manifest: dict[str, object], cores: int | None) -> None:
    assert run_of(manifest).cores_of_rank == cores


@pytest.mark.parametrize(("unrecorded_us", "known"), [(4_100, True), (3_900, False)])
def test_a_host_that_ran_ahead_of_its_device_tells_no_unrecorded_step(unrecorded_us: int, *, known: bool) -> None:
    """Its device works for 8 of 10 ms, and cannot do that in less than half."""
    drawing = TraceDrawing()
    for number in range(STEPS):
        drawing.step(number, number * STEP, STEP)
        drawing.kernel(drawing.launch(number * STEP, 5), "gemm", number * STEP + 5, 8_000)
    times = {"recorded": 10_000 * US, "unrecorded": unrecorded_us * US}
    facts = replace(facts_of(drawing.events()), run=run_of({"step_ns": times}))
    assert (unrecorded_step_ns(facts) is not None) == known


@pytest.mark.parametrize(("unrecorded", "said"), [(1_200, True), (1_300, False)])
def test_a_recording_that_says_little_of_the_job_says_so_first(unrecorded: int, *, said: bool) -> None:
    _, diagnosis = told(job(calls_in_input=True), 10_000, unrecorded)
    assert diagnosis.verdict.startswith("Steps took 8 times as long while recorded") == said
