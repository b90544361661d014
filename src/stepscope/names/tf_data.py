"""Which stage of an input pipeline an iterator of tf.data is, from the name of its event.

tf.data writes ``Iterator::Root::Prefetch::Map::TFRecord`` (tensorflow/core/data/name_utils.cc: the path of datasets
from the root, the event's own last), with an index in brackets where a dataset has several inputs and version
suffixes left out or not. A dataset that works ahead also writes ``ParallelMapProduce`` where a thread of its own
prepares an element and ``ParallelMapConsume`` where one is handed over: whoever asks it for one only waits. Which of
them read files, and which work ahead, are XProf's tables (``xplane_to_tf_data_stats``).
"""

from __future__ import annotations

from enum import StrEnum

from stepscope.regex import regex

_NAME = regex(
    r"(?:Iterator::(?:.*::)?)?(?P<dataset>[A-Za-z]+?)(?:V\d)?(?P<part>Produce|Consume)?(?:Impl)?(?:\[[^\]]*\])?$"
)
_STAGES = (
    # A parallel read or an interleave of files is reading, whatever threads do it.
    ("read", regex(r"(?:TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord|CSV|Sql|LMDB|Avro"
                        r"|(?:Memory|File)?Cache|Snapshot|Memory(?:Reader|Writer)|(?:Parallel|Legacy)*Interleave"
                        r"|MatchingFiles)")),
    # What comes from memory or from Python code.
    ("source", regex(r"Generator|FromGenerator|(?:Sparse)?TensorSlice|Tensor|Range")),
    ("decode", regex(r"ParseExample")),
    ("collate", regex(r"(?:Padded|Parallel)?Batch|Unbatch|Rebatch|Window|Zip|(?:Dense|Sparse)?ToSparseTensor")),
    ("transform", regex(r"(?:Parallel|Flat)?Map|(?:Numa)?MapAndBatch|MapAndFilter|(?:Parallel)?Filter|Scan"
                             r"|GroupBy\w+|Shuffle(?:AndRepeat)?|BucketBySequenceLength")),
    ("wait for workers", regex(r"Prefetch|PrivateThreadPool|MaxIntraOpParallelism")),
)  # fmt: skip
_AHEAD = regex(r"(?:Numa)?MapAndBatch|ParseExample|DataService|(?:Legacy)?Parallel(?:Interleave|Map|Batch|Filter)")
"""Datasets with threads of their own, beside Prefetch."""
_PASSED_THROUGH = regex(r"PrefetchProduce$")
"""What a prefetching thread does is inside."""
_HANDED_OVER = regex(r"Prefetch(?:\[[^\]]*\])?::Generator$")
"""Keras and tf.distribute take batches out of a MultiDeviceIterator so (``_PerDeviceGenerator`` in
tensorflow/python/data/ops/multi_device_iterator_ops.py); ``from_generator`` has a FlatMap around its generator."""


_PYTHON_OP = regex(r"(?:Eager)?PyFunc(?:Stateless)?")
"""What ``tf.numpy_function`` and ``tf.py_function`` are (tensorflow/core/ops/script_ops.cc)."""


def is_python_op(name: str) -> bool:
    """Whether an op's event is of one that calls a Python function.

    >>> is_python_op("EagerPyFunc:EagerPyFunc"), is_python_op("map/PyFunc:Cast")
    (True, False)
    """
    return bool(_PYTHON_OP.fullmatch(name.rpartition(":")[2]))


def stage_of_iterator(name: str) -> str | None:
    """The stage: ``read``, ``source``, ``decode``, ``transform``, ``collate`` or ``wait for workers``; else None.

    >>> stage_of_iterator("Iterator::Root::Prefetch::ForeverRepeat[0]::MapAndBatch::TensorSlice")
    'source'
    >>> stage_of_iterator("Iterator::Root::Prefetch"), stage_of_iterator("aten::copy_")
    ('wait for workers', None)
    """
    match = _NAME.match(name[:2_048])
    if match is None or not (is_iterator(name) or match["part"]) or _PASSED_THROUGH.match(name):
        return None
    if match["part"] == "Consume" or _HANDED_OVER.search(name):
        return "wait for workers"
    if not match["part"] and _AHEAD.fullmatch(match["dataset"]):
        return "wait for workers"
    return next((stage for stage, pattern in _STAGES if pattern.fullmatch(match["dataset"])), None)


def is_iterator(name: str) -> bool:
    """Whether an iterator of tf.data is asked for an element."""
    return name.startswith("Iterator::")


