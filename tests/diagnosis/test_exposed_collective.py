"""exposed_collective: communication that nothing hides, what hiding it gains, and when it is too finely cut."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import CALL, diagnosed, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.planted import CASES
from tests.support import trace_of

US = 1_000
STEP = 10_000


def communicating(compute_us: int, count: int, each_us: int) -> list[Event]:
    """Each step computes, then reduces its gradients on another stream."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        compute = drawing.launch(start, CALL)
        calls = [drawing.launch(start + 10 * (i + 1), CALL) for i in range(count)]
        drawing.kernel(compute, "k", start + CALL, compute_us)
        for i, call in enumerate(calls):
            at = start + CALL + compute_us + i * each_us
            drawing.kernel(call, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at, each_us, Stream(0, 20))

    return loop(compute_us + count * each_us + CALL, step)


def only(events: list[Event]) -> Finding:
    (finding,) = (f for f in diagnosed(events).findings if f.rule == "exposed_collective")
    return finding


def test_hidden_behind_compute_it_costs_nothing():
    finding = only(communicating(8_000, 2, 1_000))
    assert finding.cost_ns_per_step == 2_000 * US
    assert finding.saving_ns_per_step == pytest.approx(2_000 * US, abs=20 * US)
    assert (finding.prediction_basis, finding.confidence) == ("replay", "medium")
    assert "Waiting for a rank that is late" in finding.why


def test_a_step_takes_no_less_than_its_collectives():
    finding = only(communicating(2_000, 2, 4_000))
    assert finding.cost_ns_per_step == 8_000 * US
    assert finding.predicted_step_ns == pytest.approx(8_000 * US, abs=20 * US)


@pytest.mark.parametrize(("count", "each_us", "too_many"), [(60, 100, True), (60, 300, False), (10, 100, False)])
def test_many_small_ones_are_to_be_merged(count: int, each_us: int, too_many: bool):
    finding = only(communicating(2_000, count, each_us))
    assert ("instead of tensor by tensor" in finding.fix or "Join small" in finding.fix) is too_many


def test_what_is_hidden_is_no_finding():
    planted = CASES["hidden_collective"]()
    found = diagnose(analyse(trace_of(planted.events)))
    assert not [f for f in found.findings if f.rule == "exposed_collective"]


def test_the_planted_collective_is_found_and_predicted():
    planted = CASES["exposed_collective"]()
    found = diagnose(analyse(trace_of(planted.events)))
    assert found.findings[0].rule == "exposed_collective"
    assert found.findings[0].predicted_step_ns == pytest.approx(planted.without_ns["all"], rel=0.02)


def test_a_program_that_serves_is_not_told_of_gradients():
    drawing = TraceDrawing()
    drawing.python("nn.Module: Decoder_0", 0, 6 * STEP)
    events = communicating(8_000, 2, 1_000)
    assert "DistributedDataParallel" in only(events).fix
    assert "radient" not in only([*drawing.events(), *events]).fix
