"""Steps of TensorFlow jobs on a simulated GPU (``tests.kit.tf_gpu``), as the statements' tests need them."""

from __future__ import annotations

from collections.abc import Callable

from tests.guides.shown import Shown, shown
from tests.kit.tf_gpu import V100, TfGpuJob
from tests.kit.xplanes import Stats

GEMM = "volta_sgemm_128x64_nn"
HALF_GEMM = "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"
MATMUL = "model/dense/MatMul:MatMul"
EIGEN = (
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<Eigen::Tensor"
    "<float, 1, 1, int>, 16, Eigen::MakePointer>, Eigen::TensorCwiseBinaryOp<Eigen::internal::scalar_{}_op<float, "
    "float>> const> const, Eigen::GpuDevice>, int>(Eigen::TensorEvaluator<Eigen::GpuDevice>, int)"
)
NCCL = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"
A100: Stats = {**V100, "compute_cap_major": 8, "gpu_device_name": "NVIDIA A100-SXM4-80GB"}

Step = Callable[[TfGpuJob], None]
"""Draws what one step does."""


def keras(*tasks: Step, steps: int = 6, device: Stats = V100, devices: int = 1, waits: bool = True) -> Shown:
    """Batches of ``fit``, each a call of a ``tf.function``: tasks of an executor, each of which begins when the devices
    have done what the one before gave them; a batch that ``waits`` ends so, too."""

    def call(job: TfGpuJob) -> None:
        with job.function():
            for number, task in enumerate(tasks):
                with job.executing():
                    task(job)
                if waits or number + 1 < len(tasks):
                    drained(job)

    return marked(call, steps=steps, device=device, devices=devices)


def drained(job: TfGpuJob) -> None:
    """The graph goes on when every stream is done."""
    for device, stream in list(job._free):
        job.wait_for_event(device, stream)


def marked(step: Step, *, steps: int = 6, device: Stats = V100, devices: int = 1) -> Shown:
    """Marked steps; ``step`` begins on Python's thread."""
    job = TfGpuJob(device, devices)
    for number in range(10, 10 + steps):
        with job.step(number):
            step(job)
    return shown(job.data(), "host.xplane.pb")


def per_step(found: Shown) -> int:
    """Mean nanoseconds of a step."""
    mean: int = found.summary["step_time_ns"]["mean"]
    return mean
