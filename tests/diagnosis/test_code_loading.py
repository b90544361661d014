"""What is said of work that is done once: code that is loaded, start-up, graphs that are captured."""

from __future__ import annotations

import json
import re

import pytest

from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.report import markdown
from stepscope.report.document import InputFile, make
from stepscope.report.terminal import render
from stepscope.web.words import words
from tests.analysis.test_once import LONG, SET_UP, capturing, launching
from tests.diagnosis.loops import facts_with, rules
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.report.documents import check

US = 1_000
NVIDIA = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]
AMD = [{"id": 0, "name": "AMD Instinct MI300X"}]
BIG = 20_000
"""Enough kernel time for the device not to have too little to do."""


def told(events: list[Event], devices: object = NVIDIA) -> Diagnosis:
    return diagnose(facts_with(events, deviceProperties=devices))


def one_step(call: float = 170_000) -> list[Event]:
    """Six kernels, each launched for the first time, of which little runs; then one that takes long."""
    drawing, at = TraceDrawing(), 0.0
    for name in "abcdef":
        at = launching(drawing, at, name, call)
    for _ in range(20):
        at = launching(drawing, at, "a")
    drawing.kernel(drawing.launch(at), "f", at + 5, 300)
    drawing.step(0, 0, at + 310)
    return drawing.events()


def loading(diagnosis: Diagnosis) -> Finding:
    (finding,) = [found for found in diagnosis.findings if found.rule == "code_loading"]
    return finding


def test_first_launches_are_told_once_with_their_sum_and_are_no_lack_of_work():
    found = told(one_step())
    assert "too_little_work" not in rules(found)
    assert "launch_bound" not in rules(found)
    finding = loading(found)
    assert finding.cost_ns_per_step == 6 * 170_000 * US
    assert finding.saving_ns_per_step == pytest.approx(6 * 170_000 * US, rel=0.01)
    assert finding.predicted_step_ns is not None
    assert finding.predicted_step_ns < 2_000 * US
    assert finding.why.startswith("6 calls take 1.02 s, the longest 170 ms: `cudaLaunchKernel` of `a`.")
    assert "steps after warm-up do not have it" in finding.why
    assert "seen once" in finding.title
    assert "while code and libraries are loaded, which happens once" in found.verdict
    assert found.bottleneck == "compile"


def test_what_steps_load_each_anew_does_not_happen_once():
    drawing, at = TraceDrawing(), 0.0
    for number, names in enumerate(("abc", "def", "ghi")):
        start = at
        for name in names:
            at = launching(drawing, at, name, 170_000)
        for _ in range(20):
            at = launching(drawing, at, names[0])
        drawing.kernel(drawing.launch(at), names[0], at + 5, 300)
        at += 310
        drawing.step(number, start, at - start)
    found = told(drawing.events())
    finding = loading(found)
    assert "while code and libraries are loaded; it computes" in found.verdict
    assert "seen once" not in finding.title
    assert "happens once" not in finding.why
    assert "steps have it" in finding.why


@pytest.mark.parametrize(("devices", "said"), [(NVIDIA, True), (AMD, False)])
def test_the_variable_is_cudas_alone(devices: object, said: bool):
    fix = loading(told(one_step(), devices)).fix
    assert ("CUDA_MODULE_LOADING=EAGER" in fix) is said
    assert "Let some steps pass" in fix


def test_a_step_that_loads_code_beside_usual_ones_is_a_notice_and_costs_none():
    drawing, at = TraceDrawing(), 0.0
    for number in range(3):
        begin = at
        if number == 0:
            at = launching(drawing, at, "new", call=100_000)
        drawing.kernel(drawing.launch(at), "a", at + 5, BIG)
        at += BIG + 5
        drawing.step(number, begin, at - begin)
    found = told(drawing.events())
    assert (found.findings, found.minor) == ((), ())
    texts = {notice.code: notice.text for notice in found.notices}
    assert texts["profile_done_once"] == (
        "Done once, in step 0: `cudaLaunchKernel` of `new` takes 100 ms. Figures are of the other steps, which do not "
        "have it. Let the profiler wait a few steps longer."
    )
    assert "profile_warm_up" not in texts, "it says the same"


def loading_first(calls: int, length: float, *, marked: bool) -> dict[str, str]:
    """Notices on steps of twelve kernels in turn, before the first of which code is loaded."""
    drawing, at = TraceDrawing(), 0.0
    for number in range(6):
        begin = at
        for name in "abcdefghijkl":
            if number == 0 and ord(name) - ord("a") < calls:
                drawing.call("cuModuleLoadData", at, length)
                at += length
            drawing.kernel(drawing.launch(at), name, at + 5, 1_000)
            at += 1_005
        if marked:
            drawing.step(number, begin, at - begin)
    return {notice.code: notice.text for notice in told(drawing.events()).notices}


def test_code_loaded_before_and_in_inferred_steps_is_named():
    texts = loading_first(6, 170_000, marked=False)
    assert "profile_steps_inferred" in texts
    assert texts["profile_done_once"].startswith(
        "Done once, outside the steps that figures are of: 6 calls take 1.02 s, the longest 170 ms: `cuModuleLoadData`."
    )
    assert "profile_warm_up" not in texts


def test_code_loaded_in_a_first_step_that_figures_leave_out_is_named():
    texts = loading_first(6, 170_000, marked=True)
    assert texts["profile_done_once"].startswith("Done once, in step 0: 6 calls take 1.02 s")


@pytest.mark.parametrize("marked", [True, False])
def test_little_code_loaded_outside_the_steps_used_is_no_notice(marked: bool):
    assert "profile_done_once" not in loading_first(1, 100, marked=marked)


