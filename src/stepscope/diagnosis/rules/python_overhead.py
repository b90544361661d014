from __future__ import annotations

from dataclasses import replace
from typing import Final

from stepscope.analysis.accounting import Account, host_time
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.hot_functions import HotFunction, hot_functions
from stepscope.analysis.learning import ops_share
from stepscope.analysis.limits import PLACES_SHARE, PLACES_SHOWN, TOLD_SHARE
from stepscope.analysis.steps import begun_in
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.function_lines import calls_of, longest_line
from stepscope.diagnosis.left_on_host import at_best
from stepscope.diagnosis.limits import OWN_CODE_OPS_SHARE
from stepscope.diagnosis.numbers_read import Reads, most_reads
from stepscope.diagnosis.op_loops import LOOP_TURNS, SMALL_OP_NS, OpLoop, longest_loop
from stepscope.diagnosis.remedies import remedy
from stepscope.diagnosis.remedies.fitting import Remedies
from stepscope.diagnosis.remedies.overhead import (
    AROUND_OPS,
    IN_FEW_OPS,
    IN_ONE_CALL,
    OWN_FUNCTIONS,
    OWN_SAVE_AT_MOST,
    READ_AT_ONCE,
)
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.diagnosis.rules import between_steps
from stepscope.diagnosis.rules.callback_time import in_callbacks
from stepscope.diagnosis.rules.optimizer_loop import in_updates
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.tables import Bools
from stepscope.units import format_ns, format_share
from stepscope.whatif.change import Change

PYTHON_OVERHEAD_SHARE: Final = 0.15

RULE = Rule(
    id="python_overhead",
    scope="host",
    pages=("ops",),
    tells=(Category.PYTHON,),
    finds="Python around the ops takes much of a step whose host computes.",
    statement="""\
In a profile without a device, the accounting books time to `python` of which neither `between_steps` tells (stretches
of `DISPATCH_GAP_NS` and more in code that gives no ops) nor `callback_time` nor `optimizer_loop`: together at least
`PYTHON_OVERHEAD_SHARE` of the used steps. Functions are named by the time in their own code, the program's own first,
and must hold `TOLD_SHARE` of it. Numbers that are read of tensors at one line ten times in each step or more are told
with that line. Where that takes `TOLD_SHARE` of this Python or more, doing it every N steps saves at least the time in
the reads, and at most the Python of the function that reads, too. A loop of small ops in a function of the program (one
op `LOOP_TURNS` times or more in one call, `SMALL_OP_NS` at most in the mean) that takes `PYTHON_OVERHEAD_SHARE` of the
steps saves at least the Python around the ops, and at most the ops and their backward pass, too. Where neither is,
functions of the program with less than `OWN_CODE_OPS_SHARE` of their time in ops, and `PYTHON_OVERHEAD_SHARE` of the
steps, save at most that; else a module of small ops that one call of a function calls `LOOP_TURNS` times saves at most
all its calls and their backward pass. What of other Python a cure takes away is not known.""",
    limits=(
        Limit(
            "PYTHON_OVERHEAD_SHARE",
            PYTHON_OVERHEAD_SHARE,
            """\
Python between the ops of a host that computes is a finding from this share of the step: recording makes it 1.5 to 2
times as long, and models of a usual size have 1 to 5 %.""",
        ),
        Limit("LOOP_TURNS", LOOP_TURNS, "Chosen: layers that a function writes out are fewer."),
        Limit(
            "SMALL_OP_NS",
            SMALL_OP_NS,
            "Chosen: longer ops take it for what they compute rather than for being called, while recorded, too.",
        ),
    ),
    shared_limits=("DISPATCH_GAP_NS", "OWN_CODE_OPS_SHARE", "TOLD_SHARE"),
    needs="Python frames, of a job without a device.",
    cure="A step without the reads of numbers, the loop of small ops or the functions that compute in Python, where "
    "these take much; to first order. Else none: how much of this Python goes is known from a measured run only.",
    example="Millions of small tensors that are handled one by one.",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)


