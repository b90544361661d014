"""memory_bound_chain: kernels in a row that only move data, which one kernel could do.

Statement: ops follow each other on one stream, each a single memory-bound kernel (elementwise, normalisation, softmax,
reduction, cast) that takes a tensor of the shape the one before put out, and a fused kernel, which does not read it
again, would take less time (``analysis/fusion.py`` has the model). Needs recorded shapes: without bytes there is no
saving to give. The launches that fusion takes away count only for what other cures gain beside it. Kernels of attention
that has a finding of its own (``attention_unfused``) belong to that.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.floors import Faster, fused, least_of
from stepscope.analysis.fusion import FUSABLE, POINTWISE, Chains, fusable_chains
from stepscope.diagnosis.attention import unfused_sites
from stepscope.diagnosis.finding import Evidence, Finding, paragraphs
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, TRAINS, Part, Remedies, remedy
from stepscope.limits import FINDING_NS, FINDING_SHARE
from stepscope.units import format_bytes, format_ns
from stepscope.whatif.changes import faster_kernels

SHOWN = 3
LONGEST_SHOWN = 5
"""Runs of ops of one name in a chain that are named."""

_INDUCTOR = (2, 0)
"""The first PyTorch with TorchInductor; TorchScript before it fuses pointwise ops only."""

_FUSE: Remedies = {
    PYTORCH: (
        Part("Let a compiler write one kernel for each run:\n    model = torch.compile(model)", since=_INDUCTOR),
        Part("Let a compiler write one kernel for each run:\n    model = torch.jit.script(model)", before=_INDUCTOR),
        "Or call a fused op where there is one: `torch.nn.GELU`,",
        Part("`torch.nn.functional.rms_norm`,", since=(2, 4)),
        Part("an optimizer with `fused=True`,", since=(2, 0), purposes=TRAINS),
        "`torch.nn.functional.layer_norm`.",
    ),
    JAX: """\
Put the whole step under one `jax.jit`: XLA fuses what it compiles together, not what is called op by op.""",
    TENSORFLOW: (
        Part(
            """\
Let XLA fuse what it compiles: the functions that hold these ops with fixed shapes, or all clusters it finds:
    @tf.function(jit_compile=True)""",
            since=(2, 5),
        ),
        Part("Let XLA fuse what it compiles, all clusters it finds:", before=(2, 5)),
        """\
    tf.config.optimizer.set_jit("autoclustering")   # TF_XLA_FLAGS=--tf_xla_auto_jit=2; 1 clusters less, -1 is off
Do this last, after mixed precision: every new shape is compiled anew, and clusters may take more memory.""",
    ),
    TORCH_XLA: """\
Keep these ops in one graph: nothing between them may read a value (`.item()`, `print`) or call `xm.mark_step()`.""",
    None: "Let a compiler fuse each run into one kernel, or call a fused op where there is one.",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device whose chains gain enough."""
    least = max(FINDING_SHARE * (facts.mean_step_ns or 0), FINDING_NS)
    older = facts.workload.framework == PYTORCH and facts.workload.is_before(_INDUCTOR)
    found = []
    for work in facts.work:
        attention = unfused_sites(facts, work)
        chains = fusable_chains(
            work, attention.rows if attention else np.empty(0, np.intp), POINTWISE if older else FUSABLE
        )
        if chains is None:
            continue
        gained = int((chains.now_ns - chains.fused_ns)[chains.used].sum())
        if gained and facts.per_step(gained) >= least:
            found.append(_finding(facts, chains))
    return found


def _finding(facts: Facts, chains: Chains) -> Finding:
    used = chains.used
    now, fused = int(chains.now_ns[used].sum()), int(chains.fused_ns[used].sum())
    moved, left = int(chains.bytes_now[used].sum()), int(chains.bytes_left[used].sum())
    top = _kinds(chains)[:SHOWN]
    named = "; ".join(f"{_words(chains.names(members[0]))} ({len(members)} times)" for members in top)
    longest = [_longest(chains, members) for members in top]
    work = chains.work
    slices = [int(work.activity.slice[work.rows[chains.rows[chains.first[at]]]]) for at in longest]
    calls = [int(work.owner[chains.rows[chains.first[at]]]) for at in longest]
    return Finding(
        rule="memory_bound_chain",
        device=work.activity.device,
        title="Memory-bound kernels run one after another where one could do",
        why=(
            f"{format_ns(facts.per_step(now))} per step go to runs of kernels that only move data; most would gain "
            f"{named}. Together they move {format_bytes(facts.per_step(moved))} per step; a fused kernel, which does "
            f"not read what one hands to the next, {format_bytes(facts.per_step(left))}. "
            "That an op takes what the one before put out is judged by shapes."
        ),
        fix=paragraphs(remedy(_FUSE, facts.workload)),
        basis="modelled",
        confidence="low",
        where=tuple(dict.fromkeys(place for place in map(facts.locator.where, calls) if place)),
        evidence=tuple(
            Evidence(
                name=facts.trace.name_of(kernel),
                start_ns=int(facts.trace.slices.start_ns[kernel]),
                dur_ns=int(chains.now_ns[at]),
                device=work.activity.device,
            )
            for kernel, at in zip(slices, longest, strict=True)
        ),
        cost_ns_per_step=facts.per_step(now),
        saving_ns_per_step=facts.per_step(now - fused),
        change=faster_kernels(facts, _faster(chains)),
    )


def _kinds(chains: Chains) -> list[list[int]]:
    """The chains of the used steps by their ops, those that gain most first."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for at in chains.used.tolist():
        groups.setdefault(chains.names(at), []).append(at)
    gain = chains.now_ns - chains.fused_ns
    return sorted(groups.values(), key=lambda members: -int(gain[members].sum()))


def _longest(chains: Chains, members: list[int]) -> int:
    return max(members, key=lambda at: int(chains.now_ns[at]))


def _words(names: tuple[str, ...]) -> str:
    """The ops of a chain, each with how often it comes in a row."""
    runs = [(name.removeprefix("aten::"), len(list(same))) for name, same in groupby(names)]
    shown = [f"`{name}`" + (f" x{count}" if count > 1 else "") for name, count in runs[:LONGEST_SHOWN]]
    more = sum(count for _, count in runs[LONGEST_SHOWN:])
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _faster(chains: Chains) -> Faster:
    work, left = chains.work, chains.bytes_left.astype(np.float64)
    least = least_of(work, left, np.zeros(left.size), None)
    return fused(work, chains.rows, chains.first, chains.fused_ns.astype(np.float64), least)
