"""TensorFlow's GPU guide, A14-A23: pipelines of tf.data, and callbacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.guides.shown import Shown, shown
from tests.guides.tf_steps import keras
from tests.kit.keras_frames import COMPUTES_US, MARGIN_US, fit
from tests.kit.keras_frames import US as PS
from tests.kit.tf_gpu import TfGpuJob
from tests.kit.tf_pipelines import POOL, SEQUENTIAL, Pipeline, asked, data_of, parallel
from tests.kit.xplanes import Ev

US, MS = 1_000, 1_000_000


def piped(pipeline: Pipeline) -> Shown:
    """A loop that waits for its batch of a pipeline."""
    return shown(data_of(pipeline), "host.xplane.pb")


def test_a14_whether_those_who_prepare_batches_work_or_wait_is_told() -> None:
    """Functions of a sequential map run 5.82 of the 6 ms in which a batch is waited for."""
    why = piped(SEQUENTIAL).finding("input_bound")["why"]
    assert "one of them or more works 97.1 % of it" in why
    assert "mostly in `transform`" in why
    idle = piped(replace(SEQUENTIAL, iterators=(asked("DataServiceV4"),), function=60))
    assert "what batches are read from (storage, network" in idle.finding("input_bound")["why"]


def test_a15_the_iterator_that_holds_up_the_others_is_named_with_its_settings() -> None:
    found = piped(parallel(4))
    last = found.analyses["input"]["iterators"]["each"][-1]
    assert (last["path"][-1], last["dataset"], last["parallelism"], last["autotuned"]) == (
        "ParallelMapV2", "ParallelMapDatasetV2:2", 4, True
    )  # fmt: skip
    assert last["own_wait_ns_per_step"] == 6 * MS  # all of the wait
    before = found.analyses["input"]["iterators"]["each"][-2]
    assert (before["path"][-1], before["buffer_limit"], before["own_wait_ns_per_step"]) == ("Prefetch", 2, 0)
    assert found.analyses["input"]["iterators"]["cpu_budget"] == 8
    assert "cores tf.data may use: 8; threads that run its functions: 8" in found.flat
    assert "`Root::Prefetch::ParallelMapV2`'s own" in found.finding("input_bound")["why"]


@pytest.mark.parametrize(
    ("pipeline", "advised", "left_out"),
    [
        (SEQUENTIAL, "dataset.map(f, num_parallel_calls=AUTO)", "interleave("),
        (parallel(8), "runs 8 calls at once already, as many as there are cores for", "num_parallel_calls"),
        (Pipeline((asked("Prefetch"), asked("TFRecord"))), "It reads one file after another", "prefetch("),
    ],
)
def test_a18_advice_on_input_fits_the_pipeline(pipeline: Pipeline, advised: str, left_out: str) -> None:
    fix = piped(pipeline).finding("input_bound")["fix"]
    assert advised in fix
    assert left_out not in fix


def contended() -> Shown:
    """Ten ops take 100 us each to launch while three threads of tf.data work, and 20 without them."""

    def step(job: TfGpuJob) -> None:
        for thread in range(3):
            with job.beside(f"{POOL}{thread}", job.now), job.range("ExecutorState::Process"):
                job.op("DecodeJpeg:DecodeJpeg", None, 1_000)
        for k in range(20):
            job.op("model/add/AddV2:AddV2", "k", 5, host=100 if k < 10 else 20)

    return keras(step)


def test_a21_threads_of_tf_data_that_take_cores_from_the_launching_ones_are_told() -> None:
    finding = contended().told("host_contention")
    assert finding["title"] == "Loader threads take cores from the launching thread"
    assert finding["cost_ns_per_step"] == pytest.approx(10 * 80 * US, rel=0.05)
    assert "Beside 3 loader threads" in finding["why"]


def test_a22_launching_threads_of_a_gpu_s_own_are_the_cure() -> None:
    assert "TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2" in contended().told("host_contention")["fix"]


CALLBACK = "keras.callback: Metrics.on_train_batch_end (slow.py:10)"


@pytest.mark.parametrize("ranges", ["", CALLBACK], ids=["by capture", "by run"])
def test_a23_callbacks_between_steps_are_named_with_their_lines(ranges: str) -> None:
    """20 ms in ``slow.py`` after each of 12 batches: by frames, or by the ranges that ``stepscope run`` puts around."""
    length = COMPUTES_US + 20_000 + 3 * MARGIN_US
    marks = [Ev("train", step * length * PS, length * PS, {"step_num": step, "_r": 1}) for step in range(12)]
    found = shown(fit(12, 20_000, ranges=ranges, more=marks if ranges else ()), "host.xplane.pb")
    finding = found.finding("callback_time")
    assert finding["title"] == "Steps wait for callbacks"
    assert finding["saving_ns_per_step"] == pytest.approx(20 * MS, rel=0.01)
    assert (finding["where"][0]["file"], finding["where"][0]["line"]) == ("slow.py", 10)
    assert "slow.py:10" in found.text()