def find(facts: Facts) -> list[Finding]:
    """One finding, of the host's account."""
    if facts.activities or not facts.used_ns:
        return []
    cost = facts.per_step(sum(_outside_these(facts, account) for account in facts.working))
    cost -= sum(each.cost_ns_per_step or 0 for each in between_steps.of_python(facts))
    if cost * len(facts.used) < PYTHON_OVERHEAD_SHARE * facts.used_ns:
        return []
    functions = hot_functions(facts.host, facts.locator, facts.markers, facts.used, _told_elsewhere(facts))
    known = facts.per_step(sum(each.ns for each in functions))
    return [_finding(facts, cost, _told(functions))] if known >= TOLD_SHARE * cost else []


def _told_elsewhere(facts: Facts) -> Bools:
    """Callbacks, and updates of an optimizer that are findings of their own."""
    return in_callbacks(facts) | in_updates(facts)


def _outside_these(facts: Facts, account: Account) -> int:
    """What is booked to Python in the used steps, in nothing that is told elsewhere."""
    windows = facts.used_windows(account)
    spans = iv.of(facts.trace.slices, _told_elsewhere(facts))
    return iv.measure(iv.subtract(host_time(facts.trace, facts.host, Category.PYTHON, windows), spans))


def _told(functions: tuple[HotFunction, ...]) -> tuple[HotFunction, ...]:
    """Those that hold most of the time, the program's own first."""
    total, held, told = sum(each.ns for each in functions), 0, []
    for each in functions[:PLACES_SHOWN]:
        if held >= PLACES_SHARE * total:
            break
        held += each.ns
        told.append(each)
    return tuple(sorted(told, key=lambda each: not each.frame.is_users))


def _finding(facts: Facts, cost: int, functions: tuple[HotFunction, ...]) -> Finding:
    elsewhere = _told_elsewhere(facts)
    reads, loop = most_reads(facts, elsewhere), longest_loop(facts, elsewhere)
    looped, is_sure = _loop_gone(facts, loop), loop is not None and not loop.calls_modules
    known = filter(None, (looped if is_sure else None, _reads_gone(facts, reads, cost, functions)))
    gone = max(known, key=lambda each: each.most_ns, default=None) or _own_gone(facts, cost, functions) or looped
    share = format_share(cost * len(facts.used) / facts.used_ns)
    listed = ", ".join(f"{_called(facts, each)} {format_ns(facts.per_step(each.ns))}" for each in functions)
    own = (OWN_FUNCTIONS,) if any(each.frame.is_users for each in functions) else ()
    best, cures = (gone.best_step_ns(facts), gone.cures) if gone else (None, own)
    return Finding(
        rule=RULE.id,
        title=f"Python around the ops takes {share} of each step",
        why=(
            f"For {format_ns(cost)} per step the main thread runs Python between ops, and the ops are "
            f"small, or much is called around them. By function, without the ops: {listed}."
            + (f" {loop.told(facts)}." if loop else "")
            + (f" Numbers of tensors are read one at a time: {reads.told(facts)}." if reads else "")
        ),
        fix=_listed(facts, (*cures, AROUND_OPS)),
        cost_ns_per_step=cost,
        saving_ns_per_step=facts.per_step(iv.measure(gone.spans)) if gone else None,
        change=Change(host={facts.host.main: gone.spans}) if gone and len(gone.spans[0]) else None,
        best_step_ns=best,
        prediction_basis="first_order" if gone else None,
        not_determined=None if gone else "how much of this Python a cure takes away: time the job with it",
        confidence="low",
        where=(*(gone.where if gone else ()), *(_place(facts, each) for each in functions if not _in(each, gone))),
        evidence=slices_as_evidence(facts, [each.slice for each in functions]),
    )


