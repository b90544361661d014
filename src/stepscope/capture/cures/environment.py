"""What is set before the job starts."""

from __future__ import annotations

import os

from .cure import ByHand, Cure, Shell

EXPANDABLE = Cure(
    name="expandable-segments",
    title="an allocator whose blocks grow",
    answers=("allocator_retries", "allocator_bound"),
    promised=("allocator_retries",),
    sets="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    may_break="memory shared with other processes by handle",
    undone="leave the variable out",
    module=None,
    environment=lambda _: {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    device_only=True,
    patch=lambda _: (Shell("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),),
)

PRIVATE_THREADS = Cure(
    name="gpu-private-threads",
    title="threads of TensorFlow that launch for one GPU alone",
    answers=("host_contention", "launch_bound"),
    sets="TF_GPU_THREAD_MODE=gpu_private",
    may_break="nothing; two threads more for each GPU",
    undone="leave the variable out",
    module=None,
    framework="TensorFlow",
    environment=lambda _: {"TF_GPU_THREAD_MODE": "gpu_private"},
    device_only=True,
    patch=lambda _: (Shell("TF_GPU_THREAD_MODE", "gpu_private"),),
)


def _with_flag(flag: str) -> dict[str, str]:
    """XLA's flags as they are, and one more."""
    return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()}


_LATENCY_HIDING = "--xla_gpu_enable_latency_hiding_scheduler=true"

LATENCY_HIDING = Cure(
    name="xla-latency-hiding",
    title="XLA's schedule that hides exchanges behind computation",
    answers=("exposed_collective", "exposed_copy"),
    sets=f"XLA_FLAGS={_LATENCY_HIDING}",
    may_break="memory: what is sent early is held longer",
    undone="leave the flag out",
    module=None,
    framework="JAX",
    environment=lambda _: _with_flag(_LATENCY_HIDING),
    device_only=True,
    patch=lambda _: (Shell("XLA_FLAGS", f'"$XLA_FLAGS {_LATENCY_HIDING}"'),),
)


def _compilations() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "jax")


COMPILATION_CACHE = Cure(
    name="jax-compilation-cache",
    title="compiled programs kept on disk for the next run",
    answers=("recompilation",),
    sets="JAX_COMPILATION_CACHE_DIR=~/.cache/jax, for programs that compile in any time",
    may_break="nothing; the folder grows",
    undone="leave the variables out",
    module=None,
    framework="JAX",
    environment=lambda _: {
        "JAX_COMPILATION_CACHE_DIR": _compilations(),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    },
    patch=lambda _: (
        ByHand(
            "export JAX_COMPILATION_CACHE_DIR=~/.cache/jax\n"
            "export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0\n"
            "export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1"
        ),
    ),
)
