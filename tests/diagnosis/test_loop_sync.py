"""Waits of the loop around the steps, and of the profiler, are no part of the program's own."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from tests.kit.events import US, Stream
from tests.kit.machine import Machine, Work
from tests.support import trace_of

COPY = Work("copy", 2 * US, "gpu_memcpy", "copy_d2h", Stream(), {"direction": "DtoH", "memory": "Pinned", "bytes": 4})
HOST_US = 1_500
"""Host work between two steps: what a step loses where the host cannot run ahead."""


def loop(
    *, item: bool = False, bare: str | None = None, frame: str | tuple[str, ...] | None = None, where: str = "end"
) -> Diagnosis:
    """Steps of thirty kernels; ``.item()`` after the tenth, a bare wait at an end of the step or in its middle."""
    machine = Machine()
    for step in range(6):
        machine.step = step
        with machine.range("user_annotation", f"ProfilerStep#{step}"):
            machine.spend(HOST_US * US)
            if where == "begin":
                wait(machine, bare, frame)
            for index in range(30):
                with machine.range("cpu_op", "aten::mm"):
                    machine.spend(5 * US)
                    machine.launch(Work(f"gemm_{index % 4}", 200 * US))
                if item and index == 9:
                    read(machine)
                if where == "middle" and index == 20:
                    wait(machine, bare, frame)
            if where == "end":
                wait(machine, bare, frame)
    return diagnose(analyse(trace_of(machine.events())))


def read(machine: Machine) -> None:
    with machine.range("cpu_op", "aten::item"), machine.range("cpu_op", "aten::_local_scalar_dense"):
        machine.launch(COPY, call="cudaMemcpyAsync")
        machine.synchronize(stream=COPY.stream)


def wait(machine: Machine, call: str | None, frame: str | tuple[str, ...] | None) -> None:
    if call is None:
        return
    if frame is None:
        machine.synchronize(call)
        return
    with ExitStack() as frames:
        for name in ("train.py(3): main", *((frame,) if isinstance(frame, str) else frame)):
            frames.enter_context(machine.range("python_function", name))
        machine.synchronize(call)


def found(diagnosis: Diagnosis, rule: str) -> Finding | None:
    return next((f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == rule), None)


@pytest.mark.parametrize("call", ["cudaDeviceSynchronize", "hipDeviceSynchronize", "cudaStreamSynchronize"])
@pytest.mark.parametrize("where", ["begin", "end"])
def test_a_wait_of_the_loop_is_told_apart_and_its_saving_is_its_own(call: str, where: str):
    diagnosis = loop(bare=call, where=where)
    finding = found(diagnosis, "loop_sync")
    assert finding is not None
    assert found(diagnosis, "sync_bound") is None
    # Without it the host's work between steps runs beside the device's.
    assert finding.predicted_step_ns == pytest.approx(30 * 201 * US, rel=0.02)
    assert "time" in finding.why


def test_what_a_read_value_costs_does_not_hold_what_the_loops_wait_costs():
    alone, both = found(loop(item=True), "sync_bound"), loop(item=True, bare="hipDeviceSynchronize")
    program, timer = found(both, "sync_bound"), found(both, "loop_sync")
    assert alone is not None
    assert timer is not None
    assert timer.saving_ns_per_step > 1_000 * US
    if program is not None:
        # The read value waits in the middle of the kernels: it costs little beside the loop's own wait.
        assert program.saving_ns_per_step < 100 * US
        assert all("Synchronize" not in part.title or "item" in part.title for part in program.fix_set)


def test_a_bare_wait_in_the_middle_of_a_step_is_the_programs():
    diagnosis = loop(bare="cudaDeviceSynchronize", where="middle")
    assert found(diagnosis, "loop_sync") is None


TIMERS = (
    "triton/testing.py(150): do_bench",
    "torch/utils/benchmark/utils/timer.py(17): timer",
    "/env/lib/python3.11/site-packages/lightning/pytorch/profilers/pytorch.py(500): stop",
    "lightning/pytorch/callbacks/throughput_monitor.py(180): _update",
    "deepspeed/utils/timer.py(230): stop",
    "megatron/core/timers.py(130): start",
    "sglang/bench_one_batch.py(450): latency_test_run_once",
    "benchmarks/kernels/benchmark_moe.py(90): benchmark_config",
)


@pytest.mark.parametrize("where", ["middle", "end"])
@pytest.mark.parametrize("frame", TIMERS)
def test_a_timers_wait_is_the_measurements_wherever_it_stands(frame: str, where: str):
    diagnosis = loop(bare="cudaDeviceSynchronize", frame=frame, where=where)
    assert found(diagnosis, "sync_bound") is None
    assert found(diagnosis, "loop_sync") is None
    told = [notice.text for notice in diagnosis.notices if notice.code == "wait_measures"]
    assert bool(told) == (where == "end")  # in the middle it costs next to nothing
    assert all(f"`{frame.split(': ')[1]}`" in text for text in told)
    assert not any(notice.code == "idle_untold" for notice in diagnosis.notices)


def test_the_frames_of_the_wait_itself_ask_for_nothing():
    diagnosis = loop(bare="cudaDeviceSynchronize", frame=(TIMERS[0], "torch/cuda/__init__.py(900): synchronize"))
    assert any(notice.code == "wait_measures" for notice in diagnosis.notices)


@pytest.mark.parametrize("frame", [(TIMERS[0], "model.py(9): forward"), "bench.py(20): main", "timers.py(3): stop"])
def test_what_a_benchmark_runs_waits_for_itself(frame: str | tuple[str, ...]):
    """A program's own waits inside of a benchmark stay the program's, and so do those of a script of its own."""
    diagnosis = loop(bare="cudaDeviceSynchronize", frame=frame)
    assert found(diagnosis, "loop_sync") is not None
    assert not any(notice.code == "wait_measures" for notice in diagnosis.notices)


@pytest.mark.parametrize(
    "frame", ["torch/autograd/profiler.py(367): __exit__", "torch/profiler/profiler.py(820): step"]
)
def test_the_profilers_own_wait_is_nobodys_to_fix(frame: str):
    diagnosis = loop(bare="hipDeviceSynchronize", frame=frame)
    assert found(diagnosis, "sync_bound") is None
    assert found(diagnosis, "loop_sync") is None
