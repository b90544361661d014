from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.limits import MIXED_SHARE
from stepscope.diagnosis.matrix_work import MatrixAdvice, MatrixWork, is_wide, matrix_finding, matrix_works, named
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_ns, format_share

RULE = Rule(
    id="amp_partial",
    scope="device",
    pages=("kernels",),
    finds="Mixed precision is on, but some matrix work still runs in 32 bits.",
    statement="""\
At least `MIXED_SHARE` of the time of matrix kernels of known precision is in 16 bits or fewer, and others take fp32 or
TF32 operands. Where none is in 16 bits mixed precision is off, which is `tensor_cores_unused` or `low_precision_share`.
The saving is the ratio of the device's peaks, and where bytes are known no more than memory allows.""",
    shared_limits=("MIXED_SHARE",),
    needs="Names of kernels; shapes, for the saving.",
    cure="A step whose remaining matrix kernels run in 16 bits.",
    example="A custom layer that casts to fp32 inside `torch.autocast`.",
    tried_for=("PyTorch",),
)

_LEFT_OUT: Remedies = {
    PYTORCH: (
        """\
Find what keeps these ops out of autocast: they stand outside of its `with`, or get fp32 tensors where the others got
cast ones (`baddbmm`, in-place and `out=` calls are not cast).""",
        RemedyPart(
            """\
Or they hide in a custom autograd function:
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.bfloat16)""",
            purposes=TRAINS,
            since=(2, 4),
        ),
        RemedyPart(
            """\
Or they hide in a custom autograd function:
    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float16)""",
            purposes=TRAINS,
            before=(2, 4),
        ),
    ),
    JAX: """\
Cast what reaches these products: one fp32 operand makes the product fp32 (`x.astype(jnp.bfloat16)`, Flax: `dtype=` of
each module).""",
    TENSORFLOW: """\
Give these layers the policy too: `dtype="float32"` on a layer, and ops outside of Keras layers, stay in fp32.""",
    None: "Find which operands are still in fp32: one is enough to keep a product in 32 bits.",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    return [_finding(work) for work in matrix_works(facts) if work.is_mixed and work.uses(is_wide)]


def _finding(work: MatrixWork) -> Finding:
    uses = work.uses(is_wide)
    low = work.cost(work.uses(lambda kernel: kernel.traits.eligible and kernel.precision is not None)) or 1
    advice = MatrixAdvice(
        rule=RULE.id,
        title="Some matrix work stays outside of mixed precision",
        why=(
            f"{format_share(1 - work.cost(uses) / low)} of matrix work is in 16 bits or fewer, at least "
            f"{format_share(MIXED_SHARE)}: mixed precision is on. {format_ns(work.cost(uses))} per step still run in "
            f"{uses[0].precision}: {named(uses)}."
        ),
        fix=remedy(_LEFT_OUT, work.facts.workload),
    )
    return matrix_finding(work, is_wide, advice, target=work.sixteen_bits)
