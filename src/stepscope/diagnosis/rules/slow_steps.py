from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.gaps import gap_at
from stepscope.analysis.limits import TOLD_SHARE
from stepscope.analysis.slow_steps import SlowStep, spacing
from stepscope.analysis.where import Where
from stepscope.diagnosis.awaited import awaited_ns, of_unknown_gain
from stepscope.diagnosis.evidence import SHOWN, to_record_host
from stepscope.diagnosis.finding import Evidence, Finding, paragraphs
from stepscope.diagnosis.garbage import of_garbage
from stepscope.diagnosis.host_work import seen_seldom
from stepscope.diagnosis.remedies import (
    ALLOCATIONS,
    CHECKPOINTS,
    GARBAGE,
    HOST_WORK,
    RECOMPILED,
    WAITED_FOR,
    Remedies,
    remedy,
)
from stepscope.diagnosis.rule import Rule
from stepscope.trace.forest import rows_of_track
from stepscope.units import format_count, format_ns

RULE = Rule(
    id="slow_steps",
    scope="device",
    pages=("ops",),
    finds="Now and then a step takes much longer, for a cause that others do not have.",
    statement="""\
Steps set apart by `analysis.slow_steps` (limit `SLOW_STEP_SHARE`), grouped by cause. The cost is what they take longer,
spread over all timed steps; of one such step it says that it was seen once. What the profiler itself does, and what is
done once (`code_loading`), and steps whose thread had no core, are notices and no findings.""",
    shared_limits=("SLOW_STEP_SHARE",),
    needs="Several steps.",
    cure="A recording in which these steps take what the others do; to first order.",
    example="A checkpoint that is written in the step's thread every 100 steps.",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)

_DOING = {
    Category.COMPILE: "code is compiled",
    Category.GRAPH_BUILD: "the graph is built anew",
    Category.CHECKPOINT_IO: "a checkpoint is read or written",
    Category.GC: "Python collects garbage",
    Category.ALLOCATOR: "memory is allocated",
    Category.PYTHON: "Python code runs that launches nothing",
    Category.UNKNOWN_HOST: "the host does something the profile does not record",
}
_AWAITS = "what another thread or process gives, or what comes in, is waited for"
_CURES: dict[Category, Remedies] = {
    Category.COMPILE: RECOMPILED,
    Category.GRAPH_BUILD: RECOMPILED,
    Category.CHECKPOINT_IO: CHECKPOINTS,
    Category.GC: GARBAGE,
    Category.ALLOCATOR: ALLOCATIONS,
    Category.PYTHON: HOST_WORK,
}


def find(facts: Facts) -> list[Finding]:
    """One finding per cause."""
    groups: dict[Category, list[SlowStep]] = {}
    for slow in facts.slow:
        if slow.cause is not Category.PROFILER and not slow.once and not slow.no_core:
            groups.setdefault(slow.cause, []).append(slow)
    findings = {cause: _finding(facts, cause, group, _DOING[cause]) for cause, group in groups.items()}
    if Category.PYTHON in groups and all(_awaits(facts, slow) for slow in groups[Category.PYTHON]):
        late = _finding(facts, Category.PYTHON, groups[Category.PYTHON], _AWAITS)
        fix = paragraphs(remedy(WAITED_FOR, facts.workload))
        findings[Category.PYTHON] = of_unknown_gain(replace(late, fix=fix, predicted_step_ns=None))
    return [of_garbage(facts, each) if cause is Category.GC else each for cause, each in findings.items()]


def _awaits(facts: Facts, slow: SlowStep) -> bool:
    """Whether the step took longer in a wait for another thread, or for what comes in."""
    account = facts.accounts[slow.account]
    row = account.step_row(slow.step)
    assert row is not None
    window = int(account.rows.bounds[row]), int(account.rows.bounds[row + 1])
    return awaited_ns(facts, window) >= TOLD_SHARE * slow.excess_ns


