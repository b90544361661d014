from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import LOW_PRECISION
from stepscope.analysis.unfused_attention import Sites
from stepscope.diagnosis.attention import unfused_sites
from stepscope.diagnosis.finding import Evidence, Finding, paragraphs
from stepscope.diagnosis.matrix_work import NO_PEAKS
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_bytes, format_mean, format_ns
from stepscope.whatif.changes import faster_kernels

RULE = Rule(
    id="attention_unfused",
    scope="device",
    pages=("kernels",),
    finds="Attention computed op by op, with its scores written and read in between.",
    statement="""\
A softmax over scores stands between the batched matrix products that make these scores and use them, with scaling,
masks and dropout as ops of their own, forward or backward, and a fused kernel exists for the number format and head
size. `analysis/unfused_attention.py` has the model of what one would take: the bytes that remain at
`FUSED_BANDWIDTH_SHARE` of the memory's bandwidth, the products at the rate of this profile's fastest, no less than
bandwidth and peak allow. Products are looked for within `ATTENTION_REACH` ops. Without recorded shapes or known peaks
the saving is not determined.""",
    shared_limits=("FUSED_BANDWIDTH_SHARE", "ATTENTION_REACH"),
    needs="Ops in order; shapes and the device's peaks, for the saving.",
    cure="A step in which one kernel computes each attention.",
    example="`softmax(q @ k.transpose(-2, -1) / scale) @ v`.",
)

SHOWN = 3
_ALSO = " Findings on number formats and matrix units speak of the same products: the savings do not add up."

NO_SHAPES = "Record shapes (`record_shapes=True`): the sizes of the scores tell what a fused kernel would take."

_LIMITS = (
    RemedyPart(
        """\
Its kernels take fp16 and bf16 (bf16 from Ampere on) with heads of up to 256 and no mask but `is_causal`, or, fp32 among
them, any `attn_mask` with head sizes that are multiples of 8 (of 4 in fp32); dropout goes with both. fp64 has none.""",
        since=(2, 0),
        vendors=("NVIDIA",),
    ),
    RemedyPart(
        """\
On AMD its kernels come with the ROCm builds, for Instinct MI200 and later, in fp16, bf16 and fp32, with heads of up to
256; a mask has to be boolean or of the queries' type.""",
        since=(2, 3),
        vendors=("AMD",),
    ),
)

_SDPA: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Call the fused op in place of both products and what stands between them:
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)   # or is_causal=True; dropout_p=
Libraries have a setting for it: `attn_implementation="sdpa"` (transformers), `need_weights=False` when calling
`nn.MultiheadAttention`. The scores themselves are not available then.""",
            since=(2, 0),
        ),
        *_LIMITS,
    ),
    JAX: """\
Call `jax.nn.dot_product_attention` in place of both products and what stands between them. It takes 16-bit operands and
limits head sizes and masks.""",
    TENSORFLOW: """\
Keras' `MultiHeadAttention(flash_attention=True)` calls a fused op on its JAX and PyTorch backends.""",
    None: """\
Call a fused attention op in place of both products and what stands between them: FlashAttention or xFormers
(`memory_efficient_attention`). They take 16-bit operands and limit head sizes and masks.""",
}

_FALLEN_BACK: Remedies = {
    PYTORCH: (
        """\
`scaled_dot_product_attention` is called, but none of its fused kernels fits, so that plain ops run: look which of its
conditions on format, head size, mask and layout (a contiguous last dimension) is not met.""",
        RemedyPart(
            """\
With only fused kernels allowed it warns of each condition that is not met, and fails:
    with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]): ...""",
            since=(2, 3),
        ),
        *_LIMITS,
    ),
    None: "Fused attention is called, but falls back to plain ops: look which of its conditions is not met.",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device whose attention would gain, or may."""
    return [_finding(facts, sites) for work in facts.work if (sites := unfused_sites(facts, work))]


def _finding(facts: Facts, sites: Sites) -> Finding:
    used, now = sites.used, sites.now_ns
    known = sites.only(~np.isnan(sites.fused_ns))
    faster = known.faster() if known is not None else None
    longest = sorted(used.tolist(), key=lambda at: -int(now[at]))[:SHOWN]
    slices = sites.softmax[longest].tolist()
    return Finding(
        rule=RULE.id,
        device=sites.work.activity.device,
        title="Attention is computed op by op, not by a fused kernel",
        why=f"{_shown(facts, sites)}. {_model(facts, known)}".rstrip(),
        fix=paragraphs(remedy(_FALLEN_BACK if sites.plain[used].all() else _SDPA, facts.workload)),
        basis="modelled" if faster else "heuristic",
        confidence="low",
        where=tuple(dict.fromkeys(place for place in map(facts.locator.where, slices) if place)),
        evidence=tuple(_evidence(sites, at) for at in longest),
        cost_ns_per_step=facts.per_step(int(now[used].sum())),
        saving_ns_per_step=facts.per_step(faster.gained_ns) if faster else None,
        change=faster_kernels(facts, faster) if faster else None,
        prediction_basis="first_order" if faster else None,
        not_determined=None if faster else NO_PEAKS if any(sites.scores) else NO_SHAPES,
    )


def _shown(facts: Facts, sites: Sites) -> str:
    """What is computed, for people: the largest kinds of scores with their number, format and head size."""
    kinds: dict[tuple[str, bool], list[int]] = {}
    for at in sites.used.tolist():
        one = sites.scores[at]
        text = f"{one} scores in {one.precision}, heads of {one.head}" if one else "sizes that were not recorded"
        kinds.setdefault((text, bool(sites.backward[at])), []).append(at)
    now = sites.now_ns
    order = sorted(kinds.items(), key=lambda kind: -int(now[kind[1]].sum()))[:SHOWN]
    listed = "; ".join(
        f"{text}, {'backward' if back else 'forward'} ({format_mean(len(at) / len(facts.used))} per step)"
        for (text, back), at in order
    )
    cost = format_ns(facts.per_step(int(now[sites.used].sum())))
    return f"{cost} per step go to attention whose products and softmax are kernels of their own: {listed}"


def _model(facts: Facts, known: Sites | None) -> str:
    if known is None or not known.used.size:
        return ""
    used = known.used
    scores = [known.scores[at] for at in used.tolist()]
    rates = {one.precision: known.rates[one.precision] for one in scores if one is not None}
    told = ", ".join(f"{(rate or 0) / 1e3:.0f} TFLOP/s in {precision}" for precision, rate in rates.items())
    return (
        "The scores are written and read again each time. A fused kernel keeps them on the chip: what it still moves, "
        f"{format_bytes(facts.per_step(int(known.moved[used].sum())))} per step, is taken to move at nine tenths of "
        f"the memory's bandwidth, and its products to run as fast as the fastest of this profile ({told}). That the "
        f"ops belong together is judged by shapes.{'' if LOW_PRECISION.issuperset(rates) else _ALSO}"
    )


def _evidence(sites: Sites, at: int) -> Evidence:
    work = sites.work
    end = sites.first[at + 1] if at + 1 < len(sites.first) else len(sites.rows)
    ops = work.rows[sites.rows[sites.first[at] : end]]
    start = int(work.activity.start[ops].min())
    return Evidence(
        name=work.trace.name_of(int(sites.softmax[at])),
        start_ns=start,
        dur_ns=int(work.activity.end[ops].max()) - start,
        device=work.activity.device,
    )
