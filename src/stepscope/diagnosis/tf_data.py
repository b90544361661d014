"""What to change in a tf.data pipeline, by its iterators: which of them holds up the step, and how it runs."""

from __future__ import annotations

from enum import StrEnum

from stepscope.analysis.facts import Facts
from stepscope.analysis.iterators import IteratorUse, PipelineIterators
from stepscope.diagnosis.limits import PYTHON_IN_MAP_SHARE
from stepscope.diagnosis.remedies import Remedies, RemedyPart
from stepscope.names.tf_data import Way, way_of
from stepscope.units import format_ns, format_times


class _Limit(StrEnum):
    """Why an iterator is no faster."""

    SEQUENTIAL = "sequential"
    """It works on one element at a time, and could work on several."""
    CORES = "cores"
    """It runs as many calls at once as there are cores for."""
    FIXED = "fixed"
    """It runs fewer calls than there are cores for, as the program says."""
    TUNED = "tuned"
    """It runs fewer calls than there are cores for, as autotuning found."""
    UNKNOWN = "unknown"
    """It runs several calls at once; how many cores there are was not recorded."""


AUTO = (
    RemedyPart("    AUTO = tf.data.AUTOTUNE", since=(2, 4)),
    RemedyPart("    AUTO = tf.data.experimental.AUTOTUNE", before=(2, 4)),
)
"""How autotuning is asked for."""
_VERIFY = """\
Verify with `dataset.take(1).cache().repeat()`: if the step time does not fall, the cause lies elsewhere."""

_PARALLEL = {
    "Map": "dataset.map(f, num_parallel_calls=AUTO)",
    "MapAndBatch": "dataset.map(f, num_parallel_calls=AUTO).batch(n)",
    "Batch": "dataset.batch(n, num_parallel_calls=AUTO)",
    "Interleave": "files.interleave(read, num_parallel_calls=AUTO)",
    "FlatMap": "files.interleave(read, num_parallel_calls=AUTO)  # in place of flat_map",
    "ParseExample": "dataset.map(parse, num_parallel_calls=AUTO)",
}
"""How each is written when it works in parallel."""

_LIGHTER = """\
Make less work of each element: batch first and map whole batches (one vectorised call in place of n), keep what does
not change on disk, and leave to the device what it does faster (casting, scaling, in the model)."""
_NO_ORDER = RemedyPart(
    "Where the order of elements does not matter, `deterministic=False` keeps a slow one from holding up the others.",
    since=(2, 2),
)
_CALLS_PYTHON = """\
The function of `{kind}` calls Python (`tf.numpy_function`, `tf.py_function`), which one call at a time may run, however
many threads wait to. Write it in TensorFlow's ops, or do it once and store what it makes. Where it has to be Python,
call it for a whole batch, and give it `num_parallel_calls` as far as it only waits (reads files) or computes in NumPy:
these let other calls run."""
_CACHE = """\
`cache()` behind it spares it from the second pass over the data on, if these fit into memory and nothing before is
random."""
_SERVICE = RemedyPart("What one host's cores cannot do, several can: `tf.data.experimental.service`.", since=(2, 3))
_SOURCE_NEAR = "Read from disks near the host, in files of some 100 MB; small ones cost an opening each."


def bottleneck(facts: Facts) -> str:
    """Which iterator takes the waiting, in a sentence; empty where none was recorded."""
    iterators = _iterators(facts)
    slowest = iterators.slowest if iterators else None
    if iterators is None or slowest is None:
        return ""
    own, wait = (format_ns(facts.per_step(ns)) for ns in (slowest.own_ns, iterators.wait_ns))
    name = f"`{'::'.join(slowest.path)}`'s own" + (f" (`{slowest.dataset}`)" if slowest.dataset else "")
    return f" Of {wait} per step in the pipeline {own} are {name}{_how(iterators, slowest)}."


def waits_for(facts: Facts) -> str:
    """What idle threads that prepare batches wait for, as a clause."""
    iterators = _iterators(facts)
    slowest = iterators.slowest if iterators else None
    if slowest is None or way_of(slowest.kind) in (Way.READS, Way.PYTHON, Way.SERVICE):
        return "what batches are read from (storage, network, a generator, another process) holds them up"
    return f"what `{slowest.kind}` waits for was not recorded"


def _how(iterators: PipelineIterators, one: IteratorUse) -> str:
    cores = iterators.cpu_budget or iterators.threadpool_size
    calls = one.parallelism
    if way_of(one.kind) is Way.PARALLEL and calls is not None:
        at_once = "one call at a time" if calls == 1 else f"{calls} calls at once"
        return f", {at_once}" + (f"; tf.data may use {format_cores(cores)}" if cores else "")
    return ", one element at a time" if way_of(one.kind) is Way.COULD else ""


def format_cores(count: int) -> str:
    """A number of cores.

    >>> format_cores(1), format_cores(8)
    ('1 core', '8 cores')
    """
    return f"{count} core" if count == 1 else f"{count} cores"


def remedy_for(facts: Facts, otherwise: Remedies) -> Remedies:
    """The remedy for the pipeline as it is; ``otherwise`` where its iterators were not recorded."""
    iterators = _iterators(facts)
    slowest = iterators.slowest if iterators else None
    if iterators is None or slowest is None:
        return otherwise
    lines = [*_cached(iterators), *_advice(iterators, slowest), *_ahead(iterators)]
    told_once = (line for at, line in enumerate(lines) if line and line not in lines[:at])
    return {None: (*told_once, _VERIFY)} if lines else otherwise


def _iterators(facts: Facts) -> PipelineIterators | None:
    return facts.input_stages.iterators if facts.input_stages else None


