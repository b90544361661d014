"""Which stage of an input pipeline an iterator of tf.data is, from the name of its event.

tf.data writes ``Iterator::Root::Prefetch::Map::TFRecord`` (tensorflow/core/data/name_utils.cc: the path of datasets
from the root, the event's own last), with an index in brackets where a dataset has several inputs and version
suffixes left out or not. A parallel dataset also writes ``ParallelMapProduce`` where a thread of its own prepares an
element and ``ParallelMapConsume`` where one is handed over. Which of them read files is XProf's table
(``xplane_to_tf_data_stats``).
"""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?:Iterator::(?:.*::)?)?(?P<dataset>[A-Za-z]+?)(?:V\d)?(?P<part>Produce|Consume)?(?:Impl)?(?:\[[^\]]*\])?$"
)
_STAGES = (
    # A parallel read or an interleave of files is reading, whatever threads do it.
    ("read", re.compile(r"(?:TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord|CSV|Sql|LMDB|Avro"
                        r"|(?:Memory|File)?Cache|Snapshot|Memory(?:Reader|Writer)|(?:Parallel|Legacy)*Interleave"
                        r"|MatchingFiles)")),
    # What comes from memory or from Python code.
    ("source", re.compile(r"Generator|FromGenerator|(?:Sparse)?TensorSlice|Tensor|Range")),
    ("decode", re.compile(r"ParseExample")),
    ("collate", re.compile(r"(?:Padded|Parallel)?Batch|Unbatch|Rebatch|Window|Zip|(?:Dense|Sparse)?ToSparseTensor")),
    ("transform", re.compile(r"(?:Parallel|Flat)?Map|(?:Numa)?MapAndBatch|MapAndFilter|(?:Parallel)?Filter|Scan"
                             r"|GroupBy\w+|Shuffle(?:AndRepeat)?|BucketBySequenceLength")),
    ("wait for workers", re.compile(r"Prefetch|PrivateThreadPool|MaxIntraOpParallelism")),
)
_PASSED_THROUGH = re.compile(r"PrefetchProduce$")
"""What a prefetching thread does is inside."""
_HANDED_OVER = re.compile(r"Prefetch(?:\[[^\]]*\])?::Generator$")
"""Keras and tf.distribute take batches out of a MultiDeviceIterator so (``_PerDeviceGenerator`` in
tensorflow/python/data/ops/multi_device_iterator_ops.py); ``from_generator`` has a FlatMap around its generator."""


def stage_of_iterator(name: str) -> str | None:
    """The stage: ``read``, ``source``, ``decode``, ``transform``, ``collate`` or ``wait for workers``; else None.

    >>> stage_of_iterator("Iterator::Root::Prefetch::ForeverRepeat[0]::MapAndBatch::TensorSlice")
    'source'
    >>> stage_of_iterator("Iterator::Root::Prefetch"), stage_of_iterator("aten::copy_")
    ('wait for workers', None)
    """
    match = _NAME.match(name[:2_048])
    if match is None or not (name.startswith("Iterator::") or match["part"]) or _PASSED_THROUGH.match(name):
        return None
    if match["part"] == "Consume" or _HANDED_OVER.search(name):
        return "wait for workers"
    return next((stage for stage, pattern in _STAGES if pattern.fullmatch(match["dataset"])), None)
