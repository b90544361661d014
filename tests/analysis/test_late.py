"""A device that is late each time may be behind the host's clock; one that is not, or not by the same, is not."""

from __future__ import annotations

import json

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from tests.kit.builder import TraceDrawing
from tests.kit.traces import real_trace
from tests.kit.wrong import made_wrong
from tests.support import planted_file, read_trace, trace_of, trace_of_bytes

MS = 1_000


def loop(late_us: int, grows_us: int = 0, soon: bool = False, steps: int = 8) -> Facts:
    """Steps of 10 ms with 5 ms of work, each of which begins so long after its launch; or one that does not."""
    drawing = TraceDrawing()
    for step in range(steps):
        at = 10 * MS * step
        drawing.step(step, at, 10 * MS)
        drawing.kernel(drawing.launch(at, 5), "gemm", at + 10 + late_us + grows_us * step, 4 * MS)
        if soon:
            drawing.kernel(drawing.launch(at + 9 * MS, 5), "update", at + 9 * MS + 10, 500)
    return analyse(trace_of(drawing.events()))


def codes(found: Diagnosis) -> set[str]:
    return {notice.code for notice in found.notices}


@pytest.mark.parametrize(("late", "grows"), [(4 * MS, 0), (2 * MS, 300)])
def test_a_device_that_is_late_each_time_is_told_to_be_late_or_at_other_work_and_costs_are_withheld(late, grows):
    facts = loop(late, grows)
    found = diagnose(facts)
    assert "profile_device_late" in codes(found)
    assert not {"device_busy_unrecorded", "profile_contradicts_itself"} & codes(found)
    assert found.bottleneck == "unknown"
    assert all(one.cost_ns_per_step is None for one in found.findings)
    at = contradictions(facts).late
    assert at is not None
    assert at.first_ns == pytest.approx(late * 1_000, abs=400_000)
    assert at.last_ns == pytest.approx((late + 7 * grows) * 1_000, abs=400_000)


def test_an_op_that_begins_soon_after_its_launch_proves_the_clocks_and_what_was_late_waited_for_other_work():
    found = diagnose(loop(4 * MS, soon=True))
    assert "profile_device_late" not in codes(found)
    assert "device_busy_unrecorded" in codes(found)


def test_delays_that_differ_are_no_clocks():
    drawing = TraceDrawing()
    for step, late in enumerate((1_500, 4_000, 2_500, 5_000, 1_200, 3_600, 5_500, 2_000)):
        at = 10 * MS * step
        drawing.step(step, at, 10 * MS)
        drawing.kernel(drawing.launch(at, 5), "gemm", at + late, 4 * MS)
    assert contradictions(analyse(trace_of(drawing.events()))).late is None


@pytest.mark.parametrize("late", [0, 60])
def test_a_device_that_begins_as_soon_as_launches_arrive_is_not_late(late: int):
    assert not contradictions(loop(late)).withholds


@pytest.mark.parametrize("case", ["healthy", "sync_bound", "allocator_retries"])
def test_markers_that_cut_ops_are_of_another_clock(case: str):
    good = planted_file(case)
    assert not contradictions(analyse(trace_of_bytes(good))).markers
    found = diagnose(analyse(trace_of_bytes(made_wrong(good, "markers_shifted"))))
    notice = next((one.text for one in found.notices if one.code == "profile_contradicts_itself"), "")
    assert "of another clock than those of what they mark" in notice or case == "healthy"


@pytest.mark.real
@pytest.mark.slow
def test_markers_beside_the_profilers_own_code_are_of_another_clock():
    path = real_trace("kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz")
    assert not contradictions(analyse(read_trace(path))).marked
    shifted = made_wrong(path.read_bytes(), "markers_shifted")
    assert contradictions(analyse(trace_of_bytes(shifted))).marked == 1.0


def test_a_marker_that_ends_in_a_range_of_the_program_is_none_of_another_clock():
    """Lightning ends PyTorch's step while its own ranges are open."""
    good = json.loads(planted_file("healthy"))
    marks = [event for event in good["traceEvents"] if str(event.get("name", "")).startswith("ProfilerStep#")]
    good["traceEvents"] += [
        {**mark, "name": "[pl][profile]optimizer_step", "ts": mark["ts"] + mark["dur"] - 20, "dur": 40}
        for mark in marks
    ]
    assert not contradictions(analyse(trace_of_bytes(json.dumps(good).encode()))).marked
