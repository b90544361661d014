from __future__ import annotations

import re

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.op_runs import op_names
from stepscope.analysis.places import find_places
from stepscope.analysis.workload import Feature
from stepscope.diagnosis.evidence import SHOWN, placed, shares, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, JAX, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.names.staging import is_staging_kernel, is_staging_range, is_staging_scope, packs_tensors
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import on_host_threads, outermost
from stepscope.trace.tables import I32, Bools, Rows
from stepscope.trace.trace import Trace
from stepscope.units import format_mean, format_ns
from stepscope.whatif.changes import without_ops

RULE = Rule(
    id="collective_copies",
    scope="device",
    pages=("ranks", "kernels"),
    finds="Copies into and out of the buffers that devices exchange, apart from the exchange itself.",
    statement="""\
Device ops other than collectives that are launched inside what fills or empties a collective's buffers (DDP's reducer,
FSDP's gathering and scattering, coalesced tensors, Horovod's and TensorFlow's fusion buffers, the making of the
collective itself), or that XLA made for a collective (their name scope ends in it). Of TensorFlow also concatenations
outside of the model's layers, where the next op of the device is a collective, and splits right behind one. The cost is
the time in which the device does nothing else. What other programs concatenate by themselves before they call a
collective is not told from their other work.""",
    needs="Ops or name scopes around the device's ops.",
    cure="A step without these copies.",
    example="DistributedDataParallel without `gradient_as_bucket_view=True`.",
    tried_for=("PyTorch",),
)

_CURE: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Let gradients live in the buckets that are reduced, so that nothing is copied back, and send buffers (running means of
batch norm) only where they must agree:
    model = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)""",
            purposes=TRAINS,
        ),
        RemedyPart(
            # A replayed graph writes to the gradients it was captured with.
            "    optimizer.zero_grad(set_to_none=True)",
            purposes=TRAINS,
            unless=(Feature.GRAPHS,),
        ),
        RemedyPart(
            """\
With FSDP wrap larger blocks, so that fewer and larger tensors are packed. With Horovod reduce large gradients alone:
`HOROVOD_FUSION_THRESHOLD` bounds what is packed together.""",
            purposes=TRAINS,
        ),
        RemedyPart("Wrap larger blocks, so that fewer and larger tensors are packed.", purposes=INFERS, certain=True),
    ),
    JAX: (
        """\
Shard arrays along the axis that is gathered or scattered last in memory (`PartitionSpec` on the leading dimension), so
that XLA need not transpose before and after.""",
        RemedyPart("Reduce the tree of gradients in one call without `ravel_pytree`.", purposes=TRAINS),
    ),
    TENSORFLOW: (
        RemedyPart(
            """\