def _listed(facts: Facts, cures: tuple[Remedies, ...]) -> str:
    """The first cure, and the others as a list below it."""
    first, *others = (remedy(each, facts.workload).strip() for each in cures)
    begun = [text if text.startswith("- ") or not text else f"- {text}" for text in others]
    return paragraphs("\n".join([first.removeprefix("- "), *filter(None, begun)]))


@record
class _Gone:
    """What a cure takes away: at least some stretches of time, at most more around them."""

    where: tuple[Where, ...]
    spans: iv.Intervals
    most_ns: int
    """In all used steps."""
    cures: tuple[Remedies, ...]
    """What comes before that of all Python around ops."""
    all_of: str | None
    """The function whose time all of it is."""

    def best_step_ns(self, facts: Facts) -> int | None:
        mean = facts.mean_step_ns
        return None if mean is None else at_best(max(mean - facts.per_step(self.most_ns), 0), mean)


def _loop_gone(facts: Facts, loop: OpLoop | None) -> _Gone | None:
    """Few ops in place of a loop's: at least the Python around them goes; what they compute is computed still."""
    if loop is None or loop.ns < PYTHON_OVERHEAD_SHARE * facts.used_ns:
        return None
    where = replace(loop.where, ns_per_step=facts.per_step(loop.ns))
    gone = iv.EMPTY if loop.calls_modules else loop.between
    cure = IN_ONE_CALL if loop.calls_modules else IN_FEW_OPS
    return _Gone((where,), gone, loop.ns, (cure, OWN_FUNCTIONS), all_of=loop.function)


def _reads_gone(facts: Facts, reads: Reads | None, cost: int, functions: tuple[HotFunction, ...]) -> _Gone | None:
    """A step without the reads and at most all the Python of the function that reads: nobody knows what else that
    does."""
    if reads is None or facts.per_step(reads.ns) < TOLD_SHARE * cost:
        return None
    around = sum(each.ns for each in functions if each.frame.is_users and each.frame.function == reads.where.function)
    return _Gone((reads.where,), reads.spans, reads.ns + around, (READ_AT_ONCE, OWN_FUNCTIONS), all_of=None)


def _own_gone(facts: Facts, cost: int, functions: tuple[HotFunction, ...]) -> _Gone | None:
    """At most all that functions of the program take in which hardly an op runs: they compute in Python."""
    slices, windows = facts.trace.slices, iv.joined([facts.used_windows(account) for account in facts.working])
    calls = [
        iv.intersect(iv.of(slices, calls_of(facts, _used(facts), each.frame)), windows)
        for each in functions
        if each.frame.is_users
    ]
    own = iv.joined(spans for spans in calls if ops_share(facts.trace, spans) < OWN_CODE_OPS_SHARE)
    most = min(iv.measure(own), cost * len(facts.used))
    if most < PYTHON_OVERHEAD_SHARE * facts.used_ns:
        return None
    return _Gone((), iv.EMPTY, most, (OWN_SAVE_AT_MOST,), all_of=None)


def _in(each: HotFunction, gone: _Gone | None) -> bool:
    return gone is not None and each.frame.function == gone.all_of


def _place(facts: Facts, each: HotFunction) -> Where:
    """A function's line that takes most of its time, where lines are known, with all that passes in its own code."""
    frame, ns = each.frame, facts.per_step(each.ns)
    return replace(longest_line(facts, calls_of(facts, _used(facts), frame), frame), ns_per_step=ns)


def _used(facts: Facts) -> Bools:
    """Which slices begin in the used steps."""
    return begun_in(facts.trace, facts.markers, facts.used)


def _called(facts: Facts, each: HotFunction) -> str:
    """A function, and of a library's the program's own function that calls into it."""
    frame = each.frame
    caller = facts.locator.where(each.slice)
    if frame.is_users or caller.function is None or caller.function == frame.function:
        return frame.told
    return f"{frame.told}, called from `{caller.function}`"
