"""Host work of one cause that a device waited for (or, without a device, that the step took): how long, in which steps,
where in the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.callbacks import callbacks_in
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import parse_frame
from stepscope.analysis.limits import PLACES_SHARE, TOLD_SHARE
from stepscope.analysis.own_code import in_framework
from stepscope.analysis.places import Place, find_places
from stepscope.analysis.steps import WHOLE
from stepscope.analysis.where import Where
from stepscope.diagnosis.awaited import awaiting
from stepscope.diagnosis.evidence import SHOWN, placed, track_name
from stepscope.diagnosis.finding import Evidence, Finding, paragraphs
from stepscope.diagnosis.host_stretches import HostStretches, less, stretches_of
from stepscope.diagnosis.in_ranges import WORK, InRanges, ranges_of
from stepscope.diagnosis.limits import SEEN_ONCE_SHARE
from stepscope.diagnosis.remedies import Remedies, remedy
from stepscope.names.callbacks import named_callback
from stepscope.names.hosts import Giving, gives_ops, walks_modules
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, marked, used_codes
from stepscope.trace.forest import holding, inherit, innermost_at, outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import F64, I32, I64, Bools, Kind
from stepscope.units import format_ns, format_share
from stepscope.whatif.changes import without_host_time

_LOOKED_AT = 200
"""Stretches whose place is looked up: the longest."""
_POINTS = 32
"""Points of a stretch at which it is asked what ran: what takes 3 % of it is met."""
_GIVING = {None: 0, Giving.PYTHON: 1, Giving.C: 2}


@record
class HostWork:
    """What one account books to one cause in the used steps."""

    cause: Category
    device: int | None
    cost_ns_per_step: int
    between_ns_per_step: int | None
    """The part in gaps across a step's beginning: before its first launch. None where no device was recorded."""
    in_steps: tuple[int, ...]
    """Used steps that hold some of it."""
    share_there: float
    """Share of these steps that it takes."""
    told_share: float
    """Share of the time in which a Python frame, or an annotation around nothing else, says what ran. A range around
    ops and launches says nothing of the time between them; frames of PyTorch's that give ops are not among it."""
    giving_share: float
    """Share of the time in modules, autograd and optimizers: PyTorch's own Python, which gives ops."""
    framework_share: float
    """Share of the time in files of JAX or TensorFlow."""
    awaiting_share: float
    """Share of the time in waits for other threads, processes, or what comes in."""
    walking_share: float
    """Share of the time in walks over the modules of a model."""
    sending_share: float
    """Share of the time behind which a copy to the device comes next that is as large as a batch."""
    places: tuple[Place, ...]
    """Longest first; empty where the host thread shows nothing."""
    callbacks: tuple[Place, ...]
    """The callbacks of a training loop in which it passes, longest first."""
    ranges: InRanges | None
    """Where the program's own ranges tell most of it, and no Python frames do."""
    library: Where | None
    """The function of a library that the user chose in which at least ``TOLD_SHARE`` of the time passes, where nothing
    of the user's runs inside it."""
    evidence: tuple[Evidence, ...]

    @property
    def steps(self) -> int:
        """How many used steps hold some of it."""
        return len(self.in_steps)

    @property
    def named_callbacks(self) -> tuple[Place, ...]:
        """The callbacks that are worth a name."""
        return tuple(place for place in self.callbacks if place.share >= 1 - PLACES_SHARE)


def host_work(
    facts: Facts, account: Account, cause: Category, but: iv.Intervals = iv.EMPTY, least_ns: int = 0
) -> HostWork | None:
    """What an account books to a cause, but for some time, and for what is shorter without it; None where it books
    nothing."""
    return work_in(facts, account, cause, less(stretches_of(facts, account, cause), but, least_ns))


