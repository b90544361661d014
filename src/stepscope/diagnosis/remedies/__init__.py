"""What to write instead, in the words of the framework a profile comes from, and when it applies.

Where a version is asked for, it is the first that has what the text names, by that framework's release notes.
"""

from __future__ import annotations

from stepscope.diagnosis.remedies.data import (
    COPY_D2H,
    COPY_PAGEABLE,
    COPY_PINNED,
    INFEED,
    LOOP_SYNC,
    SYNC_CALL,
    TRANSFERS,
)
from stepscope.diagnosis.remedies.fitting import (
    AMD,
    INFERS,
    INTEL,
    JAX,
    NVIDIA,
    PYTORCH,
    RUNS,
    SERVES,
    TENSORFLOW,
    TORCH_XLA,
    TRAINS,
    Part,
    Remedies,
    Text,
    remedy,
    sentence,
)
from stepscope.diagnosis.remedies.host import (
    ALLOCATIONS,
    ASK_ONCE,
    CHECKPOINTS,
    CORES,
    GARBAGE,
    HOST_WORK,
    ON_DEVICE,
    SEGMENTS,
)
from stepscope.diagnosis.remedies.launching import (
    COMPILE_ALL,
    GIVING_OPS,
    GRAPH_CUT,
    LARGER_BATCH,
    LAUNCH,
    LAZY_GRAPH,
    OPTIMIZER,
    RECOMPILED,
    ZERO_GRAD,
)
from stepscope.diagnosis.remedies.numbers import (
    LOSS_SCALING,
    SIXTEEN_BITS,
    TF32,
)
from stepscope.diagnosis.remedies.once import CAPTURES, CODE_LOADING

__all__ = [
    "ALLOCATIONS",
    "AMD",
    "ASK_ONCE",
    "CAPTURES",
    "CHECKPOINTS",
    "CODE_LOADING",
    "COMPILE_ALL",
    "COPY_D2H",
    "COPY_PAGEABLE",
    "COPY_PINNED",
    "CORES",
    "GARBAGE",
    "GIVING_OPS",
    "GRAPH_CUT",
    "HOST_WORK",
    "INFEED",
    "INFERS",
    "INTEL",
    "JAX",
    "LARGER_BATCH",
    "LAUNCH",
    "LAZY_GRAPH",
    "LOOP_SYNC",
    "LOSS_SCALING",
    "NVIDIA",
    "ON_DEVICE",
    "OPTIMIZER",
    "PYTORCH",
    "RECOMPILED",
    "RUNS",
    "SEGMENTS",
    "SERVES",
    "SIXTEEN_BITS",
    "SYNC_CALL",
    "TENSORFLOW",
    "TF32",
    "TORCH_XLA",
    "TRAINS",
    "TRANSFERS",
    "ZERO_GRAD",
    "Part",
    "Remedies",
    "Text",
    "remedy",
    "sentence",
]
