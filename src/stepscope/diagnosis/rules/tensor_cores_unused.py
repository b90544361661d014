from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import LOW_PRECISION
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.matrix_work import (
    Kernel,
    MatrixAdvice,
    MatrixWork,
    beside_units,
    is_wide,
    matrix_finding,
    matrix_works,
    named,
    sixteen_bits,
)
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_ns

RULE = Rule(
    id="tensor_cores_unused",
    scope="device",
    pages=("kernels",),
    finds="Matrix work that runs on slower units than the device has for it.",
    statement="""\
Kernels of matrix multiplications, convolutions or attention certainly (by name) do not use the device's tensor cores;
unknown kernels never count. Where mixed precision is on, what is left in 32 bits is `amp_partial`. The saving is the
ratio of the device's peaks (`hardware`), which is the most the change can gain, and, where bytes are known, no more
than memory allows (`analysis/narrower.py`); without known peaks it is not determined.""",
    needs="Names of kernels; shapes, for the saving.",
    cure="A step whose matrix kernels run at the tensor cores' peak.",
    example="fp16 products with sizes that the library gives to ordinary lanes.",
    tried_for=("PyTorch", "TensorFlow"),
)

_FIX_DIMS = "For 16-bit kernels that miss them, make sizes multiples of 8 (fp16, bf16) or 16 (fp8)."
_FIX_NARROW = (
    "They are narrow already: make sizes and strides multiples of 8 (fp16, bf16) or 16 (fp8), and keep tensors "
    "contiguous."
)


def find(facts: Facts) -> list[Finding]:
    """At most one finding per device."""
    works = [(work, unused_of(work)) for work in matrix_works(facts)]
    return [_finding(work, unused) for work, unused in works if work.uses(unused)]


def unused_of(work: MatrixWork) -> Callable[[Kernel], bool]:
    """Which kernels are beside the matrix units: in mixed precision those in 32 bits have a rule of their own."""
    return _is_unused_narrow if work.is_mixed else beside_units


def _is_unused_narrow(kernel: Kernel) -> bool:
    return beside_units(kernel) and not is_wide(kernel)


def _finding(work: MatrixWork, chosen: Callable[[Kernel], bool]) -> Finding:
    uses = work.uses(chosen)
    narrow = [use.precision in LOW_PRECISION for use in uses]
    fixes = [] if all(narrow) else [sixteen_bits(work, uses)]
    fixes += [_FIX_NARROW if all(narrow) else _FIX_DIMS] if any(narrow) else []
    advice = MatrixAdvice(
        rule=RULE.id,
        title=f"Matrix work does not use the {work.units}",
        why=(
            f"{format_ns(work.cost(uses))} per step run in kernels that could use {work.units} and do not: "
            f"{named(uses)} ({uses[0].traits.tensor_core_reason})."
        ),
        fix="\n".join(fixes),
    )
    return matrix_finding(work, chosen, advice, target=work.sixteen_bits)
