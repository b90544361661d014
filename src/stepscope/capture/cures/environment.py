"""What is set before the job starts."""

from __future__ import annotations

from .cure import Cure, Shell

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
    environment=lambda _: {"TF_GPU_THREAD_MODE": "gpu_private"},
    device_only=True,
    patch=lambda _: (Shell("TF_GPU_THREAD_MODE", "gpu_private"),),
)
