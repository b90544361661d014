"""Nothing of a step's idle time is passed over: from a twentieth of it on, a finding or a notice tells of each kind."""

from __future__ import annotations

import pytest

from stepscope.analysis.categories import BUSY, CATEGORIES, HOST_CAUSES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import UNTOLD_SHARE
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.evidence import booked
from stepscope.diagnosis.finding import Diagnosis
from stepscope.diagnosis.rules import DECLARED
from stepscope.diagnosis.untold import KINDS
from tests.diagnosis.loops import CALL, diagnosed, loop
from tests.kit.builder import TraceDrawing
from tests.kit.planted import CASES
from tests.kit.some import some
from tests.kit.traces import KINETO_TRACES
from tests.support import planted_facts, real_facts

US = 1_000
STEP = 4_000
UNTOLD = "idle_untold"
OTHERWISE = {Category.UNKNOWN_HOST: "profile_host_unrecorded", Category.PROFILER: "profile_overhead"}


def passed_over(facts: Facts, diagnosis: Diagnosis) -> dict[str, float]:
    """Shares of the step, by cause, of which neither a finding nor a notice speaks."""
    codes = {notice.code for notice in diagnosis.notices}
    if codes & {UNTOLD, "profile_sampled", "profile_too_short"} or not facts.activities or not facts.used_ns:
        return {}
    rules = {finding.rule for finding in diagnosis.findings}
    found = {}
    for kind in KINDS:
        share = max(booked(facts, a, *kind.causes) for a in facts.working) * len(facts.used) / facts.used_ns
        if share >= UNTOLD_SHARE and not any(set(kind.causes) & set(DECLARED[rule].tells) for rule in rules):
            found[str(kind.causes)] = share
    return found


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_real_profiles_leave_nothing_untold(name: str):
    facts = real_facts(name)
    diagnosis = diagnose(facts)
    assert passed_over(facts, diagnosis) == {}
    one_paragraph(diagnosis)


def test_every_cause_of_idle_time_has_a_teller():
    told = {cause for kind in KINDS for cause in kind.causes} | set(OTHERWISE)
    idle = set(CATEGORIES) - set(BUSY) - {Category.HOST_COMPUTE}
    assert told == idle
    assert set(HOST_CAUSES) <= told


def waiting_unrecorded(wait_us: int) -> Diagnosis:
    """The device begins a kernel that was queued long before only after a pause that nothing explains."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "a", start + CALL, 1_000)
        call = drawing.launch(start + 20, CALL)
        drawing.kernel(call, "b", start + CALL + 1_000 + wait_us, STEP - 1_000 - wait_us - CALL)

    return diagnosed(loop(STEP, step))


def notice(diagnosis: Diagnosis) -> str | None:
    return next((n.text for n in diagnosis.notices if n.code == UNTOLD), None)


def test_a_device_that_waits_for_what_was_not_recorded_is_a_notice():
    text = notice(waiting_unrecorded(500))
    assert text is not None
    assert "the device has work queued and does not begin it" in text
    assert "495 µs (12.4 %)" in text
    assert notice(waiting_unrecorded(200)) is None


def test_what_a_finding_tells_is_not_told_again():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 1_000)
        drawing.kernel(drawing.launch(start + 1_000, CALL), "k", start + 1_000 + CALL, STEP - 1_000 - CALL)

    found = diagnosed(loop(STEP, step))
    assert [f.rule for f in found.findings] == ["input_bound"]
    assert notice(found) is None


@pytest.mark.parametrize("frames", [True, False])
def test_what_a_host_without_a_device_does_between_ops_is_told(frames: bool):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::mm", start, 1_000)
        drawing.annotation("## backward ##", start, 3_500)
        drawing.host("aten::add", start + 3_000, 100)
        if frames:
            drawing.python("train.py(12): read", start + 3_700, 50)

    text = notice(diagnosed(loop(STEP, step)))
    assert text is not None
    assert "the main thread runs Python code outside any op. Most of its longest stretches lie in " in text
    assert "`## backward ##` 2.00 ms" in text
    assert ("Which functions run there was not recorded. `with_stack=True` records" in text) is not frames


def test_what_no_finding_explains_is_not_placed_where_one_does():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        drawing.python("train.py(12): log", start + 10, STEP // 2)
        for at in range(start + STEP // 2 + 10, start + STEP - 20, 400):
            drawing.host("aten::mm", at, 300)

    found = diagnosed(loop(STEP, step))
    assert [f.rule for f in found.findings] == ["between_steps"]
    text = notice(found)
    assert text is not None
    assert "runs Python code outside any op" in text
    assert "log" not in text


def test_a_host_of_which_nothing_was_recorded_between_ops_has_a_notice_of_its_own():
    found = diagnosed(loop(STEP, lambda drawing, number, start: drawing.host("aten::mm", start, 1_000)))
    assert notice(found) is None
    assert "profile_host_unrecorded" in {each.code for each in found.notices}


def test_a_host_that_computes_all_the_time_is_told_nothing():
    assert notice(diagnosed(loop(STEP, lambda drawing, number, start: drawing.host("aten::mm", start, STEP)))) is None


@pytest.mark.parametrize("case", some(CASES, 7))
def test_notices_on_planted_causes_are_one_paragraph(case: str):
    one_paragraph(diagnose(planted_facts(case)))


def one_paragraph(diagnosis: Diagnosis) -> None:
    for each in diagnosis.notices:
        assert "\n" not in each.text, each
        assert "\\n" not in each.text, each