def test_start_up_is_left_out_of_the_step_and_said():
    drawing = TraceDrawing()
    drawing.call("cudaGetDeviceCount", 0, 1_000_000)
    drawing.kernel(drawing.launch(1_000_100), "a", 1_000_110, BIG)
    facts = facts_with(drawing.events(), deviceProperties=NVIDIA)
    found = diagnose(facts)
    assert facts.mean_step_ns == (BIG + 110) * US
    assert rules(found) == []
    texts = {notice.code: notice.text for notice in found.notices}
    assert texts["profile_start_up"] == (
        "`cudaGetDeviceCount` alone takes 1.00 s: start-up is inside this profile, and left out of the step. Begin "
        "recording after a few steps."
    )


def test_set_up_in_the_middle_of_a_step_is_what_the_device_waits_for():
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=10)
    drawing.call("cudaStreamCreateWithFlags", at, SET_UP)
    drawing.kernel(drawing.launch(at + SET_UP), "a", at + SET_UP + 5, 1_000)
    finding = loading(told(drawing.events()))
    assert finding.why.startswith("`cudaStreamCreateWithFlags` takes 20.0 ms.")


def test_code_that_is_loaded_in_each_step_is_compiled_anew():
    drawing, at = TraceDrawing(), 0.0
    for number in range(6):
        begin = at
        drawing.call("cuModuleLoadData", at, 3_000)
        at = launching(drawing, at + 3_000, "a")
        drawing.kernel(drawing.launch(at), "a", at + 5, BIG)
        at += BIG + 5
        drawing.step(number, begin, at - begin)
    assert rules(told(drawing.events())) == ["recompilation"]


# --- capture -----------------------------------------------------------------------------------------------


def test_a_recording_of_capture_says_so_and_advises_nothing():
    drawing, at = TraceDrawing(), 0.0
    for _ in range(25):
        at = launching(drawing, at, "attention", count=2)
        at = capturing(drawing, at, 40)
    launching(drawing, at, "attention")
    found = told(drawing.events())
    assert (found.findings, found.minor) == ((), ())
    assert found.verdict.startswith("This is a recording of graph capture: 25 graphs are captured, which takes ")
    assert found.bottleneck == "capture"
    codes = {notice.code: notice for notice in found.notices}
    assert codes["profile_graph_capture"].count == 25
    assert set(codes) == {"profile_graph_capture"}, "what speaks of steps, or of time untold, is off"


@pytest.mark.parametrize("marked", [False, True])
def test_a_report_of_capture_claims_no_step_time(marked: bool):
    drawing, at = TraceDrawing(), 0.0
    for number in range(4):
        begin = at
        at = launching(drawing, at, "attention", count=2)
        at = capturing(drawing, at, 40)
        if marked:
            drawing.step(number, begin, at - begin)
    launching(drawing, at, "attention")
    facts = facts_with(drawing.events(), deviceProperties=NVIDIA)
    assert facts.is_capture
    file = InputFile("capture.json", 1, 1)
    made = check(json.loads(json.dumps(make(facts, diagnose(facts), [file]))))
    assert set(made["summary"]["step_time_ns"].values()) == {None}
    assert sum(made["summary"]["parts_ns_per_step"].values()) > 0
    shown = words(made)
    assert shown["untimed"]
    assert shown["step_time"][1] == {"untold": "not timed"}
    assert shown["categories"]["compile"]["words"] == "capturing graphs, loading code"
    for text in (render(made), render(made, verbose=True), markdown.render(made, verbose=True)):
        assert "capturing graphs, loading code" in text
        assert "no step timed" in text
        assert not re.search(r"per step|a single step|of the step|each step|as one step", text)


def test_a_step_that_captures_beside_usual_ones_is_set_apart():
    drawing, at = TraceDrawing(), 0.0
    for number in range(5):
        begin = at
        if number == 1:
            at = capturing(drawing, at, 200)
        at = launching(drawing, at, "a", count=40)
        drawing.kernel(drawing.launch(at), "a", at + 5, 2_000)
        at += 2_005
        drawing.step(number, begin, at - begin)
    found = told(drawing.events())
    assert not {"slow_steps", "recompilation", "code_loading"} & set(rules(found))
    texts = {notice.code: notice.text for notice in found.notices}
    assert texts["profile_done_once"].startswith("Done once, in step 1: 1 graph is captured, which takes ")


def test_capture_inside_the_only_step_is_what_the_device_waits_for():
    drawing = TraceDrawing()
    at = launching(drawing, 0, "a", count=400)
    at = capturing(drawing, at, 100)
    drawing.kernel(drawing.launch(at), "a", at + 5, 2_000)
    drawing.step(0, 0, at + 2_005)
    finding = loading(told(drawing.events()))
    assert finding.title == "Graphs are captured while steps run (seen once)"
    assert "reduce-overhead" in finding.fix
    assert "torch.compile" not in finding.fix
    assert finding.cost_ns_per_step == (10 + 2_000 + 5 + 50) * US


def test_a_usual_profile_has_nothing_of_it():
    drawing, at = TraceDrawing(), 0.0
    for number in range(6):
        begin = at
        for name in "abc":
            drawing.kernel(drawing.launch(at), name, at + 5, 5_000)
            at += 5_005
        drawing.step(number, begin, at - begin)
    found = told(drawing.events())
    assert (found.findings, found.minor) == ((), ())
    assert not {"profile_done_once", "profile_start_up"} & {notice.code for notice in found.notices}


def test_long_first_launches_are_told_from_the_limit_on():
    assert "code_loading" in rules(told(one_step(LONG)))
    assert "code_loading" not in rules(told(one_step(100)))
