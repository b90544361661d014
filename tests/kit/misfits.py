"""Words that do not fit every program: what says that advice is of another kind of job, version or device."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from stepscope.analysis.workload import Purpose, Workload

Wrong = Callable[[Workload], bool]


@dataclass(frozen=True)
class Word:
    """A word, for which programs it is wrong, and why."""

    pattern: re.Pattern[str]
    wrong_for: Wrong
    why: str


def _not_training(workload: Workload) -> bool:
    return workload.purpose in (Purpose.INFERENCE, Purpose.SERVING, Purpose.CAPTURE)


def _is(*purposes: Purpose) -> Wrong:
    return lambda workload: workload.purpose in purposes


def _before(*version: int, framework: str = "PyTorch") -> Wrong:
    return lambda workload: (
        workload.framework == framework and workload.newest is not None and workload.newest < version
    )


def _not_of(*vendors: str) -> Wrong:
    return lambda workload: bool(workload.vendors) and not workload.vendors & set(vendors)


def _not_with(*frameworks: str) -> Wrong:
    return lambda workload: workload.framework is not None and workload.framework not in frameworks


_NOTHING_LEARNS = "nothing is learnt there"
MISFITS = tuple(
    Word(re.compile(pattern), wrong, why)
    for pattern, wrong, why in (
        (r"(?i)\bgradients?\b|\bgrads?\b", _not_training, _NOTHING_LEARNS),
        (r"(?i)(?<!config\.)\boptimizers?\b|\bzero_grad\b", _not_training, _NOTHING_LEARNS),
        (r"(?i)\bloss(?:es|_fn)?\b|GradScaler", _not_training, _NOTHING_LEARNS),
        (r"(?i)\bbackward\b|\bautograd\b", _not_training, _NOTHING_LEARNS),
        (r"(?i)\blearning rates?\b|\bconverge|\blearns?\b|\bepochs?\b", _not_training, _NOTHING_LEARNS),
        (r"(?i)(?<!\.)\btrain(?:s|ing|_step|ed)?\b|\baugment", _not_training, _NOTHING_LEARNS),
        (r"DistributedDataParallel|\bDDP\b|\bno_sync\b|activation checkpointing", _not_training, _NOTHING_LEARNS),
        (r"DataLoader|\bdata loader\b", _is(Purpose.SERVING, Purpose.CAPTURE), "requests come from no data set"),
        (r"reduce-overhead|CUDAGraph|`torch\.cuda\.graph", _is(Purpose.CAPTURE), "it captures graphs already"),
        (r"torch\.compile|torch\._dynamo|fullgraph", _before(2, 0), "new in 2.0"),
        (r"TORCH_LOGS", _before(2, 1), "new in 2.1"),
        (r"fused=True", _before(2, 0), "for most optimizers new in 2.0"),
        (r"foreach=True", _before(1, 12), "new in 1.12"),
        (r"set_float32_matmul_precision", _before(1, 12), "new in 1.12"),
        (r"torch\.autocast|torch\.cuda\.graph|CUDAGraph|torchrun", _before(1, 10), "new in 1.10"),
        (r"expandable_segments", _before(2, 1), "new in 2.1"),
        (r"async_save|torch\.amp\.GradScaler", _before(2, 3), "new in 2.3"),
        (r"torch\.amp\.custom_fwd|distributed\.pipelining|rms_norm", _before(2, 4), "new in 2.4"),
        (r"nonzero_static", _before(2, 6), "on a GPU new in 2.6"),
        (r"scaled_dot_product_attention", _before(2, 0), "new in 2.0"),
        (r"steps_per_execution", _before(2, 4, framework="TensorFlow"), "new in 2.4"),
        (r"jit_compile", _before(2, 5, framework="TensorFlow"), "new in 2.5"),
        (
            r"nvidia-smi|CUPTI|NVreg|TF32|allow_tf32|nccl-tests|PYTORCH_CUDA_ALLOC|CUDA_VISIBLE|expandable_seg",
            _not_of("NVIDIA"),
            "NVIDIA's alone",
        ),
        (r"amd-smi|rccl-tests|PYTORCH_HIP_ALLOC|HIP_VISIBLE|rocm-smi", _not_of("AMD"), "AMD's alone"),
        (r"torch\.cuda\b(?!\.amp)|CUDAGraph", _not_of("NVIDIA", "AMD"), "does nothing on other devices"),
        (r"xla_gpu", _not_of("NVIDIA", "AMD"), "XLA knows it for GPUs alone"),
        (r"ProfilerActivity\.XPU", _not_of("Intel"), "Intel's alone"),
        (r"(?<!\w)torch\.(?!_xla)|\baten::", _not_with("PyTorch", "PyTorch/XLA"), "another framework's"),
        (r"\bjax\.|\bjnp\.|`?\blax\.", _not_with("JAX"), "another framework's"),
        (r"(?<!\w)tf\.|\bkeras\.|model\.compile\(", _not_with("TensorFlow"), "another framework's"),
        (r"\bxm\.|\bxp\.|torch_xla|PT_XLA", _not_with("PyTorch/XLA"), "another framework's"),
    )
)


def misfits(text: str, workload: Workload, *, allowed: str = "") -> list[str]:
    """What in a text does not fit a program, with the reason; ``allowed`` matches words that fit all the same."""
    found = []
    for word in MISFITS:
        if word.wrong_for(workload):
            hits = {match[0] for match in word.pattern.finditer(text)}
            found += [f"{hit!r}: {word.why}" for hit in sorted(hits) if not (allowed and re.search(allowed, hit))]
    return found
