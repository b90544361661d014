from __future__ import annotations

from dataclasses import dataclass

from stepscope.analysis.accounting import Account, one_time_ns
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.once import Once
from stepscope.diagnosis.evidence import SHOWN, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.one_time import in_words, seen_in
from stepscope.diagnosis.remedies import CAPTURES, CODE_LOADING, Remedies, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.whatif.changes import without_one_time_work

RULE = Rule(
    id="code_loading",
    scope="device",
    pages=("ops",),
    tells=(Category.COMPILE,),
    finds="""\
The device waits for what is done once: code that is loaded, libraries that are set up, graphs that are captured.""",
    statement="""\
The accounting books idle time of the used steps to `compile` while one of these is going on (`analysis.once`): a call
that loads code, the first launch of a kernel that takes `FIRST_LAUNCH_NS` and `FIRST_LAUNCH_TIMES` times as long as
later launches, another call of the runtime of `SET_UP_NS`, or the capture of a graph. Code that calls of their own load
in step after step is that of `recompilation`. Steps after warm-up do not have it, so the saving is that of the recorded
steps alone. Where it fills a step beside usual ones, that step is set apart and a notice says so.""",
    shared_limits=("FIRST_LAUNCH_NS", "FIRST_LAUNCH_TIMES", "SET_UP_NS"),
    needs="Calls of the device's runtime.",
    cure="The recorded steps with this work done before them.",
    example="A profile of the first steps, in which each kernel's code is loaded by its first launch.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sort:
    """What is said of one sort of work."""

    kinds: tuple[Once, ...]
    title: str
    why: str
    fix: Remedies


_SORTS = (
    _Sort(
        kinds=(Once.LOADING, Once.START_UP),
        title="Code is loaded when it is first used",
        why="Code and libraries are loaded, and devices set up, when they are first used.",
        fix=CODE_LOADING,
    ),
    _Sort(
        kinds=(Once.CAPTURE,),
        title="Graphs are captured while steps run",
        why="What is launched meanwhile does not run.",
        fix=CAPTURES,
    ),
)


_ONCE = "It happens once: steps after warm-up do not have it."
_AGAIN = (
    "{steps} of {used} steps have it: each meets kernels or shapes that none before had. It ends once all have come; "
    "where shapes keep changing, pad or bucket them."
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device and sort of work."""
    return [
        finding
        for account in facts.working
        for sort in _SORTS
        if Once.CAPTURE in sort.kinds or not facts.loads_recur
        if (finding := _finding(facts, account, sort)) is not None
    ]


def _finding(facts: Facts, account: Account, sort: _Sort) -> Finding | None:
    used = facts.used_rows(account)
    taken = one_time_ns(account, facts.once, *sort.kinds)[used]
    cost, steps = facts.per_step(int(taken.sum())), int((taken > 0).sum())
    windows = [(int(account.rows.bounds[row]), int(account.rows.bounds[row + 1])) for row in used]
    rows = seen_in(facts, windows, *sort.kinds)
    if not cost or not rows.size:
        return None
    calls = facts.once.slice[rows]
    longest = sorted(calls.tolist(), key=lambda call: -int(facts.trace.slices.dur_ns[call]))
    places = dict.fromkeys(place for call in longest[:SHOWN] if (place := facts.locator.where(call)))
    told = in_words(facts, rows)
    often = _AGAIN.format(steps=steps, used=len(used)) if steps > 1 else _ONCE
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title=sort.title if steps > 1 else f"{sort.title} (seen once)",
        why=f"{told[:1].upper()}{told[1:]}. {sort.why} {often}",
        fix=paragraphs(remedy(sort.fix, facts.workload)),
        confidence="medium",
        seen_once=steps <= 1,
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=without_one_time_work(facts, *sort.kinds),
        where=tuple(places)[:SHOWN],
        evidence=slices_as_evidence(facts, calls.tolist(), device=account.rows.device),
    )