Reduce each gradient by itself, if most are large (unless told otherwise all are packed into one tensor):
    tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.NcclAllReduce(num_packs=0))""",
            purposes=TRAINS,
            since=(2, 0),
        ),
        RemedyPart(
            """\
    tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)  # several workers; 0 is one pack of all""",
            purposes=TRAINS,
            since=(2, 4),
        ),
        RemedyPart("With Horovod, `HOROVOD_FUSION_THRESHOLD` bounds what is packed together.", purposes=TRAINS),
    ),
    None: "Exchange large tensors in place instead of packing them into a buffer, or keep them in it.",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device that copies for collectives."""
    findings = []
    around = _ranges(facts.trace)
    for activity, account in facts.devices:
        staged = np.flatnonzero(_staged(facts.trace, activity, around))
        if staged.size and facts.used_rows(account):
            finding = _finding(facts, activity, account, staged, around)
            findings += [finding] if finding else []
    return findings


def _ranges(trace: Trace) -> I32:
    """Per slice, the outermost range around it that fills or empties buffers; -1 for none."""
    slices = trace.slices
    on_host = on_host_threads(trace)
    return outermost(on_host & mapped(slices.name, trace.strings, is_staging_range, np.bool_), slices.parent)


def _staged(trace: Trace, activity: DeviceActivity, around: I32) -> Bools:
    """Which ops of a device are there for collectives."""
    within = np.where(activity.call >= 0, around[activity.call], -1) >= 0
    named = mapped(trace.slices.name[activity.slice], trace.strings, is_staging_kernel, np.bool_)
    scope = np.full(len(trace.slices), -1, np.int32)
    scope[trace.xla_ops.slice] = trace.xla_ops.scope
    of_xla = mapped(scope[activity.slice], trace.strings, is_staging_scope, np.bool_)
    work = among(activity.category, [c.code for c in (Category.COMPUTE, Category.COPY_D2D, Category.COPY_P2P)])
    packed = _packed(trace, activity) if trace.info.framework == "TensorFlow" else False
    return np.asarray(work & (within | named | of_xla | packed))


def _packed(trace: Trace, activity: DeviceActivity) -> Bools:
    """Which ops put gradients together right before a collective of TensorFlow, or take them apart right behind one."""
    says = mapped(op_names(trace, activity), trace.strings, _packing, np.int8)
    order = np.lexsort((activity.end, activity.start))
    collective = activity.category[order] == Category.COLLECTIVE.code
    places = np.arange(len(activity))
    # The nearest op before and behind that neither packs nor copies.
    plain = (says[order] == 0) & among(activity.category[order], (Category.COMPUTE.code, Category.COLLECTIVE.code))
    before = np.maximum.accumulate(np.where(plain, places, -1))
    behind = np.minimum.accumulate(np.where(plain, places, len(activity))[::-1])[::-1]
    follows = (before >= 0) & collective[np.maximum(before, 0)]
    leads = (behind < len(activity)) & collective[np.minimum(behind, len(activity) - 1)]
    packed = np.zeros(len(activity), np.bool_)
    packed[order] = ((says[order] == 1) & leads) | ((says[order] == 2) & follows)
    return packed


def _packing(scope: str) -> int:
    """1 for an op that packs, 2 for one that unpacks, 0 for others."""
    return {True: 1, False: 2, None: 0}[packs_tensors(scope)]


def _finding(facts: Facts, activity: DeviceActivity, account: Account, staged: Rows, around: I32) -> Finding | None:
    used = facts.in_used_steps(account, activity.start)
    ops = staged[used[staged]]
    others = np.ones(len(activity), np.bool_)
    others[staged] = False
    alone = iv.subtract(
        iv.union(activity.start[ops], activity.end[ops]), iv.union(activity.start[others], activity.end[others])
    )
    cost = facts.per_step(iv.measure(alone))
    if not cost:
        return None
    length = (activity.end - activity.start)[ops]
    calls = activity.call[ops]
    longest = np.argsort(-length, kind="stable")[:SHOWN]
    places = find_places(facts.locator, calls.astype(np.int32), length)
    return Finding(
        rule=RULE.id,
        device=activity.device,
        title="Copies into and out of the buffers that devices exchange",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=without_ops(facts, activity.device, ops),
        basis="modelled",
        confidence="medium",
        why=(
            f"{format_mean(ops.size / len(facts.used))} ops per step copy for collectives "
            f"({format_ns(facts.per_step(int(length.sum())))}), for {format_ns(cost)} of it the device does nothing "
            f"else: {_parts(facts, activity, ops, around)}. That is a cost of communicating beside the transfer."
            + shares(facts, places, "Their time")
        ),
        fix=paragraphs(remedy(_CURE, facts.workload)),
        where=placed(facts, places),
        evidence=slices_as_evidence(facts, activity.slice[ops[longest]].tolist(), device=activity.device),
    )


def _parts(facts: Facts, activity: DeviceActivity, ops: Rows, around: I32) -> str:
    """What they are there for, dearest first."""
    totals: dict[str, int] = {}
    for op in ops.tolist():
        call = int(activity.call[op])
        by = int(around[call]) if call >= 0 else -1
        name = facts.trace.name_of(by if by >= 0 else int(activity.slice[op]))
        name = re.sub(r"^<built-in method (\w+) of .*", r"\1", name[:200])[:60]
        totals[name] = totals.get(name, 0) + int(activity.end[op] - activity.start[op])
    dearest = sorted(totals, key=lambda name: -totals[name])[:SHOWN]
    return ", ".join(f"`{name}` {format_ns(facts.per_step(totals[name]))}" for name in dearest)
