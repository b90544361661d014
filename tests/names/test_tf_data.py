"""Iterators of tf.data: which stage of the pipeline each is."""

from __future__ import annotations

import pytest

from stepscope.names.tf_data import stage_of_iterator

_ROOT = "Iterator::Root::Prefetch::ForeverRepeat[0]::"


@pytest.mark.parametrize(
    ("stage", "names"),
    [
        ("read", "TFRecord FlatMap[0]::TFRecord TextLine FixedLengthRecordV2 "
                 "MemoryCache MemoryCacheImpl BatchV2::MemoryCacheImpl MemoryReader Interleave"),
        ("source", "Generator FlatMap[0]::Generator Range TensorSlice BatchV2::TensorSlice"),
        ("collate", "Batch BatchV2 PaddedBatchV2 Rebatch RebatchV2 Zip Unbatch"),
        ("transform", "Map Map::Map FlatMap Shuffle Filter"),
        ("wait for workers", "Prefetch BatchV2::Prefetch"),
        # Threads of their own do the work: who asks for an element waits.
        ("wait for workers", "ParallelMapV2 MapAndBatch ParallelBatch ParallelInterleaveV4 ParseExampleV2 "
                             "DataServiceV4"),
        (None, "ForeverRepeat FiniteTake Options Model"),
    ],
)  # fmt: skip
def test_the_last_dataset_of_the_path_tells_the_stage(stage: str | None, names: str):
    for name in names.split():
        assert stage_of_iterator(_ROOT + name) == stage, name


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("ParallelMapProduce", "transform"),
        ("MapAndBatchProduce", "transform"),
        ("ParallelInterleaveProduce", "read"),
        ("ParallelBatchProduce", "collate"),
        ("ParseExampleProduce", "decode"),
        ("PrefetchConsume", "wait for workers"),
        ("Iterator::Root::Prefetch::Generator", "wait for workers"),
        ("PrefetchProduce", None),
        ("Iterator::Root", None),
        ("Map", None),
        ("aten::map", None),
        ("", None),
        ("Iterator::" + "A" * 100_000, None),
    ],
)
def test_handing_over_is_waiting_and_other_names_are_none(name: str, stage: str | None):
    assert stage_of_iterator(name) == stage
