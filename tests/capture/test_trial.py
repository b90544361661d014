"""What ``stepscope try`` notes in a job."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.capture import trial as module
from stepscope.capture.options import Options
from stepscope.capture.phases import RecordingPhase
from stepscope.capture.trial import Trial

LEFT_NS = 5_000_000


class RunsBehind:
    """What stands for JAX: a call gives something at once that is computed when it is waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.now = 0, 0
        self.jit = type("Announced", (), {"__call__": lambda function: self.called()})
        monkeypatch.setattr(module, "perf_counter_ns", lambda: self.now)
        monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(block_until_ready=self.block_until_ready))  # type: ignore[arg-type]
        monkeypatch.delitem(sys.modules, "torch", raising=False)

    def called(self) -> object:
        self.left += 1
        return object()

    def block_until_ready(self, result: Any) -> None:
        self.now, self.left = self.now + self.left * LEFT_NS, 0


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> RunsBehind:
    return RunsBehind(monkeypatch)


def noted(job: RunsBehind) -> tuple[Trial, SimpleNamespace]:
    recorder = SimpleNamespace(on_edge=[], on_done=[], phase=RecordingPhase.SETTLING)
    trial = Trial(Options(trial=True))
    trial.into(recorder, "numpy", None)
    trial._into_compiled(recorder, job.jit)
    return trial, recorder


def test_the_last_timed_step_lasts_until_all_that_was_asked_for_is_computed(job: RunsBehind) -> None:
    trial, _ = noted(job)
    for _ in range(3):
        job.jit()()  # type: ignore[operator]
    assert trial.facts([10, 20])["times_ns"] == [10, 20 + 3 * LEFT_NS]
    assert trial.facts([])["times_ns"] == []


def test_timed_steps_begin_with_nothing_left_to_compute_and_run_as_they_would(job: RunsBehind) -> None:
    _, recorder = noted(job)
    job.jit()()  # type: ignore[operator]
    for tell in recorder.on_edge:
        tell(5)
    assert job.left == 0
    recorder.phase = RecordingPhase.AFTER
    for step in range(2):
        job.jit()()  # type: ignore[operator]
        for tell in recorder.on_edge:
            tell(6 + step)
    assert job.left == 2
