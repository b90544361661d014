"""TensorFlow on a GPU: what executors do for the main thread is found and predicted wherever they do it.

Every job is simulated with and without its cause: the difference is what a fix saves.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.analysis.accounting import check
from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.report import input_pipeline, input_sections
from tests.formats.xplane.xplane_files import read
from tests.kit.tf_gpu import EXECUTORS, GET_NEXT, TfGpuJob

STEPS, WAIT = 12, 12_000
HALF = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"
"""A kernel there is nothing to say of."""

Step = Callable[[TfGpuJob, bool], None]
"""What a step does, with or without the cause."""


def run(step: Step, cause: bool = True, devices: int = 1) -> TfGpuJob:
    job = TfGpuJob(devices=devices)
    for number in range(STEPS):
        with job.step(number):
            step(job, cause)
    return job


def found(job: TfGpuJob) -> tuple[Facts, Diagnosis]:
    facts = analyse(read(job.data()))
    for account in facts.accounts:
        check(account)
    return facts, diagnose(facts)


def the(diagnosis: Diagnosis, rule: str) -> Finding:
    (finding,) = (finding for finding in diagnosis.findings if finding.rule == rule)
    return finding


def truly_saves(step: Step, finding: Finding, devices: int = 1) -> None:
    """Steps of a job without the cause take what the finding says that they would."""
    without = analyse(read(run(step, cause=False, devices=devices).data()))
    assert finding.predicted_step_ns == pytest.approx(without.mean_step_ns, rel=0.01)


def model(job: TfGpuJob, threads: tuple[str, ...] = EXECUTORS, device: int = 0) -> None:
    """6 ms of kernels, launched on two threads of executors."""
    for thread in threads:
        with job.executing(thread):
            for layer in range(15):
                job.op(f"model/dense_{layer}/MatMul:MatMul", HALF, 200, device=device)


# --- one wait for input, wherever it is recorded ---------------------------------------------------------------------


def on_main_thread(job: TfGpuJob, cause: bool) -> None:
    with job.range("EagerLocalExecute: IteratorGetNext"):
        job.spend(WAIT if cause else 0)
    with job.function():
        model(job)


def on_executor(job: TfGpuJob, cause: bool) -> None:
    with job.function():
        with job.executing():
            job.host("IteratorGetNext:IteratorGetNext", WAIT if cause else 0)
        model(job)


def on_get_next(job: TfGpuJob, cause: bool) -> None:
    with job.function():
        with job.executing():
            job.host("adam/ReadVariableOp:ReadVariableOp", 5)
        job.get_next(WAIT if cause else 0)
        model(job)


def without_tasks(job: TfGpuJob, cause: bool) -> None:
    """A profile of fewer details: neither the start of the function nor the tasks of executors."""
    with job.range("KernelAndDeviceFunc::Run"):
        job.spend(20)
        with job.on(EXECUTORS[0], 10):
            job.host("IteratorGetNext:IteratorGetNext", WAIT if cause else 0)
        with job.on(EXECUTORS[1], 10):
            for layer in range(30):
                job.op(f"model/dense_{layer}/MatMul:MatMul", HALF, 200)


def in_session(job: TfGpuJob, cause: bool) -> None:
    """A step of TensorFlow 1, whose session takes a batch out of a queue."""
    with job.range("SessionRun", _r=1, _pt=2, _p=1):
        job.spend(20)
        with job.executing():
            job.host("fifo_queue_Dequeue:QueueDequeueManyV2", WAIT if cause else 0)
        model(job)
        job.spend(20)


def in_shared_pool(job: TfGpuJob, cause: bool) -> None:
    """The functions of tf.data run in the pool of the executors: they are what is waited for."""
    wait = WAIT if cause else 100
    with job.function():
        begun = job.now
        with job.on("tf_data_iterator_resource/77", 20):
            job.host("FunctionRun", 5, _r=1, _pt=2, _p=10**6 + begun)
        with job.on(EXECUTORS[1], 10), job.range("ExecutorState::Process", _ct=2, _c=10**6 + begun):
            job.host("decode/DecodeJpeg:DecodeJpeg", wait - 80)
        job.now = begun
        job.get_next(wait)
        model(job)


def in_shared_pool_when_asked(job: TfGpuJob, cause: bool) -> None:
    """The same where nothing is prepared ahead: the thread that takes the batch has it made."""
    wait = WAIT if cause else 100
    with job.function():
        begun = job.now
        with job.on(GET_NEXT, 15), job.range("IteratorGetNextOp::DoCompute"), job.range("Iterator::Root::Map"):
            job.host("FunctionRun", 5, _r=1, _pt=2, _p=10**6 + begun)
            with job.on(EXECUTORS[1], 10), job.range("ExecutorState::Process", _ct=2, _c=10**6 + begun):
                job.host("decode/DecodeJpeg:DecodeJpeg", wait)
        model(job)


def mirrored(job: TfGpuJob, cause: bool) -> None:
    """Two GPUs with threads of their own, which launch at the same time."""
    with job.function():
        job.get_next(WAIT if cause else 0, "tf_data_iterator_get_next_as_optional/5", "IteratorGetNextAsOptionalOp")
        begun, ends = job.now, []
        for device in (0, 1):
            job.now = begun + 3 * device
            model(job, (f"tf_gpu_private_{device}/11", f"tf_gpu_private_{device}/12"), device)
            ends.append(job.now)
        job.now = max(ends)


RECORDINGS = [on_main_thread, on_executor, on_get_next, without_tasks, in_session, in_shared_pool,
              in_shared_pool_when_asked, mirrored]  # fmt: skip


@pytest.mark.parametrize("step", RECORDINGS)
def test_a_wait_for_input_is_the_same_wherever_it_is_recorded(step: Step) -> None:
    devices = 2 if step is mirrored else 1
    facts, diagnosis = found(run(step, devices=devices))
    idle = mean_parts(facts)[Category.INPUT]
    # 12 ms of which the device works through the 6 ms of the step before.
    assert idle == pytest.approx(6_400_000, rel=0.02)
    assert facts.inputs is not None
    assert facts.per_step(facts.inputs.total_ns) == pytest.approx(WAIT * 1000, rel=0.01), "what the section says"
    finding = the(diagnosis, "input_bound")
    assert {finding.rule for finding in diagnosis.findings} == {"input_bound"}
    truly_saves(step, finding, devices)
    wanted = "tf.train.batch" if step is in_session else "prefetch(AUTO)"
    assert wanted in finding.fix


@pytest.mark.parametrize("step", RECORDINGS)
def test_a_job_that_waits_for_nothing_is_left_alone(step: Step) -> None:
    _, diagnosis = found(run(step, cause=False, devices=2 if step is mirrored else 1))
    assert diagnosis.findings == ()


@pytest.mark.parametrize(
    ("step", "thread"),
    [(on_main_thread, "main thread"), (on_get_next, "thread tf_data_iterator_get_next")],
    ids=["main", "get_next"],
)
def test_the_input_table_names_the_thread_that_takes_batches(step: Step, thread: str) -> None:
    facts, _ = found(run(step))
    assert facts.input_stages is not None
    table = input_sections.stages(input_pipeline.entry(facts, facts.input_stages))
    assert f"per step in the loader on the {thread};" in table.note
    assert {row[1] for row in table.rows if row[1] != "loader threads"} <= {thread, "device"}


def test_input_is_no_cause_while_other_threads_compute() -> None:
    """The graph takes its next batch beside an op that computes on the host: that is what the device waits for."""

    def step(job: TfGpuJob, cause: bool) -> None:
        with job.function():
            begun = job.now
            job.get_next(WAIT)
            job.now = begun
            with job.executing(EXECUTORS[1]):
                job.op("vocabulary/Unique:UniqueV2", None, WAIT + 60)
            model(job)

    facts, diagnosis = found(run(step))
    assert mean_parts(facts).get(Category.INPUT, 0) < 50_000
    assert "input_bound" not in {finding.rule for finding in diagnosis.findings}
    assert {place.op for place in the(diagnosis, "ops_on_host").where} == {"vocabulary/Unique:UniqueV2"}


# --- what executors launch, and wait for -----------------------------------------------------------------------------


def syncs(job: TfGpuJob, cause: bool) -> None:
    """A wait in the middle of the step, then small kernels that would have been launched by then."""
    with job.function():
        with job.executing():
            for layer in range(20):
                job.op(f"model/dense_{layer}/MatMul:MatMul", HALF, 200)
            if cause:
                with job.range("model/mask/boolean_mask/Where:Where"):
                    job.spend(8)
                    job.synchronize()
        with job.executing(EXECUTORS[1]):
            for op in range(100):
                job.op(f"model/small_{op}/Mul:Mul", "small", 5, host=30)
            for layer in range(20):
                job.op(f"model/grad_{layer}/MatMul:MatMul", HALF, 200)
        job.wait_for_event()


def copies(job: TfGpuJob, cause: bool) -> None:
    """Eight results fetched one by one."""
    with job.function():
        model(job)
        with job.executing():
            for metric in range(8 if cause else 0):
                name = f"metrics/stack_{metric}/_9:_Send"
                with job.range(name):
                    job.copy("MemcpyD2H", 300, 3 << 20, op=name, blocks=True)
        model(job)
        job.wait_for_event()


def exchanges(job: TfGpuJob, cause: bool) -> None:
    """Sixty all-reduces behind the backward pass, launched by NCCL's own thread."""
    with job.function():
        model(job)
        for gradient in range(60 if cause else 0):
            job.reduce(60, f"Reduce_{gradient}/CollectiveReduceV2:CollectiveReduceV2")
        job.wait_for_event(stream=30)
        with job.executing():
            for variable in range(10):
                job.op(f"adam/apply_{variable}/ResourceApplyAdam:ResourceApplyAdam", "apply", 20)
        job.wait_for_event()