def _finding(facts: Facts, cause: Category, group: list[SlowStep], doing: str) -> Finding:
    steps = len(facts.timed)
    cost = round(sum(slow.excess_ns for slow in group) / steps)
    seen = [_longest(facts, slow) for slow in group]
    places = dict.fromkeys(place for place, _ in seen if place)
    period = spacing(tuple(group))
    often = f"every {format_count(period)}th" if period else f"{len(group)} of {steps}"
    takes = "takes" if period or len(group) == 1 else "take"
    longer = format_ns(round(sum(slow.excess_ns for slow in group) / len(group)))
    return Finding(
        rule=RULE.id,
        title=f"Slow steps: {often} {takes} {longer} longer, as {doing}",
        why=_why(facts, cause, group, period),
        fix=paragraphs(remedy(_CURES[cause], facts.workload) if cause in _CURES else to_record_host(facts)),
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        predicted_step_ns=facts.mean_step_ns,
        prediction_basis="first_order",
        confidence="high" if len(group) > 1 else "low",
        device=facts.accounts[group[0].account].rows.device,
        where=tuple(places)[:SHOWN],
        evidence=tuple(evidence for _, evidence in seen)[:SHOWN],
        untried=cause is not Category.GC,
    )


def _longest(facts: Facts, slow: SlowStep) -> tuple[Where, Evidence]:
    """Where most of the cause is in a slow step, and the step's window as evidence."""
    account = facts.accounts[slow.account]
    row = account.step_row(slow.step)
    assert row is not None
    start, end = int(account.rows.bounds[row]), int(account.rows.bounds[row + 1])
    gap = gap_at(facts, slow.account, (start, end), slow.cause)
    compiled = [
        compilation for compilation in (facts.xla.compilations if facts.xla else ()) if compilation.step == slow.step
    ]
    if slow.cause in (Category.COMPILE, Category.GRAPH_BUILD) and compiled:
        place = facts.locator.where(max(compiled, key=lambda compilation: compilation.ns).slice)
    else:
        place = gap.where if gap else Where()
        if place.file is None and place.annotation is None:
            # Executors launch for the program's own thread: what it did then tells more than the op they launched next.
            place = _code(facts, slow, (start, end)) or place
    name = gap.blocking if gap and gap.blocking else f"step {_number(facts, slow.step)}"
    begun, length = (gap.start_ns, gap.dur_ns) if gap else (start, end - start)
    return place, Evidence(name, begun, length, None, account.rows.device, slow.step)


def _code(facts: Facts, slow: SlowStep, window: tuple[int, int]) -> Where:
    """The user's own code, on the main thread, around the innermost slice that took most of what the step took
    longer."""
    slices = facts.trace.slices
    low, high = rows_of_track(slices, facts.host.main) if facts.host.main >= 0 else (0, 0)
    inside = np.minimum(slices.start_ns[low:high] + slices.dur_ns[low:high], window[1])
    inside -= np.maximum(slices.start_ns[low:high], window[0])
    rows = low + np.flatnonzero(2 * inside >= slow.excess_ns)
    places = [facts.locator.where(row) for row in rows[np.argsort(-slices.depth[rows])].tolist()]
    return next((place for place in places if place.file is not None), Where())


def _number(facts: Facts, step: int) -> int:
    number = facts.markers.numbers[step]
    return step if number is None else number


def _why(facts: Facts, cause: Category, group: list[SlowStep], period: int | None) -> str:
    counted = ", counted to the end of the last device," if len(facts.working) > 1 else ""
    usual = format_ns(facts.mean_step_ns or 0)
    listed = ", ".join(
        f"step {_number(facts, each.step)} {format_ns(int(facts.step_ns[each.step]))}" for each in group[:SHOWN]
    )
    more = f" and {len(group) - SHOWN} more" if len(group) > SHOWN else ""
    text = f"A usual step{counted} takes {usual}; {listed}{more}."
    changes = dict.fromkeys(
        f"`{each.module}` was compiled again because its inputs changed ({each.changed})"
        for each in (facts.xla.compilations if facts.xla else ())
        if each.changed and each.step in {slow.step for slow in group}
    )
    if cause in (Category.COMPILE, Category.GRAPH_BUILD) and changes:
        text += f" {'; '.join(list(changes)[:2])}."
    if period:
        text += " Coming half as often, they cost half as much per step on average."
    if len(group) == 1:
        text += f" {seen_seldom(facts, (group[0].step,), cause)}"
    return text + " Costs and shares elsewhere in this report are those of the usual steps."
