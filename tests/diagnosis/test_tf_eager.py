"""TensorFlow's ops that run one by one, in profiles without a device."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, line, space

MS = 10**9
"""Picoseconds."""


def told(ops: int, *, name: str = "EagerLocalExecute: MatMul") -> list[Finding]:
    """Six steps of 100 ms; an op takes 2 ms to start, and the next follows 1 ms later."""
    events = []
    for step in range(6):
        at = 100 * step
        events.append(Ev("train", at * MS, 99 * MS, {"_r": 1, "step_num": step}))
        for number in range(ops):
            begun = (at + 3 * number) * MS
            events += [
                Ev("TFE_Py_FastPathExecute_C", begun, 2 * MS),
                Ev("EagerExecute", begun + MS // 4, 3 * MS // 2),
                Ev(name, begun + MS // 2, MS),
            ]
    facts = analyse(read(space(Plane("/host:CPU", (line("python", *events, id=1),)))))
    return [finding for finding in diagnose(facts).findings if finding.rule == "running_eagerly"]


def test_ops_of_a_host_that_run_one_by_one_are_told_with_what_starts_them_and_what_lies_between() -> None:
    (finding,) = told(20)
    assert finding.device is None
    assert "20 ops per step" in finding.why
    assert finding.saving_ns_per_step == pytest.approx(40_000_000, rel=0.05)
    assert finding.cost_ns_per_step == pytest.approx(62_000_000, rel=0.05)
    assert finding.best_step_ns is not None
    assert finding.predicted_step_ns is not None
    assert finding.predicted_step_ns - finding.best_step_ns == pytest.approx(42_000_000, rel=0.05)
    assert "tf.function" in finding.fix


def test_a_few_ops_beside_compiled_code_are_no_finding() -> None:
    assert not told(5)
    assert not told(20, name="EagerLocalExecute: __inference_train_step_7")