@pytest.mark.parametrize(
    ("step", "rule", "op"),
    [
        (syncs, "sync_bound", "model/mask/boolean_mask/Where:Where"),
        (copies, "exposed_copy", "metrics/stack_0/_9:_Send"),
        (exchanges, "exposed_collective", None),
    ],
)
def test_what_executors_launch_and_wait_for_is_found_and_predicted(step: Step, rule: str, op: str | None) -> None:
    _, diagnosis = found(run(step))
    finding = the(diagnosis, rule)
    assert diagnosis.findings[0] == finding
    truly_saves(step, finding)
    if op is not None:
        assert op in {place.op for place in finding.where}


def test_kernels_that_tensor_cores_could_run_are_worth_what_the_step_gains() -> None:
    """The call returns when the device is done, and so only then does the next step begin."""

    def step(job: TfGpuJob, cause: bool) -> None:
        with job.function():
            with job.executing(EXECUTORS[1]):
                for layer in range(20):
                    kernel, us = ("volta_sgemm_128x64_nn", 400) if cause else (HALF, 50)
                    job.op(f"model/dense_{layer}/MatMul:MatMul", kernel, us)
            job.wait_for_event()

    _, diagnosis = found(run(step))
    truly_saves(step, the(diagnosis, "tensor_cores_unused"))


def test_a_call_that_fills_the_queue_waits_for_nobody() -> None:
    """Work of the main thread inside a call counts, its waiting for executors does not."""

    def step(job: TfGpuJob, cause: bool) -> None:
        with job.function():
            model(job)
            if cause:
                job.host("EagerCopyToDevice", 3_000)

    facts, _ = found(run(step))
    assert facts.host.executors is not None
    begun = facts.markers.start
    waits = facts.host.executors.waits
    inside = sum(int(end - start) for start, end in zip(*waits, strict=True)) / len(begun)
    call = 34_000  # what the function does before it hands the graph over
    without = run(step, cause=False).now * 1000 / STEPS - call
    assert inside == pytest.approx(without, rel=0.02)
