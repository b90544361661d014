"""Advice on kernels whose gain no profile tells: notices, never findings."""

from __future__ import annotations

from stepscope.analysis.branches import Branch, independent_branches
from stepscope.analysis.facts import Facts
from stepscope.analysis.grids import alone, of_few_blocks
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import DOUBLE_SHARE, SMALL_GRIDS_SHARE
from stepscope.diagnosis.remedies import INFERS, JAX, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart, sentence
from stepscope.hardware.peaks import Precision
from stepscope.names.kernels import Family
from stepscope.trace import intervals as iv
from stepscope.units import format_count, format_ns, format_share

_ALLOWED: Remedies = {
    None: (
        RemedyPart(" and convergence does (the learning rate changes with it).", purposes=TRAINS),
        RemedyPart(" and latency does.", purposes=INFERS, certain=True),
    )
}


def small_grids(facts: Facts) -> Notice | None:
    """Most of the steps goes to kernels that leave multiprocessors without a block, and nothing runs beside them."""
    sizes = {d.id: d.multiprocessors for d in facts.trace.info.devices if d.multiprocessors}
    small_ns = total_ns = count = 0
    for activity, account in facts.devices:
        if activity.device in facts.unused or activity.device not in sizes:
            continue
        few = of_few_blocks(facts.trace, activity, sizes[activity.device])
        start, end = facts.used_windows(account)
        small_ns += int(iv.covered_between(alone(activity, few), start, end).sum())
        total_ns += int((end - start).sum())
        count += int(facts.in_used_steps(account, activity.start[few]).sum())
    share = small_ns / total_ns if total_ns else 0.0
    if share < SMALL_GRIDS_SHARE:
        return None
    factors = [use.headroom.batch_factor for use in facts.memory if use.headroom and use.headroom.batch_factor]
    room = f"memory allows some {min(factors):.1f} times today's" if factors else "memory allows it"
    return Notice(
        "small_grids",
        f"For {format_share(share)} of step time a device runs nothing but one kernel of fewer blocks than it has "
        f"multiprocessors ({format_count(max(sizes.values()))}): the others stand still. A larger batch gives them "
        f"work where {room}{sentence(_ALLOWED, facts.workload)} What it gains is not in the profile.",
        count,
    )


def softmax_in_fp16(facts: Facts) -> Notice | None:
    """A softmax reads and writes fp16."""
    narrow = [use for use in facts.kernels.uses if use.traits.family is Family.SOFTMAX and use.precision == "fp16"]
    if not narrow:
        return None
    return Notice(
        "softmax_in_fp16",
        "Softmax runs in fp16: large scores overflow to infinity before it, and small probabilities vanish behind it. "
        "Compute it in fp32, as autocast does; this is for accuracy, not for time.",
        sum(use.count for use in narrow),
    )


_IN_SINGLE: Remedies = {
    PYTORCH: ("Cast the model by `model.float()` and inputs by `torch.from_numpy(array).float()`",),
    JAX: ("Leave `jax_enable_x64` off, and cast inputs by `array.astype(numpy.float32)`",),
    TENSORFLOW: ("Cast inputs by `array.astype(numpy.float32)`, and leave Keras's `floatx` at float32",),
    None: ("Cast model and inputs to float32",),
}


def double_precision(facts: Facts) -> Notice | None:
    """Much is computed in float64."""
    table = facts.kernels
    double_ns = sum(use.total_ns for use in table.uses if use.precision == Precision.FP64)
    if table.total_ns and double_ns >= DOUBLE_SHARE * table.total_ns:
        what = f"{format_share(double_ns / table.total_ns)} of the kernels' time is computed in float64"
    elif not facts.activities and (facts.run.double_share or 0) >= DOUBLE_SHARE:
        what = f"{format_share(facts.run.double_share or 0)} of the parameters are float64"
    else:
        return None
    return Notice(
        "double_precision",
        f"{what}, which moves twice the bytes of float32 and, but for GPUs made for it, is computed at half its speed "
        f"or far less. NumPy's arrays are float64 unless told otherwise. {sentence(_IN_SINGLE, facts.workload)}, where "
        "results need not be that exact. What it gains is not in the profile.",
    )


def independent_branches_in_a_row(facts: Facts) -> Notice | None:
    """Two long branches of the graph do not need each other, and run on the only stream that computes."""
    branches = independent_branches(facts)
    if not branches:
        return None
    most = max(branches, key=lambda one: one.shorter.ns)

    def told(branch: Branch) -> str:
        return f"`{branch.scope}` ({branch.ops} ops, {format_ns(facts.per_step(branch.ns))})"

    return Notice(
        "independent_branches",
        f"{told(most.longer)} and {told(most.shorter)} do not need each other, and run one after another: TensorFlow "
        "gives a device one stream for computing. Where their ops leave room on it, they take up to "
        f"{format_ns(facts.per_step(most.shorter.ns))} per step less side by side: join like ops of both into one "
        "(stack inputs and weights: a batched matmul, a grouped convolution), place one branch on another device "
        "(`tf.device`), or split this device into two virtual ones (`GPUOptions.experimental.virtual_devices`), which "
        "have streams of their own. What it gains is not in the profile.",
        len(branches),
    )
