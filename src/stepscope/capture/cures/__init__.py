"""Cures that ``stepscope try`` puts into a job: one explicit list."""

from __future__ import annotations

from typing import Any

from .compiled import COMPILE, CUDA_GRAPHS
from .cure import ANY, Applying, Cure
from .environment import COMPILATION_CACHE, EXPANDABLE, LATENCY_HIDING, PRIVATE_THREADS
from .garbage import GARBAGE
from .gradients import BUCKET_SIZE, NO_SYNC, SET_TO_NONE, STATIC_GRAPH
from .half_precision import FP16
from .jax_donation import DONATION
from .jax_jit import JIT
from .keras import JIT_COMPILE, KERAS_BF16, STEPS_PER_EXECUTION
from .layout import CHANNELS_LAST, CUDNN_BENCHMARK
from .optimizers import FOREACH_OPTIMIZER, FUSED_OPTIMIZER
from .persistent_workers import PERSISTENT_WORKERS
from .pinned_memory import PINNED_MEMORY
from .precision import BF16, TF32
from .prefetch import PREFETCH
from .tf_data import PARALLEL_MAP, PREFETCH_AHEAD
from .tf_function import TF_JIT, TF_THREADS
from .threads import INTEROP_THREADS, THREADS
from .workers import WORKERS

CURES: tuple[Cure, ...] = (
    WORKERS, PERSISTENT_WORKERS, PREFETCH, PINNED_MEMORY, PREFETCH_AHEAD, PARALLEL_MAP, JIT, STEPS_PER_EXECUTION,
    JIT_COMPILE, TF_JIT, DONATION, TF_THREADS, KERAS_BF16, LATENCY_HIDING, COMPILATION_CACHE, GARBAGE, THREADS,
    INTEROP_THREADS, COMPILE, CUDA_GRAPHS, FUSED_OPTIMIZER, FOREACH_OPTIMIZER, SET_TO_NONE, BF16, FP16, TF32,
    CHANNELS_LAST, CUDNN_BENCHMARK, NO_SYNC, BUCKET_SIZE, STATIC_GRAPH, EXPANDABLE, PRIVATE_THREADS,
)  # fmt: skip
"""In the order in which they are tried: what the job waits for first, then what it computes."""

BY_NAME = {cure.name: cure for cure in CURES}


def fitting(framework: str | None, *, has_device: bool, of_keras: bool = False) -> tuple[Cure, ...]:
    """Those that can be put into a job of a framework, as reports name it, in their order; those of Keras where that
    makes the steps, whatever computes them."""
    return tuple(
        cure
        for cure in CURES
        if (of_keras if cure.module == "keras" else cure.framework in (framework, None))
        and (has_device or not cure.device_only)
    )


def parsed(text: str) -> tuple[Cure, int | None]:
    """A cure and its number, of ``workers=2``. Raises ValueError, in words, where there is none such."""
    name, _, number = text.partition("=")
    cure = BY_NAME.get(name)
    if cure is None:
        raise ValueError(f"there is no cure {name!r}")
    if number and (cure.values is None or not number.isdecimal()):
        raise ValueError(f"{text!r}: {name} takes {'a whole number' if cure.values else 'no number'}")
    return cure, int(number) if number else None


def into(recorder: Any, module_name: str, module: Any) -> None:
    """Put the cures that the options ask for into a framework that was just imported."""
    for spec in reversed(recorder.options.cures):  # The first stands outermost: the others see what it changed.
        cure, value = parsed(spec)
        told = recorder.manifest.facts.setdefault("cures", {})
        if cure.into is not None and spec not in told and cure.module in (module_name, ANY):
            cure.into(Applying(told.setdefault(spec, {}), value, recorder.on_edge), module, recorder)
