from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.gaps import crosses_step
from stepscope.analysis.placement import METADATA_OPS
from stepscope.analysis.workload import Feature
from stepscope.diagnosis.dispatch import not_dispatching, prologue_time, waiting_for_launches
from stepscope.diagnosis.eager import eager_device
from stepscope.diagnosis.evidence import placed
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.host_stretches import HostStretches
from stepscope.diagnosis.host_work import covering, in_words, work_in
from stepscope.diagnosis.remedies import PYTORCH, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.names.hosts import runs_others
from stepscope.trace import intervals as iv
from stepscope.trace.codes import mapped
from stepscope.trace.forest import is_outermost, outermost, summed
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, Bools, Kind, Rows
from stepscope.units import format_mean
from stepscope.whatif.change import Change
from stepscope.whatif.limits import LAUNCH_GAP_NS

MANY_INNER_OPS: Final = 20

RULE = Rule(
    id="long_launch",
    scope="device",
    pages=("ops",),
    tells=(Category.LAUNCH,),
    finds="The host takes more than a millisecond to hand the device its next op.",
    statement="""\
Gaps of which the accounting books more than `LAUNCH_GAP_NS` to `launch`: dispatching one op, several that launch
nothing, or handing work to another thread. What other rules tell of the same time is not part of it: ops that compute
on the host, functions that launch nothing, the way of compiled code to its first launch, and ops outside of compiled
code where there is some. The advice is of the op that covers most of the longest gap: one that runs `MANY_INNER_OPS`
others or more, or the first of its name, is told so; or of as many ops one after another that only describe tensors
(views), where those are most of the time.""",
    limits=(
        Limit(
            "MANY_INNER_OPS",
            MANY_INNER_OPS,
            """\
An op that runs so many others inside of it takes its time by their number: at a few µs for each that is a long part of
a gap of a millisecond, where the composite ops of a framework run a handful.""",
        ),
    ),
    shared_limits=("LAUNCH_GAP_NS",),
    needs="Launches.",
    cure="A step in which these ops are handed on at once.",
    example="An op that runs hundreds of others inside of it, such as an optimizer over many parameters.",
    host_bound=True,
)

_MANY = (
    "`{op}` runs {count} other ops inside of it: give it fewer and larger tensors, call it less often, or keep what it "
    "makes."
)
_BUFFERS: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Where it is DistributedDataParallel that sends the buffers of the model before each forward pass, and they need not be
equal on all ranks:
    DistributedDataParallel(model, broadcast_buffers=False)""",
            purposes=TRAINS,
        ),
    ),
    None: "Keep what many small tensors hold in one large one.",
}
_VIEWS = (
    "{count} ops per step only describe tensors and compute nothing (views, slices, empty ones; most often `{op}`). "
    "Each takes the host a few microseconds, more with the Python around it."
)
_FEWER_VIEWS: Remedies = {
    PYTORCH: (
        """\
Make fewer of them: keep what is cut from one tensor while that tensor stays, cut it all in one call
(`flat.split(sizes)`, `x.unbind(0)`), and where a loop cuts tensor by tensor let one op work on the whole.""",
        RemedyPart(
            "Compiled code makes them once, not in each step: `torch.compile` of the function they are made in.",
            since=(2, 0),
            unless=(Feature.COMPILED,),
        ),
    ),
    None: "Make fewer of them: keep what is cut from one tensor, or let one op work on the whole.",
}
_FIRST = (
    "It is the first call of `{op}` in this profile and none is longer: a first use loads and prepares what later ones "
    "find. Run one step of each shape before it counts, and record after it."
)
_CURE: Remedies = {
    PYTORCH: """\
Look at what runs there, the longest first: checks of arguments, a search for the fastest kernel
(`torch.backends.cudnn.benchmark` with shapes that change), work for another thread that it begins late.""",
    None: """\
