from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.matrix_work import (
    Kernel,
    MatrixAdvice,
    MatrixWork,
    beside_units,
    matrix_finding,
    matrix_works,
    named,
)
from stepscope.diagnosis.remedies import JAX, NVIDIA, PYTORCH, TENSORFLOW, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.names.kernels import Family
from stepscope.units import format_ns

RULE = Rule(
    id="tf32_off",
    scope="device",
    pages=("kernels",),
    finds="Fp32 matrix products on ordinary lanes of a device whose tensor cores take TF32.",
    statement="""\
Kernels of matrix multiplications or convolutions compute in fp32 and certainly (by name) do not use tensor cores,
although the device (NVIDIA from Ampere on) multiplies TF32 faster than fp32. TF32 keeps fp32's range and storage and
rounds operands to 10 bits of mantissa: it changes one setting, where 16 bits (`tensor_cores_unused`) gain more. The
saving is the ratio of the two peaks, and where bytes are known no more than memory allows.""",
    needs="Names of kernels; shapes, for the saving.",
    cure="A step whose fp32 products run as TF32.",
    example="`torch.backends.cuda.matmul.allow_tf32 = False`, PyTorch's default.",
    tried_for=("PyTorch", "TensorFlow"),
)

_SETTING: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Let the tensor cores take fp32 products (convolutions do so by default, matrix multiplications do not):
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True""",
            since=(1, 12),
            vendors=NVIDIA,
        ),
        RemedyPart(
            """\
Let the tensor cores take fp32 products, as is the default from 1.7 to 1.11:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True""",
            before=(1, 12),
            vendors=NVIDIA,
        ),
    ),
    JAX: (
        RemedyPart(
            """\
Let the tensor cores take fp32 products:
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")""",
            vendors=NVIDIA,
        ),
    ),
    TENSORFLOW: (
        RemedyPart(
            """\
Let the tensor cores take fp32 products, as is the default:
    tf.config.experimental.enable_tensor_float_32_execution(True)""",
            since=(2, 4),
            vendors=NVIDIA,
        ),
    ),
    None: (RemedyPart("Let the tensor cores take fp32 products (TF32).", vendors=NVIDIA),),
}
"""The rule speaks of NVIDIA's devices alone."""


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    return [_finding(work) for work in matrix_works(facts) if _gains(work) and work.uses(_is_plain)]


def _is_plain(kernel: Kernel) -> bool:
    family = kernel.traits.family
    return beside_units(kernel) and kernel.precision == "fp32" and family in (Family.GEMM, Family.CONVOLUTION)


def _gains(work: MatrixWork) -> bool:
    """Whether TF32 is faster than fp32: on GeForce boards it is not."""
    peaks = work.peaks
    if peaks is None or peaks.vendor != "NVIDIA":
        return False
    return (peaks.matrix_flops("tf32") or 0) > (peaks.vector_flops("fp32") or 0)


def _finding(work: MatrixWork) -> Finding:
    uses = work.uses(_is_plain)
    advice = MatrixAdvice(
        rule=RULE.id,
        title="Matrix products in fp32 do not use TF32",
        why=f"{format_ns(work.cost(uses))} per step run in fp32 kernels beside the tensor cores: {named(uses)}.",
        fix=remedy(_SETTING, work.facts.workload),
    )
    return matrix_finding(work, _is_plain, advice, target="tf32")
