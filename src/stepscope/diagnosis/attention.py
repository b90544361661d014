"""Attention computed op by op that is worth telling: what its own rule says, and others leave to it."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import FINDING_NS, FINDING_SHARE
from stepscope.analysis.roofline import Work
from stepscope.analysis.unfused_attention import Scores, Sites, unfused_attention

_AMPERE = (8, 0)


def unfused_sites(facts: Facts, work: Work) -> Sites | None:
    """The sites of a device that a fused kernel could take and would gain, or of which that is not known; None where
    they gain too little for a finding."""
    sites = unfused_attention(work)
    if sites is None:
        return None
    described = facts.trace.info.device(work.activity.device)
    capability = None if described is None else described.compute_capability
    fits = np.array([scores is None or has_kernel(scores, capability) for scores in sites.scores], np.bool_)
    kept = sites.only(fits & ~(sites.fused_ns >= sites.now_ns))
    if kept is None or not kept.used.size:
        return None
    known = ~np.isnan(kept.fused_ns)
    gain = np.where(known, kept.now_ns - np.where(known, kept.fused_ns, 0), kept.now_ns)
    least = max(FINDING_SHARE * (facts.mean_step_ns or 0), FINDING_NS)
    return kept if facts.per_step(int(gain[kept.used].sum())) >= least else None


def has_kernel(scores: Scores, capability: tuple[int, int] | None) -> bool:
    """Whether PyTorch has a fused kernel for such attention (ATen/native/transformers/cuda/sdp_utils.cpp): flash
    attention for equal head sizes up to 256 in 16 bits, the memory-efficient one for multiples of 16 bytes."""
    old = capability is not None and capability < _AMPERE
    multiple = {"fp16": 8, "bf16": 8, "fp32": 1 if old else 4, "tf32": 4}.get(scores.precision or "")
    if multiple is None or (old and scores.precision == "bf16"):
        return scores.precision is None
    flash = scores.precision in ("fp16", "bf16") and not old and scores.head == scores.value <= 256
    return flash or (scores.head % multiple == 0 and scores.value % multiple == 0)
