"""What findings say of TensorFlow's graphs and loops: each op has its own name, frames stand around a batch."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.diagnosis.test_tensorflow_rules import GEMM, STEPS
from tests.formats.xplane.xplane_files import read
from tests.kit.tf_gpu import TfGpuJob

US = 1_000
WAIT, COPIES, COPY = 9_000, 30, 80


def told(job: TfGpuJob, rule: str) -> Finding:
    diagnosis = diagnose(analyse(read(job.data())))
    (finding,) = (one for one in (*diagnosis.findings, *diagnosis.minor) if one.rule == rule)
    return finding


@pytest.mark.parametrize("frames", [("$iterator_ops.py:826 __next__", "$iterator_ops.py:773 _next_internal"), ()])
def test_a_loop_of_one_s_own_is_told_of_its_pipeline_though_frames_stand_around_it(frames: tuple[str, ...]) -> None:
    """``for batch in dataset``, with the Python code that a capture from the server records."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with ExitStack() as around:
                for frame in frames:
                    around.enter_context(job.range(frame))
                job.host("EagerLocalExecute: IteratorGetNext", WAIT)
            with job.function(), job.executing():
                job.op("m/d/MatMul:MatMul", GEMM, 1_700)
            job.wait_for_event()
    finding = told(job, "input_bound")
    assert finding.cost_ns_per_step == pytest.approx(WAIT * US, rel=0.01)
    assert "It waits for the tf.data pipeline" in finding.why
    assert "num_parallel_calls=AUTO" in finding.fix


def copying(count: int, *, grows: int = 0) -> TfGpuJob:
    """Each of so many ops of a graph copies a tensor to the host in each step, 80 us each."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                job.op("m/d/MatMul:MatMul", GEMM, 5_000)
                for k in range(count):
                    name = f"model/map/PyFunc_{k}/_{2 * k + 1}:_HostRecv"
                    with job.range(name):
                        job.copy("MemcpyD2H", COPY, 4_096 + grows * k, op=name)
            job.wait_for_event()
    return job


def test_copies_of_many_ops_of_a_graph_are_many() -> None:
    finding = told(copying(COPIES), "exposed_copy")
    assert finding.cost_ns_per_step == COPIES * COPY * US
    assert f"{COPIES} of 4.00 KiB each come from {COPIES} ops of the graph." in finding.why
    assert "Read all values of a step with one copy" in finding.fix


@pytest.mark.parametrize("memory", ["pageable", "pinned"])
def test_batches_that_are_sent_are_to_be_sent_ahead_whatever_memory_they_are_in(memory: str) -> None:
    """A program of TensorFlow's does not pin memory itself."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                with job.range("m/Cast/_3:_HostSend"):
                    job.copy("MemcpyH2D", 900, 12 << 20, memory, op="m/Cast/_3:_HostSend")
                job.op("m/d/MatMul:MatMul", GEMM, 5_000)
            job.wait_for_event()
    fix = told(job, "exposed_copy").fix
    assert 'tf.data.experimental.prefetch_to_device("/gpu:0")' in fix
    assert "pinned" not in fix


@pytest.mark.parametrize(("count", "grows"), [(4, 0), (COPIES, 512)])
def test_copies_of_a_few_ops_or_of_many_sizes_are_not(count: int, grows: int) -> None:
    finding = told(copying(count, grows=grows), "exposed_copy")
    assert "ops of the graph" not in finding.why
    assert "with one copy" not in finding.fix


def test_the_time_of_each_op_is_that_of_the_used_steps() -> None:
    """What the first and the last step take is in no mean."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                for k in range(4):
                    job.op(f"m/d_{k}/MatMul:MatMul", GEMM, 1_000 if 0 < number < STEPS - 1 else 9_000)
            job.wait_for_event()
    assert "`m/d_0/MatMul:MatMul` 25.0 % (1.00 ms)" in told(job, "tensor_cores_unused").why


@pytest.mark.parametrize("frames", [("$report.py:55 on_batch_end", "$report.py:71 write"), ("$report.py:71 write",)])
def test_a_slow_step_is_told_where_the_program_was_not_what_executors_launched_next(frames: tuple[str, ...]) -> None:
    job = TfGpuJob()
    for number in range(12):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                job.op("m/d/MatMul:MatMul", GEMM, 5_000)
            job.wait_for_event()
            if number == 6:
                with ExitStack() as around:
                    for frame in frames:
                        around.enter_context(job.range(frame))
                    job.spend(120_000)
    places = told(job, "slow_steps").where
    assert [(place.file, place.line) for place in places] == [("report.py", 71)]


@pytest.mark.parametrize("reads", ["$ops.py:400 numpy", "$ops.py:412 __float__"])
def test_a_value_that_is_read_is_told_where_the_program_reads_it(reads: str) -> None:
    """Reading is TensorFlow's own function, in a file that programs have, too."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                job.op("m/d/MatMul:MatMul", GEMM, 4_000)
            with job.range("$train.py:88 log_loss"), job.range(reads):
                job.copy("MemcpyD2H", 3, 4, op="loss", blocks=True)
            with job.range("$ops.py:7 draw"):
                job.spend(1_200)
    assert told(job, "sync_bound").where[0].file == "train.py"
    assert told(job, "between_steps").where[0].file == "ops.py"
