"""Where the real traces are: files of other people's jobs, never part of this repository.

The folder is named by STEPSCOPE_TRACES, else it is ``../shared/traces`` beside the repository. Tests that
need one are marked ``real`` and skip, saying why, where it is absent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def traces_folder() -> Path:
    """The folder of real traces, which may not exist."""
    named = os.environ.get("STEPSCOPE_TRACES")
    return Path(named) if named else REPOSITORY.parent / "shared" / "traces"


def real_trace(name: str) -> Path:
    """The real trace of that name (``kineto/h100_bert_small.json.gz``); skips the test where it is absent."""
    path = traces_folder() / name
    if not path.exists():
        pytest.skip(f"real trace {name} is not in {traces_folder()} (set STEPSCOPE_TRACES)")
    return path


KINETO_NAMES = (
    "a100_alexnet_sync",
    "a100_event_sync",
    "a100_event_sync_multi_stream",
    "a100_rank0_of_128",
    "a100_rank1_of_128",
    "b200_eager_rank0_of_8",
    "cpu_only_no_device",
    "cpu_only_rank34_of_300",
    "h100_bert_small",
    "h100_qwen05b",
    "mi210_gpu_only",
    "mi300_resnet_checkpointing_rank0_of_8",
    "mi300_vllm_decode",
    "mi300_vllm_prefilldecode",
    "mtia_inference",
    "torch_compile_triton",
    "v100_resnet50_workers0",
    "v100_two_ranks_rank1",
)

LARGE = (
    "a100_alexnet_sync",
    "b200_eager_rank0_of_8",
    "mi300_resnet_checkpointing_rank0_of_8",
    "v100_resnet50_workers0",
    "v100_two_ranks_rank1",
)
"""Take more time than all others together: tests over all real traces read them only where slow tests run."""


def marks_of(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of a test over a real trace of that name."""
    return (pytest.mark.real, pytest.mark.slow) if name in LARGE else (pytest.mark.real,)


KINDS = (
    "a100_event_sync",
    "a100_rank0_of_128",
    "cpu_only_no_device",
    "h100_bert_small",
    "mi300_vllm_decode",
    "mtia_inference",
)
"""One of each kind of device and job: what every document must be is looked at of these each time."""

OF_KINDS = [
    pytest.param(
        f"kineto/{name}.json.gz", id=name, marks=[pytest.mark.real, *([] if name in KINDS else [pytest.mark.slow])]
    )
    for name in KINETO_NAMES
]
"""As ``KINETO_TRACES``, of which fewer are read each time."""

KINETO_TRACES = [pytest.param(f"kineto/{name}.json.gz", id=name, marks=marks_of(name)) for name in KINETO_NAMES]
"""For ``@pytest.mark.parametrize("name", KINETO_TRACES)``.

Pass the name to :func:`real_trace`, which skips.
"""