def work_in(facts: Facts, account: Account, cause: Category, stretches: HostStretches) -> HostWork | None:
    """What an account books to a cause in some stretches; None where there are none."""
    length = stretches.end - stretches.start
    cost = facts.per_step(int(length.sum()))
    if not cost:
        return None
    rows = np.unique(account.rows.at(stretches.start))
    device = account.rows.device
    inside, weight, at = _sampled(facts, stretches)
    told, giving, walking = _told(facts)
    places = find_places(facts.locator, inside, weight, at=at, own_names=True)
    return HostWork(
        cause=cause,
        device=device,
        cost_ns_per_step=cost,
        between_ns_per_step=None if device is None else facts.per_step(int(length[stretches.between].sum())),
        in_steps=tuple(step for row in rows.tolist() if (step := account.rows.steps[row]) is not None),
        share_there=int(length.sum()) / max(int(account.duration_ns[rows].sum()), 1),
        told_share=_share(told, inside, weight),
        giving_share=_share(giving, inside, weight),
        awaiting_share=_share(awaiting(facts), inside, weight),
        framework_share=_share(in_framework(facts.trace), inside, weight),
        walking_share=_share(walking, inside, weight),
        sending_share=int(length[stretches.sends].sum()) / int(length.sum()),
        places=tuple(place for place in places if named_callback(place.where.annotation or "") is None),
        callbacks=callbacks_in(facts.trace, facts.callbacks, inside, weight),
        ranges=ranges_of(facts, inside, weight),
        library=_library(facts, inside, weight),
        evidence=_evidence(facts, stretches, device),
    )


def in_words(facts: Facts, work: HostWork, doing: str) -> str:
    """How long, in which steps, and in what; ``doing`` follows "the device waits while"."""
    share = format_share(work.cost_ns_per_step * len(facts.used) / facts.used_ns) if facts.used_ns else "part"
    used = len(facts.used)
    one = "in the one window of this profile" if facts.markers.source == WHOLE else "in the one step of this profile"
    often = one if used == 1 else "in every step" if work.steps >= used else f"in {work.steps} of {used} steps"
    who = "" if work.device is None else "the device waits while "
    text = f"For {format_ns(work.cost_ns_per_step)} per step ({share}), {often}, {who}{doing}."
    between = work.between_ns_per_step
    if between is not None:
        where = (
            "All of it lies before the first launch of a step"
            if between >= work.cost_ns_per_step
            else f"{format_ns(between)} of it lie before the first launch of a step, the rest between later launches"
            if between
            else "It lies between launches of a step"
        )
        text += f" {where}."
    listed = [
        f"{place.name} {format_ns(facts.per_step(place.ns))} ({format_share(place.share)})" for place in work.places
    ]
    text += f" Per step: {', '.join(listed)}." if listed else ""
    called = [f"{place.name} {format_ns(facts.per_step(place.ns))}" for place in work.named_callbacks]
    text += f" Callbacks: {', '.join(called)}." if called else ""
    inner = work.library
    return text + (f" Most of it passes in `{inner.function}` ({inner.at})." if inner else "")


def _sampled(facts: Facts, stretches: HostStretches) -> tuple[I32, F64, I64]:
    """What the thread is in (-1: nothing) at points spread over the longest stretches, the ns each stands for, and
    when it is."""
    length = stretches.end - stretches.start
    longest = np.argsort(-length, kind="stable")[:_LOOKED_AT]
    at = (np.arange(_POINTS) * 2 + 1) / (2 * _POINTS)
    points = (stretches.start[longest, None] + length[longest, None] * at).astype(np.int64).ravel()
    inside = innermost_at(facts.trace.slices, np.repeat(stretches.track[longest], _POINTS), points)
    return _without_markers(facts, inside), np.repeat(length[longest] / _POINTS, _POINTS), points


def _library(facts: Facts, inside: I32, weight: F64) -> Where | None:
    known = inside >= 0
    functions = facts.locator.functions[inside[known]]
    totals = np.bincount(functions + 1, weight[known], 1)
    code = int(totals.argmax()) - 1
    if code < 0 or totals[code + 1] < TOLD_SHARE * weight.sum():
        return None
    frame = facts.locator.frame(facts.trace.strings[code])
    if frame is None or frame.is_users:
        return None
    return Where(frame.file, frame.line, frame.function, defined=frame.is_definition)


