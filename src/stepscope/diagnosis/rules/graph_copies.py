from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.graph_copies import GraphCopies, asking
from stepscope.diagnosis.dispatch import launched_at, waited_for
from stepscope.diagnosis.evidence import placed, shares, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, PYTORCH, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.trace import intervals as iv
from stepscope.trace.codes import marked
from stepscope.trace.tables import Rows
from stepscope.units import format_bytes, format_mean, format_ns
from stepscope.whatif.change import Change
from stepscope.whatif.changes import without_ops

RULE = Rule(
    id="graph_copies",
    scope="device",
    pages=("kernels",),
    finds="Each launch of a graph is surrounded by copies into its inputs or out of its outputs.",
    statement="""\
Copies within a device, by copy engines or kernels that copy, that are launched one by one right before or after the
launch of a CUDA or HIP graph, with nothing else launched between. The cost is the time in which the device does nothing
but these copies, and what it waits for their launches, in the used steps. That they fill a graph's fixed buffers, or
empty them, is a heuristic: a profile does not show addresses.""",
    needs="Launches, of a job that launches CUDA or HIP graphs.",
    cure="A step without these copies and their launches.",
    example="`static_input.copy_(batch)` before each `graph.replay()`.",
    cures_part_of=("launch_bound",),
)

_CURE: Remedies = {
    PYTORCH: (
        """\
A graph reads fixed addresses, so that every input which moves is copied. Write inputs where the graph reads them (the
op before with `out=`, or `static.copy_(batch)` straight from the host), and read outputs before the next launch in
place of cloning them.""",
        RemedyPart(
            """\
With `torch.compile(mode="reduce-overhead")` say which tensors stay where they are, before the first call:
    torch._dynamo.mark_static_address(tensor)   # caches, buffers, anything that is written in place""",
            since=(2, 1),
        ),
        RemedyPart(
            """\
Parameters and gradients that are made anew in each step move too: `optimizer.zero_grad(set_to_none=False)` keeps
gradients in place for a graph that was recorded by hand.""",
            purposes=TRAINS,
        ),
        RemedyPart(
            "Engines that serve models: one buffer for all batch sizes, of which each graph reads a slice.", INFERS
        ),
        RemedyPart(
            """\
What must be copied can be copied by one launch:
    torch._foreach_copy_(static_inputs, inputs)""",
            since=(2, 1),
        ),
    ),
    None: """\
A graph reads fixed addresses, so that every input which moves is copied: write inputs where the graph reads them, read
outputs in place, and copy what is left in one launch.""",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    findings = []
    for (activity, account), beside in zip(facts.devices, facts.graph_copies, strict=True):
        used = facts.in_used_steps(account, activity.start[beside.ops])
        if used.any():
            findings += _finding(facts, activity, account, GraphCopies(beside.ops[used], beside.before[used]))
    return findings


def _finding(facts: Facts, activity: DeviceActivity, account: Account, beside: GraphCopies) -> list[Finding]:
    ops = beside.ops
    chosen = marked(ops, len(activity))
    rest = iv.union(activity.start[~chosen], activity.end[~chosen])
    alone = facts.per_step(iv.measure(iv.subtract(iv.union(activity.start[ops], activity.end[ops]), rest)))
    waited = waited_for(facts, account, activity, chosen, ending=True)
    cost = alone + waited.cost_ns_per_step
    if not cost:
        return []
    length = (activity.end - activity.start)[ops]
    places = launched_at(facts, activity, ops.astype(np.int32), length)
    host = Change(host=dict.fromkeys(facts.launching_tracks, asking(facts.trace, activity, ops)))
    where = "before" if beside.before.all() else "before and after" if beside.before.any() else "after"
    return [
        Finding(
            rule=RULE.id,
            device=activity.device,
            title="Copies into and out of the fixed buffers of graphs",
            why=(
                f"{format_mean(ops.size / len(facts.used))} copies within the device per step"
                f"{_size(facts, activity, ops)} stand right {where} launches of graphs: for {format_ns(alone)} per "
                f"step the device does nothing but copy, and for {format_ns(waited.cost_ns_per_step)} it waits for "
                "their launches. The saving is that of a step without them." + shares(facts, places, "Their time")
            ),
            fix=paragraphs(remedy(_CURE, facts.workload)),
            basis="heuristic",
            confidence="medium",
            cost_ns_per_step=cost,
            saving_ns_per_step=cost,
            change=host | without_ops(facts, activity.device, ops),
            where=placed(facts, places),
            evidence=slices_as_evidence(facts, activity.slice[ops].tolist(), device=activity.device),
        )
    ]


def _size(facts: Facts, activity: DeviceActivity, ops: Rows) -> str:
    sizes = facts.trace.device_ops.bytes[activity.row[ops]]
    known = sizes[sizes > 0]
    if not known.size:
        return ""
    of = "" if known.size == ops.size else " where sizes were recorded"
    return f" ({format_bytes(facts.per_step(int(known.sum())))}{of})"