def _advice(iterators: PipelineIterators, one: IteratorUse) -> list[str | RemedyPart]:
    """What makes the slowest iterator faster, largest effect first."""
    kind, way = one.kind, way_of(one.kind)
    cache = [] if any(other.kind in ("MemoryCache", "Cache", "FileCache") for other in iterators.each) else [_CACHE]
    if way is Way.READS:
        return _reading(iterators, one)
    if way is Way.PYTHON:
        return [
            "A Python generator makes its elements one at a time, under the interpreter's lock: make that cheaper "
            "(whole arrays in place of loops), or make them of arrays (`from_tensor_slices`) and TensorFlow's ops in a "
            "`map`, or write them to TFRecord files once. For `fit` of Keras 3 worker processes can make them:",
            "    keras.utils.PyDataset(workers=2, use_multiprocessing=True)  # in place of the generator",
        ]
    if way is Way.SERVICE:
        return ["It waits for tf.data's service: profile one of its workers, and give it more of them."]
    if way is Way.ALONE:
        return [
            f"`{kind}` works on one element after another and has no parallel form. Run several copies of the pipeline "
            "over parts of the data:",
            *AUTO,
            "    tf.data.Dataset.range(8).interleave(lambda i: pipeline(files.shard(8, i)), num_parallel_calls=AUTO)",
            *cache,
        ]
    if way in (Way.COULD, Way.PARALLEL):
        python = one.python_ns >= PYTHON_IN_MAP_SHARE * one.own_ns
        return [_CALLS_PYTHON.format(kind=kind), *cache] if python else [*_parallel(iterators, one), *cache]
    return []


def _parallel(iterators: PipelineIterators, one: IteratorUse) -> list[str | RemedyPart]:
    limit, cores = _limit(iterators, one), iterators.cpu_budget or iterators.threadpool_size
    written = _PARALLEL.get(one.kind.removeprefix("Parallel"), _PARALLEL["Map"])
    if limit is _Limit.SEQUENTIAL:
        return [f"`{one.kind}` works on one element at a time. Let it work on several:", *AUTO, f"    {written}"]
    calls = f"`{one.kind}` runs {one.parallelism} calls at once"
    if limit is _Limit.FIXED:
        return [f"{calls}, as the program says, and there are {format_cores(cores or 0)}:", *AUTO, f"    {written}"]
    if limit is _Limit.CORES:
        return [f"{calls} already, as many as there are cores for. {_LIGHTER}", _pool(iterators), _SERVICE]
    if limit is _Limit.TUNED:
        return [f"{calls} so far, as autotuning found; it changes that as it goes. {_LIGHTER}", _NO_ORDER]
    return [f"{calls} already. {_LIGHTER}", _NO_ORDER]


def _limit(iterators: PipelineIterators, one: IteratorUse) -> _Limit:
    cores = iterators.cpu_budget or iterators.threadpool_size
    if way_of(one.kind) is Way.COULD or one.parallelism == 1:
        return _Limit.SEQUENTIAL
    if cores is None or one.parallelism is None:
        return _Limit.UNKNOWN
    if one.parallelism >= cores:
        return _Limit.CORES
    return _Limit.TUNED if one.autotuned else _Limit.FIXED


def _pool(iterators: PipelineIterators) -> str:
    """That the pipeline's own pool is smaller than the cores it may use."""
    if not (iterators.cpu_budget and iterators.threadpool_size and iterators.threadpool_size < iterators.cpu_budget):
        return ""
    return (
        f"Its functions run on {iterators.threadpool_size} threads of {format_cores(iterators.cpu_budget)}: leave "
        "`options.threading.private_threadpool_size` at 0."
    )


def _reading(iterators: PipelineIterators, one: IteratorUse) -> list[str | RemedyPart]:
    reading = next(
        (other for other in iterators.each if other.kind == "ParallelInterleave" and _holds(other, one)), None
    )
    if reading is None:
        return [
            "It reads one file after another. Read several at once:",
            *AUTO,
            "    files.interleave(tf.data.TFRecordDataset, num_parallel_calls=AUTO)",
            _SOURCE_NEAR,
        ]
    times = f" {reading.parallelism} at once" if reading.parallelism else " several at once"
    return [
        f"It reads files{times} already: more of them if the storage can give more (`cycle_length`, "
        f"`num_parallel_calls`). {_SOURCE_NEAR}"
    ]


def _holds(outer: IteratorUse, inner: IteratorUse) -> bool:
    return inner.path[: len(outer.path)] == outer.path


def _ahead(iterators: PipelineIterators) -> list[str | RemedyPart]:
    """That nothing works ahead of the step: above every dataset that does work stands no prefetch."""
    if any(one.kind == "Prefetch" and not any(map(_works, one.path[:-1])) for one in iterators.each):
        return []
    return ["Nothing works ahead of the step: end the pipeline with", *AUTO, "    dataset.prefetch(AUTO)"]


def _works(dataset: str) -> bool:
    return way_of(dataset) is not Way.PASSES


def _cached(iterators: PipelineIterators) -> list[str | RemedyPart]:
    """That a cache is being filled: what comes before it is not done again from the second epoch on."""
    caches = [one for one in iterators.each if one.kind == "MemoryCache"]
    filling = [one for one in caches if any(_holds(one, other) and other is not one for other in iterators.each)]
    if not filling:
        return []
    times = format_times(sum(one.calls for one in filling)).lower()
    return [
        f"Its `cache()` is being filled here ({times} in these steps): what stands before it is done in the first pass "
        "over the data only. Record a later one before changing anything."
    ]