@shared
def _told(facts: Facts) -> tuple[Bools, Bools, Bools]:
    """Per slice, whether it says that Python ran which gives no ops; whether PyTorch's did, which does; and whether it
    is inside a walk over modules, which is of the first kind whatever it calls."""
    slices, strings = facts.trace.slices, facts.trace.strings
    around = holding(among(slices.kind, WORK), slices.parent)
    is_frame, is_module = slices.kind == Kind.PYTHON_FRAME, slices.kind == Kind.MODULE
    # Of C functions only PyTorch's own count; of others it counts who called them.
    says = np.full(len(strings), -1, np.int32)
    for code in used_codes(slices.name[is_frame], len(strings)).tolist():
        given = gives_ops(strings[code])
        if given is not None or parse_frame(strings[code]) is not None:
            says[code] = _GIVING[given]
    says_of = np.where(is_module, np.int32(_GIVING[Giving.PYTHON]), np.where(is_frame, says[slices.name], np.int32(-1)))
    giving = inherit(says_of, slices.parent)
    told = is_frame | ((slices.kind == Kind.ANNOTATION) & ~around)
    walks = is_frame & mapped(np.where(is_frame, slices.name, np.int32(-1)), strings, walks_modules, np.bool_)
    walking = outermost(walks, slices.parent) >= 0
    is_told = walking | (told & (giving <= _GIVING[None]))
    return is_told, is_frame & ~walking & (giving == _GIVING[Giving.PYTHON]), walking


def _share(chosen: Bools, inside: I32, weight: F64) -> float:
    counted = (inside >= 0) & chosen[inside]
    return float(weight[counted].sum() / weight.sum()) if weight.size else 0.0


def _without_markers(facts: Facts, inside: I32) -> I32:
    """A step's marker says nothing of what runs in it; what encloses it may."""
    markers = _is_marker(facts)
    inside = inside.copy()
    while (on_marker := (inside >= 0) & markers[inside]).any():
        inside[on_marker] = facts.trace.slices.parent[inside[on_marker]]
    return inside


@shared
def _is_marker(facts: Facts) -> Bools:
    return marked(facts.host.markers, len(facts.trace.slices) + 1)


def _evidence(facts: Facts, stretches: HostStretches, device: int | None) -> tuple[Evidence, ...]:
    """The longest stretches, in order of time, each by the name of what the thread was in for half of it."""
    length = stretches.end - stretches.start
    longest = np.sort(np.argsort(-length, kind="stable")[:SHOWN])
    names = covering(facts, stretches.track[longest], stretches.start[longest], stretches.end[longest])
    return tuple(
        Evidence(
            facts.trace.name_of(name) if name >= 0 else "nothing recorded",
            int(stretches.start[at]),
            int(length[at]),
            track_name(facts.trace, int(stretches.track[at])) if stretches.track[at] >= 0 else None,
            device,
            int(np.searchsorted(facts.markers.start, stretches.start[at], "right")) - 1,
        )
        for at, name in zip(longest.tolist(), names.tolist(), strict=True)
    )


