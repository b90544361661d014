"""tf.data pipelines on the threads of a simulated TensorFlow job: what each iterator writes, and who does its work.

Names and statistics are those that TensorFlow 2.21 writes (tensorflow/core/kernels/data). Times are in microseconds.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from tests.formats.xplane.xplane_files import read
from tests.kit.tf_gpu import EXECUTOR_CONTEXT, EXECUTORS, TfGpuJob

RESOURCE = "tf_data_iterator_resource/-5992794105764126986"
POOL = "tf_data_private_threadpool/-4791220108041626938"
STEPS, KERNEL = 8, 4_000


@dataclass(frozen=True)
class Asked:
    """An iterator as it is asked for an element: its dataset, and what it says of itself."""

    dataset: str
    stats: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """What a step waits for: iterators nested on the thread that takes the batch, so long, while functions run."""

    iterators: tuple[Asked, ...]
    wait: int = 6_000
    function: int = 0
    """How long each of the functions runs that the innermost iterator has called."""
    threads: int = 1
    on: str = POOL
    handed: bool = True
    """Whether the profile connects the call with what the other thread does."""
    op: str = "clip_by_value:Maximum"
    root: dict[str, Any] = field(default_factory=lambda: {"cpu_budget": 8, "threadpool_size": 8})

    def draw(self, job: TfGpuJob, number: int) -> None:
        """One batch is taken, by the thread that is at work."""
        with ExitStack() as ranges:
            for name in ("EagerLocalExecute: IteratorGetNext", "IteratorGetNextOp::DoCompute"):
                ranges.enter_context(job.range(name))
            path, start = "Iterator::Root", job.now
            ranges.enter_context(job.range(path, name="PrefetchDataset:9", **self.root))
            for asked in self.iterators:
                # What a cache does inside stands in the path in place of the cache.
                outer = path.rpartition("::")[0] if asked.dataset.endswith("Impl") else path
                path = f"{outer}::{asked.dataset}"
                ranges.enter_context(job.range(path, **asked.stats))
            job.spend(self.wait)
        for thread in range(self.threads if self.function else 0):
            call = 1_000 + number * 100 + thread
            with job.beside(RESOURCE, start + 10 * thread), job.range(f"{self.producer}Produce"):
                job.host("FunctionRun", 5, _pt=EXECUTOR_CONTEXT, _p=call)
            joined = {"_ct": EXECUTOR_CONTEXT, "_c": call} if self.handed else {}
            with job.beside(f"{self.on}{thread}", start + 5), job.range("ExecutorState::Process", **joined):
                job.host(self.op, self.function)

    @property
    def producer(self) -> str:
        """The dataset that calls the functions, without version."""
        return self.iterators[-1].dataset.rstrip("0123456789").removesuffix("V")


def asked(dataset: str, **stats: Any) -> Asked:
    """An iterator."""
    return Asked(dataset, stats)


SEQUENTIAL = Pipeline(
    (asked("MapAndBatch", name="fused(MapDataset:1,BatchDatasetV2:2)", parallelism=1, autotune="false"),),
    function=5_820,
)
"""A map without parallel calls and the batch behind it, which TensorFlow makes one; its functions work 97 %."""


def parallel(calls: int, autotune: str = "true", **more: Any) -> Pipeline:
    """A parallel map behind a prefetch."""
    iterators = (
        asked("Prefetch", name="PrefetchDataset:9", buffer_limit=2, autotune="true"),
        asked("ParallelMapV2", name="ParallelMapDatasetV2:2", parallelism=calls, autotune=autotune),
    )
    return Pipeline(iterators, function=5_820, threads=min(calls, 8), **more)


def data_of(pipeline: Pipeline, *, waits: bool = False) -> bytes:
    """The file of a loop that takes a batch and runs one kernel in each step; a step that ``waits`` ends with it."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            pipeline.draw(job, number)
            with job.function(), job.executing(EXECUTORS[0]):
                job.op("dense/MatMul:MatMul", "volta_sgemm_128x64_nn", KERNEL)
            if waits:
                job.wait_for_event()
    return job.data()


def facts_of(pipeline: Pipeline, *, waits: bool = False) -> Facts:
    """The facts of that loop."""
    return analyse(read(data_of(pipeline, waits=waits)))
