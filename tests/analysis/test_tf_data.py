"""tf.data: who prepares batches on which threads, and which iterator takes the time that a batch is waited for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.iterators import PipelineIterators
from stepscope.analysis.summary import feeds_devices
from stepscope.analysis.workload import Workload
from stepscope.diagnosis import tf_data
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.remedies import remedy
from stepscope.formats.xplane.writing import write
from stepscope.report import input_pipeline, input_sections
from stepscope.trace.trace import Trace
from tests.formats.xplane.xplane_files import read
from tests.kit.tf_gpu import TfGpuJob
from tests.kit.tf_pipelines import KERNEL, SEQUENTIAL, Pipeline, asked, data_of, facts_of, parallel

READING = Pipeline((asked("Prefetch", buffer_limit=2), asked("TFRecord", name="TFRecordDataset:1")))
ROOT = {"cpu_budget": 8, "threadpool_size": 8}


def found(pipeline: Pipeline) -> tuple[str, str]:
    """What is said of the input, and what to do."""
    (finding,) = (f for f in diagnose(facts_of(pipeline)).findings if f.rule == "input_bound")
    return finding.why, finding.fix


def iterators(pipeline: Pipeline) -> PipelineIterators:
    stages = facts_of(pipeline).input_stages
    assert stages is not None
    assert stages.iterators is not None
    return stages.iterators


# Who prepares batches


def test_threads_that_run_a_pipelines_functions_prepare_its_batches() -> None:
    stages = facts_of(SEQUENTIAL).input_stages
    assert stages is not None
    assert stages.producers is not None
    assert (stages.producers.threads, stages.producers.heaviest) == (2, "transform")
    assert stages.producers.any_busy_share == pytest.approx(0.97, abs=0.005)
    why, _ = found(SEQUENTIAL)
    assert "one of them or more works 97.1 % of it" in why
    assert "holds them up" not in why


def test_what_a_function_does_is_told_by_its_ops() -> None:
    stages = facts_of(replace(SEQUENTIAL, op="DecodeJpeg:DecodeJpeg")).input_stages
    assert stages is not None
    assert stages.producers is not None
    assert stages.producers.heaviest == "decode"


@pytest.mark.parametrize(("handed", "busy"), [(True, 0.97), (False, 0.0)])
def test_work_on_threads_of_the_runtime_is_the_pipelines_where_it_handed_it_over(handed: bool, busy: float) -> None:
    stages = facts_of(replace(SEQUENTIAL, on="tf_Compute/77", handed=handed)).input_stages
    assert stages is not None
    assert stages.producers is not None
    assert stages.producers.any_busy_share == pytest.approx(busy, abs=0.005)


def test_storage_is_blamed_where_reading_takes_the_time_and_nobody_works() -> None:
    idle = replace(READING, iterators=(asked("MapAndBatch"),), function=60)
    assert "what `MapAndBatch` waits for was not recorded" in found(idle)[0]
    why, _ = found(replace(idle, iterators=(asked("DataServiceV4"),)))
    assert "what batches are read from (storage, network, a generator, another process) holds them up" in why


# How many devices it feeds


def test_a_job_that_waits_for_input_is_not_told_that_it_could_feed_more_devices() -> None:
    facts = facts_of(replace(SEQUENTIAL, function=60))
    waits = 1 - KERNEL / (facts.mean_step_ns or 0) * 1_000
    assert feeds_devices(facts) == pytest.approx(1 - waits, abs=0.02)


def test_a_pipeline_that_keeps_up_feeds_as_many_as_its_busiest_thread_allows() -> None:
    facts = facts_of(replace(SEQUENTIAL, wait=20, function=1_000), waits=True)
    assert feeds_devices(facts) == pytest.approx(4.0, rel=0.05)


def test_an_iterator_that_waits_for_what_was_not_recorded_is_no_faster_for_it() -> None:
    """Its thread takes 2 ms of each step for an element; what it asks is on another host."""
    job = TfGpuJob()
    for number in range(8):
        with job.step(number, "train", _r=1):
            with job.beside("tf_data_iterator_resource/1", job.now), job.range("PrefetchProduce"):
                job.host("Iterator::Root::Prefetch::DataServiceV4", 2_000)
            job.host("EagerLocalExecute: IteratorGetNext", 20)
            with job.function(), job.executing():
                job.op("dense/MatMul:MatMul", "volta_sgemm_128x64_nn", KERNEL)
            job.wait_for_event()
    assert feeds_devices(analyse(read(job.data()))) == pytest.approx(2.0, rel=0.05)


# The iterators


def nested() -> Trace:
    """A prefetch, whose thread waits for a batch of the elements that a map makes on threads of its own."""
    job = TfGpuJob()
    for number in range(8):
        with job.step(number, "train", _r=1):
            begun = job.now
            with job.range("EagerLocalExecute: IteratorGetNext"), job.range("Iterator::Root", **ROOT):
                job.host("Iterator::Root::Prefetch", 6_000, buffer_limit=2, autotune="true")
            path = "Iterator::Root::Prefetch::ParallelBatch"
            with job.beside("tf_data_iterator_resource/1", begun + 500), job.range("PrefetchProduce"):
                job.host(path, 5_500, parallelism=2)
            with job.beside("tf_data_iterator_resource/2", begun + 1_500), job.range("ParallelBatchProduce"):
                job.host(f"{path}::ParallelMapV2", 4_000, parallelism=4)
            with job.beside("tf_data_iterator_resource/3", begun + 1_500), job.range("ParallelMapProduce"):
                job.host(f"{path}::ParallelMapV2::ParallelInterleaveV4[{number}]::TFRecord", 300)
            with job.function(), job.executing():
                job.op("dense/MatMul:MatMul", "volta_sgemm_128x64_nn", KERNEL)
    return read(job.data())


def test_an_iterator_has_the_waiting_in_which_none_that_it_asks_holds_it_up() -> None:
    facts = analyse(nested())
    stages = facts.input_stages
    assert stages is not None
    assert stages.iterators is not None
    own = {one.kind: round(facts.per_step(one.own_ns), -3) // 1_000 for one in stages.iterators.each}
    assert own == {"Root": 0, "Prefetch": 500, "ParallelBatch": 1_500, "ParallelMap": 3_700, "TFRecord": 300}
    assert stages.iterators.slowest is not None
    assert stages.iterators.slowest.kind == "ParallelMap"
    calls = {one.path[-1]: one.calls for one in stages.iterators.each}
    assert calls["TFRecord"] == len(facts.used)  # of whichever file
    assert [one.parallelism for one in stages.iterators.each] == [None, None, 2, 4, None]


def test_what_iterators_say_of_themselves_is_in_the_table() -> None:
    facts = facts_of(parallel(4))
    assert facts.input_stages is not None
    given = input_pipeline.entry(facts, facts.input_stages)
    section = input_sections.iterators(given)
    assert section.note.endswith("cores tf.data may use: 8; threads that run its functions: 8")
    assert section.rows == [
        ("Root", "PrefetchDataset:9", "1", "6.00 ms", "0 ns", "–", "–", "–"),
        ("Root::Prefetch", "PrefetchDataset:9", "1", "6.00 ms", "0 ns", "–", "2", "yes"),
        ("Root::Prefetch::ParallelMapV2", "ParallelMapDatasetV2:2", "1", "6.00 ms", "6.00 ms", "4", "–", "yes"),
    ]


def test_a_profile_without_iterators_has_no_such_table() -> None:
    job = TfGpuJob()
    for number in range(8):
        with job.step(number, "train", _r=1):
            job.host("EagerLocalExecute: IteratorGetNext", 6_000)
            with job.function(), job.executing():
                job.op("dense/MatMul:MatMul", "volta_sgemm_128x64_nn", KERNEL)
    facts = analyse(read(job.data()))
    assert facts.input_stages is not None
    given = input_pipeline.entry(facts, facts.input_stages)
    assert given["iterators"] is None
    assert input_sections.iterators(given).rows == []
    (finding,) = (f for f in diagnose(facts).findings if f.rule == "input_bound")
    assert "num_parallel_calls=AUTO" in finding.fix  # nothing speaks against it


def test_an_xplane_file_of_ours_says_what_the_iterators_said(tmp_path: Path) -> None:
    trace = read(data_of(parallel(4)))
    path = tmp_path / "host.xplane.pb"
    write(trace, path)
    again = read(path.read_bytes())
    assert len(trace.iterators) == 3 * 8
    assert again.table("iterators").drop("slice").equals(trace.table("iterators").drop("slice"))


# What to do


def test_a_sequential_map_is_made_parallel_and_works_ahead() -> None:
    why, fix = found(SEQUENTIAL)
    assert "`Root::MapAndBatch`'s own (`fused(MapDataset:1,BatchDatasetV2:2)`), one call at a time" in why
    assert "dataset.map(f, num_parallel_calls=AUTO).batch(n)" in fix
    assert "dataset.prefetch(AUTO)" in fix


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        (parallel(8), "`ParallelMap` runs 8 calls at once already, as many as there are cores for."),
        (parallel(4), "runs 4 calls at once so far, as autotuning found"),
        (parallel(4, root={}), "runs 4 calls at once already. Make less work"),
    ],
)
def test_a_parallel_map_is_not_told_to_be_parallel(pipeline: Pipeline, words: str) -> None:
    _, fix = found(pipeline)
    assert words in fix
    assert "num_parallel_calls" not in fix
    assert "prefetch" not in fix


def test_fewer_calls_than_cores_by_choice_can_be_more() -> None:
    _, fix = found(parallel(2, autotune="false"))
    assert "runs 2 calls at once, as the program says, and there are 8 cores" in fix
    assert "num_parallel_calls=AUTO" in fix


@pytest.mark.parametrize("op", ["PyFunc:PyFunc", "map/EagerPyFunc:EagerPyFunc"])
@pytest.mark.parametrize("pipeline", [SEQUENTIAL, parallel(4)])
def test_a_function_that_calls_python_is_told_so(pipeline: Pipeline, op: str) -> None:
    _, fix = found(replace(pipeline, op=op, function=5_500))
    kind = pipeline.iterators[-1].dataset.removesuffix("V2")
    assert f"The function of `{kind}` calls Python" in fix
    assert "num_parallel_calls=AUTO" not in fix
    assert "calls Python" not in found(replace(pipeline, op=op, function=500))[1]  # Most of its time is not Python's.


def test_a_pool_smaller_than_the_cores_is_named() -> None:
    small = parallel(8, root={"cpu_budget": 8, "threadpool_size": 2})
    assert "Its functions run on 2 threads of 8 cores" in found(small)[1]
    assert "Its functions run on" not in found(parallel(8))[1]


@pytest.mark.parametrize(
    ("iterators", "words"),
    [
        ((asked("TFRecord"),), "It reads one file after another."),
        ((asked("ParallelInterleaveV4", parallelism=4), asked("TFRecord")), "It reads files 4 at once already"),
        ((asked("FlatMap[0]"), asked("Generator")), "A Python generator makes its elements one at a time"),
        ((asked("DataServiceV4"),), "It waits for tf.data's service"),
        ((asked("Filter"),), "`Filter` works on one element after another and has no parallel form."),
        ((asked("FlatMap"),), "files.interleave(read, num_parallel_calls=AUTO)  # in place of flat_map"),
        ((asked("BatchV2"),), "dataset.batch(n, num_parallel_calls=AUTO)"),
    ],
)
def test_what_to_do_follows_from_the_iterator_that_takes_the_time(iterators: tuple, words: str) -> None:
    _, fix = found(replace(READING, iterators=(asked("Prefetch"), *iterators)))
    assert words in fix
    assert "prefetch(" not in fix


def test_a_cache_that_is_being_filled_makes_the_profile_one_of_the_first_epoch() -> None:
    filling = (asked("Prefetch"), asked("MemoryCache"), asked("MemoryCacheImpl"), asked("ParallelMapV2", parallelism=8))
    _, fix = found(replace(SEQUENTIAL, iterators=filling))
    assert "Its `cache()` is being filled here" in fix
    assert "`cache()` behind it" not in fix
    assert "num_parallel_calls" not in fix
    kept = [one.path for one in iterators(replace(SEQUENTIAL, iterators=filling)).each]
    assert kept[-1] == ("Root", "Prefetch", "MemoryCache", "ParallelMapV2")


def test_a_cache_that_is_full_is_not_said_to_be_filled() -> None:
    full = (asked("Prefetch"), asked("ParallelMapV2", parallelism=8), asked("MemoryCache"))
    assert "being filled" not in found(replace(READING, iterators=full))[1]


def test_older_releases_spell_autotuning_their_way() -> None:
    text = tf_data.remedy_for(facts_of(SEQUENTIAL), {None: ""})
    assert "AUTO = tf.data.AUTOTUNE" in remedy(text, Workload("TensorFlow"))
    old = remedy(text, Workload("TensorFlow", newest=(2, 3)))
    assert "AUTO = tf.data.experimental.AUTOTUNE" in old
