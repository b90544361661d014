"""TensorFlow's GPU guide, A13-A26: input, gaps between steps, and what the host does besides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.manifest import SCHEMA
from stepscope.capture.results import Recording
from stepscope.cli.experiments import outcome
from tests.diagnosis.loops import CALL, loop
from tests.guides.shown import shown
from tests.guides.tf_steps import GEMM, MATMUL, drained, marked, per_step
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.kineto_writer import write_kineto
from tests.kit.several import SEVERAL
from tests.kit.tf_gpu import TfGpuJob
from tests.support import planted_file

US, MS = 1_000, 1_000_000
WAIT = 12_000
"""Microseconds for which each step waits for its batch."""


def on_python(job: TfGpuJob) -> None:
    """A loop of one's own takes the batch before it calls the function."""
    job.host("EagerLocalExecute: IteratorGetNext", WAIT)
    with job.function():
        compute(job)


def on_the_executor(job: TfGpuJob) -> None:
    with job.function():
        with job.executing():
            job.op("IteratorGetNext:IteratorGetNext", None, WAIT)
        compute(job)


def on_its_own_thread(job: TfGpuJob) -> None:
    """Where Keras 3 waits."""
    with job.function():
        job.get_next(WAIT)
        compute(job)


def compute(job: TfGpuJob) -> None:
    """What the batch is for, until it is done."""
    with job.executing():
        job.op(MATMUL, GEMM, 1_700)
    drained(job)


@pytest.mark.parametrize("waits", [on_python, on_the_executor, on_its_own_thread])
def test_a13_a_gpu_that_waits_for_input_is_told_on_whichever_thread_it_waits(waits: Callable[[TfGpuJob], None]) -> None:
    job = marked(waits)
    assert job.parts()["input"] == pytest.approx(WAIT * US, rel=0.01)
    finding = job.report["findings"][0]
    assert (finding["rule"], finding["title"]) == ("input_bound", "The device waits for input data")
    assert finding["saving_ns_per_step"] == pytest.approx(WAIT * US, rel=0.05)


def run(step_ms: int, profile: Path | None = None, experiment: str | None = None, started: int = 1) -> Recording:
    """What ``stepscope run`` left of a command."""
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "command": ["train.py"],
        "started_ns": started,
        "options": {"experiment": experiment},
        "step_ns": {"unrecorded": step_ms * MS},
    }
    if experiment:
        facts["experiment"] = {"name": experiment, "applied": 1, "refused": None}
    return Recording(Path("manifest"), facts, (profile,) if profile else ())


def test_a16_a_run_on_synthetic_batches_says_how_much_of_the_input_is_real() -> None:
    plain = run(10, shown(planted_file("input_bound")).path)
    changed = run(7, experiment="synthetic-input", started=2)
    first, second, _ = outcome(changed, [plain, changed])
    assert first == "experiment synthetic-input: a step took 7.00 ms instead of 10.0 ms, 3.00 ms less"
    assert second == "Of 4.77 ms per step that the diagnosis counts as input, 3.00 ms is real."


def test_a17_copies_of_the_batch_remain_with_synthetic_batches() -> None:
    planted = SEVERAL["input_and_copy"]()
    profile = shown(write_kineto(planted.events))
    changed = run(5, experiment="synthetic-input", started=2)
    assert outcome(changed, [run(10, profile.path), changed])[-1] == (
        "Where batches are copied to a device, those copies remain in both runs."
    )
    assert profile.finding("exposed_copy")["saving_ns_per_step"] == pytest.approx(
        planted.truth.mean_step_ns() - planted.without_ns["exposed_copy"], rel=0.1
    )


def test_a19_the_gap_between_steps_has_a_number_and_a_cause() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("callbacks.py(31): log_metrics", start, 3_000)
        drawing.kernel(drawing.launch(start + 3_000, CALL), "k", start + 3_005, 6_995)

    job = shown(write_kineto(loop(10_000, step)))
    assert job.summary["idle_between_steps_ns"] == 3_005 * US
    assert job.summary["idle_within_steps_ns"] == 0
    gap = next(gap for gap in job.analyses["idle"]["gaps"] if gap["crosses_step"])
    assert gap["dur_ns"] == 3_005 * US
    assert gap["parts"]["python"] == pytest.approx(3_000 * US, rel=0.01)
    assert "callbacks.py:31" in job.flat


def step_of_everything(drawing: TraceDrawing, number: int, start: int) -> None:
    """A millisecond, or two, of every part that the guide's overview tells apart."""

    def work(at: int, us: int, name: str = "k") -> int:
        drawing.kernel(drawing.launch(at, CALL), name, at + CALL, us - CALL)
        return at + us

    at = start
    drawing.annotation("_compile.compile_inner (dynamo_timed)", at, 2_000)  # compilation
    at = work(at + 2_000, 1_000)
    drawing.input_wait(at, 2_000)  # input
    at = work(at + 2_000, 1_000)
    drawing.host("aten::sort", at, 2_000)  # the host computes
    at = work(at + 2_000, 1_000)
    for direction in ("HtoD", "DtoH", "DtoD"):  # input and output of the device, copies within it
        call = drawing.call("cudaMemcpyAsync", at, CALL)
        drawing.copy(call, direction, at + CALL, 1_000 - CALL)  # type: ignore[arg-type]
        at += 1_000
    drawing.collective(drawing.launch(at, CALL), at + CALL, 1_000 - CALL, Stream())
    at += 1_000
    drawing.python("metrics.py(8): update", at, 2_000)  # Python
    work(at + 2_000, 1_000)


def test_a20_the_breakdown_tells_the_guide_s_categories_apart() -> None:
    job = shown(write_kineto(loop(18_000 - 1_000, step_of_everything)))
    parts = {name: ns / MS for name, ns in job.parts().items()}
    for name, ms in {
        "compute": 4, "compile": 2, "input": 2, "python": 2, "copy_h2d": 1, "copy_d2h": 1, "copy_d2d": 1,
        "collective": 1,
    }.items():  # fmt: skip
        assert parts[name] == pytest.approx(ms, abs=0.03), name
    assert parts["launch"] == pytest.approx(2 + 0.04, abs=0.04)  # the op of the host, and launching
    assert job.told("ops_on_host")["cost_ns_per_step"] == pytest.approx(2 * MS, rel=0.02)
    assert sum(job.parts().values()) == per_step(job)


def test_a24_a_run_without_callbacks_says_what_they_cost() -> None:
    plain, changed = run(24), run(4, experiment="no-callbacks", started=2)
    assert outcome(changed, [plain, changed]) == [
        "experiment no-callbacks: a step took 4.00 ms instead of 24.0 ms, 20.0 ms less"
    ]


def with_a_callback() -> Any:
    """TensorFlow: 5 ms of Python after each step, in a frame of the user's."""

    def step(job: TfGpuJob) -> None:
        with job.function():
            compute(job)
        with job.range("$metrics.py:31 log"):
            job.spend(5_000)

    return marked(step).finding("between_steps")


def test_a25_several_steps_per_execution_are_advised_against_callbacks() -> None:
    finding = with_a_callback()
    assert finding["cost_ns_per_step"] == pytest.approx(5 * MS, rel=0.02)
    assert "model.compile(..., steps_per_execution=10)" in finding["fix"]


def test_a26_a_while_loop_of_steps_is_advised_for_loops_of_one_s_own() -> None:
    assert "In a loop of your own a `tf.while_loop`" in with_a_callback()["fix"]
