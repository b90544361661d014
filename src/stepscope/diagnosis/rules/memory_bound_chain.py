from __future__ import annotations

from itertools import groupby
from typing import Final

import numpy as np

from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.floors import Faster, fused, least_of
from stepscope.analysis.fusion import FUSABLE, POINTWISE, Chains, fusable_chains
from stepscope.analysis.limits import FINDING_NS, FINDING_SHARE
from stepscope.analysis.op_runs import Runs, memory_bound_runs
from stepscope.analysis.places import find_places
from stepscope.analysis.workload import Feature
from stepscope.diagnosis.attention import unfused_sites
from stepscope.diagnosis.evidence import placed, shares, slices_as_evidence
from stepscope.diagnosis.finding import Evidence, Finding, paragraphs
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.units import format_bytes, format_mean, format_ns, format_times
from stepscope.whatif.changes import faster_kernels

RUN_SHARE: Final = 0.1

RULE = Rule(
    id="memory_bound_chain",
    scope="device",
    pages=("kernels",),
    panel="fusion",
    finds="Kernels in a row that only move data, which one kernel could do.",
    statement="""\
Ops follow each other on one stream, each a single memory-bound kernel (elementwise, normalisation, softmax, reduction,
cast) that takes a tensor of the shape the one before put out, and a fused kernel, which does not read it again, would
take less time (`analysis/fusion.py` has the model). Needs recorded shapes: without bytes there is no saving to give.
The launches that fusion takes away count only for what other cures gain beside it. Kernels of attention that has a
finding of its own (`attention_unfused`) belong to that. TensorFlow's profiles hold no shapes: there runs of `LEAST_RUN`
kernels or more whose ops' types are memory-bound are told, without a saving, from `RUN_SHARE` of the step on.""",
    limits=(
        Limit(
            "RUN_SHARE",
            RUN_SHARE,
            """\
Share of the step from which on runs are told though nothing says what fusing saves: of three kernels that hand on one
tensor at least two passes over it in six go, so that a tenth of the step is 3 % of it.""",
        ),
    ),
    shared_limits=("LEAST_RUN",),
    needs="Ops in order; shapes, for the saving.",
    cure="A step in which one kernel does the work of each run.",
    example="`gelu(x * scale + bias)` in eager mode.",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)

SHOWN = 3
LONGEST_SHOWN = 5
"""Runs of ops of one name in a chain that are named."""

_INDUCTOR = (2, 0)
"""The first PyTorch with TorchInductor; TorchScript before it fuses pointwise ops only."""

_FUSE: Remedies = {
    PYTORCH: (
        RemedyPart("Let a compiler write one kernel for each run:\n    model = torch.compile(model)", since=_INDUCTOR),
        RemedyPart(
            "Let a compiler write one kernel for each run:\n    model = torch.jit.script(model)", before=_INDUCTOR
        ),
        "Or call a fused op where there is one: `torch.nn.GELU`,",
        RemedyPart("`torch.nn.functional.rms_norm`,", since=(2, 4)),
        RemedyPart("an optimizer with `fused=True`,", since=(2, 0), purposes=TRAINS),
        "`torch.nn.functional.layer_norm`.",
    ),
    JAX: """\
Put the whole step under one `jax.jit`: XLA fuses what it compiles together, not what is called op by op.""",
    TENSORFLOW: (
        RemedyPart(
            """\
Let XLA fuse what it compiles: the functions that hold these ops with fixed shapes, or all clusters it finds:
    @tf.function(jit_compile=True)""",
            since=(2, 5),
            unless=(Feature.SESSION,),
        ),
        RemedyPart("Let XLA fuse what it compiles, all clusters it finds:", before=(2, 5), unless=(Feature.SESSION,)),
        RemedyPart(
            """\
Let XLA fuse what it compiles, all clusters it finds:
    config.graph_options.optimizer_options.global_jit_level = tf.compat.v1.OptimizerOptions.ON_2
    # or TF_XLA_FLAGS=--tf_xla_auto_jit=2 in the environment""",
            given=(Feature.SESSION,),
        ),
        RemedyPart(
            """\
    tf.config.optimizer.set_jit("autoclustering")   # or TF_XLA_FLAGS=--tf_xla_auto_jit=2 in the environment""",
            unless=(Feature.SESSION,),
        ),
        """\
Level 2 takes every cluster, 1 only those that are very likely to gain (take it where memory is short: clusters keep
more of it in use), -1 none. Do this last, after mixed precision: every new shape is compiled anew.""",
    ),
    TORCH_XLA: """\
Keep these ops in one graph: nothing between them may read a value (`.item()`, `print`) or call `xm.mark_step()`.""",
    None: "Let a compiler fuse each run into one kernel, or call a fused op where there is one.",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device whose chains gain enough."""
    least = max(FINDING_SHARE * (facts.mean_step_ns or 0), FINDING_NS)
    older = facts.workload.framework == PYTORCH and facts.workload.is_before(_INDUCTOR)
    findings = _runs(facts) if facts.workload.framework == TENSORFLOW else []
    for work in facts.work:
        attention = unfused_sites(facts, work)
        chains = fusable_chains(
            work, attention.rows if attention else np.empty(0, np.intp), POINTWISE if older else FUSABLE
        )
        if chains is None:
            continue
        gained = int((chains.now_ns - chains.fused_ns)[chains.used].sum())
        if gained and facts.per_step(gained) >= least:
            findings.append(_finding(facts, chains))
    return findings


def _runs(facts: Facts) -> list[Finding]:
    """One finding per device on which memory-bound kernels of TensorFlow run in a row."""
    findings = []
    for activity, account in facts.devices:
        rows = np.array(facts.used_rows(account), np.intp)
        runs = memory_bound_runs(facts.trace, activity, rows, account.rows.bounds)
        if runs is not None:
            cost = facts.per_step(int((activity.end - activity.start)[runs.ops].sum()))
            if cost >= RUN_SHARE * (facts.mean_step_ns or 0) and cost >= FINDING_NS:
                findings.append(_in_a_row(facts, activity, runs, cost))
    return findings


def _in_a_row(facts: Facts, activity: DeviceActivity, runs: Runs, cost: int) -> Finding:
    length = (activity.end - activity.start)[runs.ops]
    count = np.unique(runs.run).size
    total = np.bincount(runs.scope[runs.ops], length)
    dearest = [facts.trace.strings[code] for code in np.argsort(-total, kind="stable")[:SHOWN].tolist() if total[code]]
    longest = runs.ops[np.argsort(-length, kind="stable")[:SHOWN]]
    places = find_places(facts.locator, activity.call[runs.ops].astype(np.int32), length)
    return Finding(
        rule=RULE.id,
        device=activity.device,
        title="Memory-bound kernels run one after another where fewer could do",
        why=(
            f"{format_ns(cost)} per step go to kernels that only move data and follow each other, "
            f"{format_mean(runs.ops.size / count)} in a row on average, "
            f"{format_times(count / len(facts.used)).lower()} per step; most time take "
            f"{', '.join(f'`{name}`' for name in dearest)}. Fused, they would not write and read again what one hands "
            "to the next; which ones hand on is not recorded." + shares(facts, places, "Their time")
        ),
        fix=paragraphs(remedy(_FUSE, facts.workload)),
        basis="heuristic",
        confidence="low",
        where=placed(facts, places),
        evidence=slices_as_evidence(facts, activity.slice[longest].tolist(), device=activity.device),
        cost_ns_per_step=cost,
        saving_ns_per_step=None,
        not_determined="What fusing saves: the sizes of tensors are not recorded. Compare step times with and without.",
    )


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
        rule=RULE.id,
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