def is_of_pipeline(name: str) -> bool:
    """Whether a range is tf.data's own: what it hands to other threads is work of the pipeline.

    >>> is_of_pipeline("MapAndBatchProduce"), is_of_pipeline("FunctionRun")
    (True, False)
    """
    return is_iterator(name) or stage_of_iterator(name) is not None or _PASSED_THROUGH.match(name) is not None


def is_own_thread(name: str) -> bool:
    """Whether a thread is of tf.data's own pools.

    >>> is_own_thread("tf_data_private_threadpool/-8134188695565007708"), is_own_thread("tf_Compute/17")
    (True, False)
    """
    return name.startswith("tf_data_")


def is_iterator_thread(name: str) -> bool:
    """Whether a thread of tf.data works for one iterator, unlike those of a pool that run functions for all.

    >>> is_iterator_thread("tf_data_iterator_resource/4"), is_iterator_thread("tf_data_private_threadpool/4")
    (True, False)
    """
    return is_own_thread(name) and "threadpool" not in name


def dataset_of(name: str) -> str:
    """The dataset that an iterator is of, the last of its path, without version and index.

    >>> dataset_of("Iterator::Root::Prefetch::MemoryCacheImpl::ParallelMapV2"), dataset_of("Iterator::Root")
    ('ParallelMap', 'Root')
    """
    match = _NAME.match(name[:2_048])
    return match["dataset"] if match else name.rpartition("::")[2]


def pipeline_path(name: str) -> tuple[str, ...]:
    """The datasets from the root to an iterator's own. Which of the elements that are datasets themselves it works on
    (files in turn, epochs) is left out, which input of several (a zip) is kept.

    >>> pipeline_path("Iterator::Root::ParallelInterleaveV4[17]::TFRecord")
    ('Root', 'ParallelInterleaveV4', 'TFRecord')
    >>> pipeline_path("Iterator::Root::Zip[1]::MemoryCacheImpl::Map")
    ('Root', 'Zip[1]', 'MemoryCache', 'Map')
    """
    parts = name.removeprefix("Iterator::")[:2_048].split("::")
    parts = [part.partition("[")[0] if _IN_TURN.match(part) else part for part in parts]
    return tuple(part.removesuffix("Impl") for part in parts)


_IN_TURN = regex(r"\w*(?:Interleave|FlatMap|Repeat)(?:V\d)?\[")


def is_inner(name: str) -> bool:
    """Whether it is the inner part of an iterator that is asked under another name around it.

    >>> is_inner("Iterator::Root::MemoryCacheImpl"), is_inner("Iterator::Root::MemoryCache")
    (True, False)
    """
    return is_iterator(name) and name.endswith("Impl")


class Way(StrEnum):
    """How an iterator makes its elements: what it takes to make them faster."""

    PARALLEL = "parallel"
    """Calls a function for several elements at once."""
    COULD = "could"
    """Works on one element at a time and has a form that works on several."""
    ALONE = "alone"
    """Works on one element at a time and has no other form."""
    READS = "reads"
    """Reads files."""
    PYTHON = "python"
    """Elements come from Python code."""
    SERVICE = "service"
    """Elements come from other hosts."""
    PASSES = "passes"
    """Hands on what others made, or keeps it."""


_WAYS = (
    (Way.PARALLEL, regex(r"(?:Numa)?MapAndBatch|Parallel(?:Map|Batch|Interleave|Filter)|LegacyParallelInterleave"
                              r"|ParseExample")),
    (Way.COULD, regex(r"Map|Batch|Interleave|FlatMap")),
    (Way.ALONE, regex(r"Filter|Unbatch|Rebatch|PaddedBatch|Scan|GroupBy\w+|Window|Shuffle(?:AndRepeat)?"
                           r"|BucketBySequenceLength")),
    (Way.READS, regex(r"TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord|CSV|Sql|LMDB|Avro"
                           r"|Snapshot|File(?:Cache|Reader)")),
    (Way.PYTHON, regex(r"Generator|FromGenerator")),
    (Way.SERVICE, regex(r"DataService")),
)  # fmt: skip


def way_of(dataset: str) -> Way:
    """How the iterator of a dataset works, with or without its version.

    >>> way_of("ParallelMapV2"), way_of("Batch"), way_of("Prefetch")
    (<Way.PARALLEL: 'parallel'>, <Way.COULD: 'could'>, <Way.PASSES: 'passes'>)
    """
    kind = dataset_of("Iterator::" + dataset)
    return next((way for way, pattern in _WAYS if pattern.fullmatch(kind)), Way.PASSES)
