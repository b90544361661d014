"""exposed_collective: the device does nothing but communicate with other devices.

Statement: the accounting books time to collectives that no kernel hides. The cure hides them behind compute, so a step
is predicted to take what it takes without them, and no less than the collectives themselves. One rank's profile does
not tell waiting for a late rank from transfer: both are in the collective. Many small ones (``SMALL_COLLECTIVES`` per
step, half of them under ``SMALL_COLLECTIVE_NS``) are said to be too many.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import SHOWN, booked, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, TRAINS, Part, Remedies, remedy
from stepscope.limits import SMALL_COLLECTIVE_NS, SMALL_COLLECTIVES
from stepscope.trace.tables import I32
from stepscope.units import format_count, format_ns
from stepscope.whatif.changes import without_collectives

_OVERLAP: Remedies = {
    PYTORCH: (
        Part(
            """\
Let gradients travel while the backward pass computes, and less of them:
    model = DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)  # half the bytes
Accumulate gradients over several batches under `model.no_sync()`. With FSDP: `forward_prefetch=True` and
`backward_prefetch=BackwardPrefetch.BACKWARD_PRE`. A larger batch gives each collective more compute to hide behind.""",
            purposes=TRAINS,
        ),
    ),
    JAX: """\
Let XLA run collectives beside compute:
    XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true"
Shard so that the axis that communicates most lies within one machine, and send gradients in bfloat16. A larger batch
gives each collective more compute to hide behind.""",
    TENSORFLOW: """\
Pack gradients into fewer, larger all-reduces that start during the backward pass:
    options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=50 * 1024 * 1024)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
A larger batch gives each collective more compute to hide behind.""",
    TORCH_XLA: """\
Reduce gradients once per optimizer step (`xm.optimizer_step` does), in bfloat16, and accumulate over several batches. A
larger batch gives each collective more compute to hide behind.""",
    None: "Start collectives while other work can run, in fewer and larger pieces, and send fewer bytes (16 bits).",
}
_MERGE: Remedies = {
    PYTORCH: (
        Part(
            """\
Reduce gradients in buckets instead of tensor by tensor: `DistributedDataParallel` does so, or
    flat = torch._utils._flatten_dense_tensors(grads)
    dist.all_reduce(flat)                      # one call for all
    torch._foreach_copy_(grads, torch._utils._unflatten_dense_tensors(flat, grads))
""",
            purposes=TRAINS,
        ),
    ),
    JAX: """\
Reduce the whole tree of gradients in one call, `jax.lax.pmean(grads, "batch")`, and let XLA combine collectives:
    XLA_FLAGS="--xla_gpu_all_reduce_combine_threshold_bytes=134217728"
""",
    None: "Join small tensors into one before they are reduced.\n",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device that communicates with nothing to hide it."""
    found = []
    for activity, account in facts.devices:
        cost = booked(facts, account, Category.COLLECTIVE)
        if cost:
            found.append(_finding(facts, activity, account, cost))
    return found


def _finding(facts: Facts, activity: DeviceActivity, account: Account, cost: int) -> Finding:
    ops = _in_used_steps(facts, activity, account)
    length = activity.end[ops] - activity.start[ops]
    count = ops.size / len(facts.used)
    small = count >= SMALL_COLLECTIVES and float(np.median(length)) < SMALL_COLLECTIVE_NS
    longest = ops[np.argsort(-length, kind="stable")[:SHOWN]]
    calls = activity.call[longest]
    places = dict.fromkeys(facts.locator.where(call) for call in calls[calls >= 0].tolist())
    return Finding(
        rule="exposed_collective",
        device=activity.device,
        title="Communication with other devices that nothing hides",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=without_collectives(facts),
        basis="modelled",
        confidence="medium",
        why=(
            f"{format_count(round(count))} collectives per step take {format_ns(facts.per_step(int(length.sum())))}, "
            f"and for {format_ns(cost)} of it the device computes nothing. Waiting for a rank that is late is part of "
            "it: only the profiles of all ranks tell how much."
            + (f" Half of them take under {format_ns(round(float(np.median(length))))}." if small else "")
        ),
        fix=paragraphs((remedy(_MERGE, facts.workload) + "\n" if small else "") + remedy(_OVERLAP, facts.workload)),
        where=tuple(place for place in places if place),
        evidence=slices_as_evidence(facts, activity.slice[longest].tolist(), device=activity.device),
    )


def _in_used_steps(facts: Facts, activity: DeviceActivity, account: Account) -> I32:
    row = np.searchsorted(account.rows.bounds, activity.start, "right") - 1
    chosen = (activity.category == Category.COLLECTIVE.code) & np.isin(row, facts.used_rows(account))
    return np.flatnonzero(chosen).astype(np.int32)
