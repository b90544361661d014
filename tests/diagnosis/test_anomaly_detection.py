"""PyTorch's anomaly detection, left on."""

from __future__ import annotations

import pytest

from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import diagnosed
from tests.kit.builder import TraceDrawing

STEP = 10_000
NODE = "autograd::engine::evaluate_function: AddmmBackward0"


def told(*, node: str = NODE, caller: str = "") -> list[Finding]:
    """Six steps of 10 ms: an op of 1 ms in which a stack is formatted in 0.4 ms, by a function of that name where there
    is one, and a node of 2 ms that searches in 0.6 ms."""
    d = TraceDrawing()
    for number in range(6):
        at = number * STEP
        d.step(number, at, STEP)
        d.host("aten::addmm", at + 100, 1_000)
        if caller:
            d.python(caller, at + 190, 450)
        d.python("torch/fx/traceback.py(497): format_stack", at + 200, 400)
        d.host(node, at + 2_000, 2_000)
        d.host("aten::mm", at + 2_100, 1_000)
        d.host("aten::isnan", at + 3_200, 400)
        d.host("aten::ne", at + 3_250, 300)
        d.host("aten::_is_any_true", at + 3_610, 100)
        d.host("aten::item", at + 3_720, 100)
        d.host("aten::mm", at + 4_500, 4_500)
    return [finding for finding in diagnosed(d.events()).findings if finding.rule == "anomaly_detection"]


def test_searches_for_nan_in_the_backward_pass_are_told_with_the_stacks_that_ops_format() -> None:
    (finding,) = told()
    assert finding.cost_ns_per_step == pytest.approx(1_000_000, rel=0.01)
    assert finding.saving_ns_per_step == pytest.approx(1_000_000, rel=0.01)
    assert "per step for both." in finding.why
    assert "set_detect_anomaly" in finding.fix


def test_a_program_that_asks_for_nan_itself_is_not_in_that_mode() -> None:
    assert not told(node="aten::clip_grad")


def test_a_stack_that_the_program_formats_is_no_part_of_it() -> None:
    (finding,) = told(caller="train.py(3): watch")
    assert finding.cost_ns_per_step == pytest.approx(600_000, rel=0.01)
    assert "not recorded" in finding.why