Look at what runs there, the longest first: checks of arguments, work for another thread that it begins late.""",
}
_BEHIND = "What need not run there can run behind the launches of the step, or once before the loop."
_FLATTENED = ("aten::unflatten_dense_tensors", "aten::flatten_dense_tensors")
"""One tensor made of many, and many of one: how many are sent as one."""


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    devices = [] if facts.sampling.sampled else facts.devices  # there any launch may be missing
    return [made for activity, account in devices if (made := _finding(facts, activity, account))]


def _finding(facts: Facts, activity: DeviceActivity, account: Account) -> Finding | None:
    stretches = _stretches(facts, activity, account)
    work = work_in(facts, account, Category.LAUNCH, stretches)
    if work is None:
        return None
    spans: iv.Intervals = (stretches.start, stretches.end)
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title="The device waits more than a millisecond for its next op",
        why=in_words(facts, work, "the host takes more than a millisecond to launch the next op"),
        fix=paragraphs(_fix(facts, stretches)),
        confidence="medium",
        cost_ns_per_step=work.cost_ns_per_step,
        saving_ns_per_step=work.cost_ns_per_step,
        change=Change(host=dict.fromkeys(facts.launching_tracks, spans)),
        where=placed(facts, work.places),
        evidence=work.evidence,
    )


def _fix(facts: Facts, stretches: HostStretches) -> str:
    """What helps against what runs in the longest of the stretches."""
    views = _views(facts, stretches)
    if views:
        return "\n".join([views, remedy(_FEWER_VIEWS, facts.workload)])
    longest = (stretches.end - stretches.start).argmax(0, keepdims=True)
    is_op, outer = _ops(facts)
    inside = covering(facts, stretches.track[longest], stretches.start[longest], stretches.end[longest])
    op = int(outer[inside[0]]) if inside[0] >= 0 else -1
    cures = [remedy(_CURE, facts.workload)] if op < 0 else _cures(facts, op, is_op)
    return "\n".join([*cures, _BEHIND])


@shared
def _ops(facts: Facts) -> tuple[Bools, I32]:
    """Which slices are ops that do not run others, and per slice the outermost such op around it."""
    slices = facts.trace.slices
    is_op = (slices.kind == Kind.HOST_OP) & ~mapped(slices.name, facts.trace.strings, runs_others, np.bool_)
    return is_op, outermost(is_op, slices.parent)


@shared
def _outer_ops(facts: Facts) -> Rows:
    slices = facts.trace.slices
    return np.flatnonzero(is_outermost(slices.kind == Kind.HOST_OP, slices.parent))


def _views(facts: Facts, stretches: HostStretches) -> str | None:
    """What is said of ops that only describe tensors, where they are many and most of what the host does."""
    slices = facts.trace.slices
    ops = _outer_ops(facts)
    at = np.searchsorted(stretches.start, slices.start_ns[ops], "right") - 1
    inside = (at >= 0) & (slices.start_ns[ops] < stretches.end[at]) & (slices.track[ops] == stretches.track[at])
    ops = ops[inside]
    ops = ops[mapped(slices.name[ops], facts.trace.strings, METADATA_OPS.__contains__, np.bool_)]
    taken = int(slices.dur_ns[ops].sum())
    if ops.size < MANY_INNER_OPS * stretches.start.size or 2 * taken < int((stretches.end - stretches.start).sum()):
        return None
    names, counts = np.unique(slices.name[ops], return_counts=True)
    most = facts.trace.strings[int(names[counts.argmax()])]
    return _VIEWS.format(count=format_mean(ops.size / len(facts.used)), op=most)


def _cures(facts: Facts, op: int, is_op: Bools) -> list[str]:
    slices, name = facts.trace.slices, facts.trace.name_of(op)
    inner = int(summed(is_op.astype(np.int64), slices.parent)[op]) - 1
    if inner >= MANY_INNER_OPS:
        several = (facts.trace.info.world_size or 1) > 1
        buffers = [remedy(_BUFFERS, facts.workload)] if several and name in _FLATTENED else []
        return [_MANY.format(op=name, count=inner), *filter(None, buffers)]
    equal = np.flatnonzero(is_op & (slices.name == slices.name[op]))
    if slices.start_ns[op] == slices.start_ns[equal].min() and slices.dur_ns[op] == slices.dur_ns[equal].max():
        return [_FIRST.format(op=name)]
    return [remedy(_CURE, facts.workload)]


def _stretches(facts: Facts, activity: DeviceActivity, account: Account) -> HostStretches:
    """What no other rule tells of the waiting for launches in long gaps."""
    assert account.idle is not None
    gaps, pieces = account.idle.gaps, account.idle.pieces
    start, end, track, gap = waiting_for_launches(facts, account, account.idle.causes)
    told = np.zeros(len(activity), np.bool_)
    eager = eager_device(facts, activity, account)
    if eager is not None:
        told = eager.ops
    free = ~told[gaps.cause_op[gap]]
    start, end, track, gap = start[free], end[free], track[free], gap[free]
    others = [not_dispatching(facts), *prologue_time(facts, account).values()]
    left = reduce(iv.subtract, others, (start, end))
    at = np.searchsorted(start, left[0], "right") - 1
    # What a wait is to blame for alone is told there.
    launching = pieces.category == Category.LAUNCH.code
    booked = iv.covered_between((pieces.start[launching], pieces.end[launching]), *left)
    kept = (np.bincount(gap[at], booked, len(gaps)) > LAUNCH_GAP_NS)[gap[at]]
    between = crosses_step(account)[gap[at][kept]]
    return HostStretches(left[0][kept], left[1][kept], track[at][kept], between, np.zeros_like(between))