def covering(facts: Facts, track: I32, start: I64, end: I64) -> I32:
    """The innermost slice that covers half of each stretch, as seen from its middle; -1 for none."""
    slices = facts.trace.slices
    innermost = innermost_at(slices, track, (start + end) // 2)
    while True:
        ends = slices.start_ns[innermost] + slices.dur_ns[innermost]
        covered = np.minimum(ends, end) - np.maximum(slices.start_ns[innermost], start)
        small = (innermost >= 0) & (2 * covered < end - start)
        if not small.any():
            return innermost
        innermost[small] = slices.parent[innermost[small]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What a rule says of host work of one cause."""

    title: str
    doing: str
    """What the host does; follows "the device waits while"."""
    fix: Remedies
    share: float | None = 0.0
    """The share of the steps that hold it where it comes back; None for what belongs to every step by its nature."""
    holds: Callable[[Facts, HostWork], bool] = lambda facts, work: True
    """Whether it is a finding, however often it was seen."""
    but: Callable[[Facts], iv.Intervals] = lambda facts: iv.EMPTY
    """Time of the cause that is another's to tell."""
    least_ns: int = 0
    """What is shorter, once that is taken out, is no finding."""
    within: str | None = None
    """The rule of whose cause it is a part where most of it passes in the framework's own files."""


def cause_findings(facts: Facts, causes: Mapping[Category, Cause], *, rule: str) -> list[Finding]:
    """One finding per device and cause."""
    told = [(category, cause, cause.but(facts)) for category, cause in causes.items()]
    return [
        doubted(facts, made, work, cause.share)
        for account in facts.working
        for category, cause, but in told
        if (work := host_work(facts, account, category, but, cause.least_ns)) is not None
        and cause.holds(facts, work)
        and is_seen(facts, work, cause.share)
        and (made := _of_cause(facts, cause, but, work, rule))
    ]


def _of_cause(facts: Facts, cause: Cause, but: iv.Intervals, work: HostWork, rule: str) -> Finding:
    why, fix = in_words(facts, work, cause.doing), remedy(cause.fix, facts.workload)
    made = host_finding(facts, {work.cause: work}, rule=rule, title=cause.title, why=why, fix=fix)
    within = cause.within if work.framework_share >= TOLD_SHARE else None
    return keeping(replace(made, within=within), but)


def host_finding(
    facts: Facts, works: Mapping[Category, HostWork], *, rule: str, title: str, why: str, fix: str
) -> Finding:
    """A finding about host work of some causes: its fix takes the work out of the launching threads."""
    cost = sum(work.cost_ns_per_step for work in works.values())
    device = next(iter(works.values())).device
    libraries = [work.library for work in works.values() if work.library]
    return Finding(
        rule=rule,
        device=device,
        title=title,
        why=why,
        fix=paragraphs(fix),
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=reduce(or_, (without_host_time(facts, cause) for cause in works)),
        where=tuple(dict.fromkeys((*placed(facts, _named(works.values())), *libraries))),
        evidence=tuple(piece for work in works.values() for piece in work.evidence)[:SHOWN],
    )


def keeping(finding: Finding, time: iv.Intervals) -> Finding:
    """The finding, whose fix leaves the host's time of some stretches where it is."""
    if finding.change is None or not len(time[0]):
        return finding
    return replace(finding, change=finding.change.outside(time))


def _named(works: Iterable[HostWork]) -> Iterator[Place]:
    for work in works:
        yield from work.named_callbacks
        yield from work.places


def comes_back(facts: Facts, work: HostWork, share: float | None) -> bool:
    """Whether at least a share of the steps hold some of it, and more than one does. Steps set apart for the same cause
    count too: else the half of them that took less of it would be nobody's.
    """
    slow = sum(each.cause is work.cause for each in facts.slow)
    return share is None or work.steps + slow >= max(2, share * (len(facts.used) + slow))


def is_seen(facts: Facts, work: HostWork, share: float | None) -> bool:
    """Whether it comes back, or takes enough of the few steps that it was seen in."""
    return comes_back(facts, work, share) or work.share_there >= SEEN_ONCE_SHARE


def doubted(facts: Facts, finding: Finding, work: HostWork, share: float | None) -> Finding:
    """The finding; of what was seen too seldom to show that it comes back it says so, and is not sure."""
    if comes_back(facts, work, share):
        return finding
    often = "once" if work.steps == 1 else f"in {work.steps} steps"
    why = f"{finding.why} {seen_seldom(facts, work.in_steps, work.cause)}"
    title, once = f"{finding.title} (seen {often})", work.steps == 1
    return replace(finding, title=title, why=why, confidence="low", seen_once=once)


_WARMING = (Category.COMPILE, Category.GRAPH_BUILD, Category.ALLOCATOR)
"""What a program's first steps have whatever it is like."""


def seen_seldom(facts: Facts, steps: tuple[int, ...], cause: Category) -> str:
    """What steps that hold a cause do not show, in a sentence or two."""
    recorded = len(facts.markers)
    if recorded == 1:
        has = "shows no steps" if facts.markers.source == WHOLE else "has one step"
        warm = " It may also be warm-up: first steps compile and allocate." if cause in _WARMING else ""
        return f"It was seen once: this profile {has}, which does not tell whether it comes back.{warm}"
    often = "once, in one" if len(steps) == 1 else f"in {len(steps)}"
    if steps == (0,):
        return (
            f"It was seen once, in the first of {recorded} recorded steps: what only that one has is warm-up. "
            "Let the profiler wait a few steps longer to see whether it comes back."
        )
    return f"It was seen {often} of {recorded} recorded steps: more steps tell whether it comes back."
