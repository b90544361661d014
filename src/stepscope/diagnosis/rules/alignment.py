from __future__ import annotations

from functools import reduce
from operator import or_

from stepscope.analysis.alignment import Misaligned, misaligned, with_padding
from stepscope.analysis.facts import Facts
from stepscope.analysis.roofline import Work
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.matrix_work import matrix_units
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_ns
from stepscope.whatif.changes import faster_kernels

RULE = Rule(
    id="alignment",
    scope="device",
    pages=("kernels",),
    finds="Matrix products of 16 or 8 bits whose sizes are not multiples of 16 bytes.",
    statement="""\
By recorded shapes a size of a matrix multiplication is no multiple of 8 (fp16, bf16) or 16 (fp8, int8), and padded to
one it would take less time (`analysis/alignment.py` says how that is known; where it is not, nothing is said).
Convolutions are exempt: cuDNN pads them from 7.6.3 on. Products with a size of 1 move a matrix once and gain nothing,
and where sizes that fit no better run at full rate in the same profile nothing is said. What a size stands for (a
batch, a length, a width) is not in the profile.""",
    needs="Shapes of matrix products.",
    cure="A step whose products are padded.",
    example="A vocabulary of 50,257 in bf16.",
    cures_part_of=("tensor_cores_unused",),
)

SHOWN = 3

_FIX = """\
Where your program sets the sizes that do not fit, round them up to multiples of {multiple}, or pad the tensors and cut
the result:
    size = -(-size // {multiple}) * {multiple}
What is added has to stay without effect: zeros add nothing to a product, rows and columns too many are masked or cut.
A fused op that does without this product is better still."""


def find(facts: Facts) -> list[Finding]:
    """One finding per device whose products would gain."""
    findings = []
    for work in facts.work:
        gaining = [one for one in misaligned(work) if one.padded_ns is not None and one.padded_ns < one.op.roof.ns]
        if gaining:
            findings.append(_finding(facts, work, gaining))
    return findings


def _finding(facts: Facts, work: Work, gaining: list[Misaligned]) -> Finding:
    now = sum(one.op.roof.ns for one in gaining)
    padded = sum(one.padded_ns or 0 for one in gaining)
    shown = "; ".join(
        f"`{one.op.name}` {' × '.join(map(str, one.sizes))} in {one.op.roof.precision} ({_odd(one)} no multiple of "
        f"{one.multiple}), {format_ns(facts.per_step(one.op.roof.ns))}"
        for one in gaining[:SHOWN]
    )
    multiple = max(one.multiple for one in gaining)
    return Finding(
        rule=RULE.id,
        device=work.activity.device,
        title=f"Sizes of matrix products do not fit the {matrix_units(facts)}",
        why=(
            f"{format_ns(facts.per_step(now))} per step go to products of sizes that are no multiples of {multiple}: "
            f"{shown}. With padded sizes they are taken to run at the rate of this profile's products that fit, else "
            "at the ratio of the device's peaks, and no faster than the bytes they move allow."
        ),
        fix=paragraphs(_FIX.format(multiple=multiple)),
        basis="modelled",
        confidence="low",
        cost_ns_per_step=facts.per_step(now),
        saving_ns_per_step=facts.per_step(now - padded),
        change=reduce(or_, (faster_kernels(facts, with_padding(work, one)) for one in gaining)),
    )


def _odd(one: Misaligned) -> str:
    """The sizes that do not fit, for people."""
    return ", ".join(dict.fromkeys(str(size) for size in one.sizes if size % one.multiple))
