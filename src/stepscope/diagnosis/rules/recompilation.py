from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.analysis.once import Once
from stepscope.analysis.xla import Compilation
from stepscope.diagnosis import lazy_counts
from stepscope.diagnosis.evidence import SHOWN
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.host_work import (
    HostWork,
    comes_back,
    doubted,
    host_finding,
    host_work,
    in_words,
    is_seen,
    keeping,
)
from stepscope.diagnosis.lazy_counts import recurs
from stepscope.diagnosis.remedies import JAX, RECOMPILED, TENSORFLOW, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.trace import intervals as iv

RULE = Rule(
    id="recompilation",
    scope="device",
    pages=("ops",),
    tells=(Category.COMPILE,),
    finds="Code is compiled, or a graph is traced anew, while steps run.",
    statement="""\
The accounting books idle time to `compile` in at least `RECURS_SHARE` of the steps, and in more than one (steps set
apart as slow for it count; their time is that of `slow_steps`). For JAX and TensorFlow `graph_build` counts too: a
program that is cached is not traced. In fewer steps it is a finding from `SEEN_ONCE_SHARE` of them and says how often
it was seen: a single step may just be the first. Steps that take much longer for it are told by `slow_steps`. The
parameters that changed are named where the profile holds the programs. Of PyTorch/XLA the metrics report that was kept
with the profile counts compilations too; where the profile shows none of them, it is a finding by the counter alone,
from `RECURS_SHARE` of them per step on.""",
    shared_limits=("RECURS_SHARE", "SEEN_ONCE_SHARE"),
    needs="The framework's ranges of compiling, or PyTorch/XLA's metrics report.",
    cure="A step without compiling.",
    example="A compiled function that is called with a new length in each step.",
    makes_late="host",
    tried_for=("JAX",),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    findings = [finding for account in facts.working if (finding := _of_device(facts, account)) is not None]
    return findings or _by_counter(facts)


def _by_counter(facts: Facts) -> list[Finding]:
    """What PyTorch/XLA counted and the profile does not show: then it does not show either who waited for it."""
    counted = facts.lazy_metrics
    one = counted.compiled if counted else None
    if not counted or not one or not one.total or not recurs(counted, one) or (facts.xla and facts.xla.compilations):
        return []
    return [
        Finding(
            rule=RULE.id,
            title="Graphs are compiled while steps run",
            why=lazy_counts.compiled(facts).strip(),
            fix=paragraphs(remedy(RECOMPILED, facts.workload)),
            cost_ns_per_step=round(one.total / (counted.steps or 1)),
            saving_ns_per_step=None,
            not_determined="How much of it the device waits for: the profile shows no compilation, the counter alone.",
        )
    ]


def _of_device(facts: Facts, account: Account) -> Finding | None:
    compiling = host_work(facts, account, Category.COMPILE, _told_elsewhere(facts))
    works = {Category.COMPILE: compiling} if compiling is not None else {}
    if facts.trace.info.framework in (JAX, TENSORFLOW):
        tracing = host_work(facts, account, Category.GRAPH_BUILD)
        works |= {Category.GRAPH_BUILD: tracing} if tracing is not None else {}
    works = {cause: work for cause, work in works.items() if is_seen(facts, work, RECURS_SHARE)}
    if not works:
        return None
    made = _finding(facts, works)
    # Of two causes the one that comes back is sure.
    surest = max(works.values(), key=lambda work: comes_back(facts, work, RECURS_SHARE))
    return doubted(facts, made, surest, RECURS_SHARE)


def _told_elsewhere(facts: Facts) -> iv.Intervals:
    """What is done once is that of ``code_loading``."""
    return facts.once.spans(Once.CAPTURE) if facts.loads_recur else facts.once.spans()


def _finding(facts: Facts, works: dict[Category, HostWork]) -> Finding:
    made = host_finding(
        facts,
        works,
        rule=RULE.id,
        title="Code is compiled while steps run",
        why=_why(facts, works) + lazy_counts.compiled(facts),
        fix=remedy(RECOMPILED, facts.workload),
    )
    made = keeping(made, _told_elsewhere(facts))
    called = [facts.locator.where(c.slice) for c in sorted(_compilations(facts), key=lambda c: -c.ns)[:SHOWN]]
    return replace(made, where=tuple(dict.fromkeys(w for w in (*called, *made.where) if w))[:SHOWN])


def _compilations(facts: Facts) -> list[Compilation]:
    """XLA's compilations in the used steps."""
    return [
        compilation for compilation in (facts.xla.compilations if facts.xla else ()) if compilation.step in facts.used
    ]


_DOING = {Category.COMPILE: "code is compiled or loaded", Category.GRAPH_BUILD: "the program is traced and lowered"}


def _why(facts: Facts, works: dict[Category, HostWork]) -> str:
    text = " ".join(in_words(facts, work, _DOING[cause]) for cause, work in works.items())
    compilations = _compilations(facts)
    changes = dict.fromkeys(
        f"`{c.module}` was compiled again because its inputs changed ({c.changed})" for c in compilations if c.changed
    )
    if changes:
        return f"{text} {'; '.join(list(changes)[:2])}."
    modules = dict.fromkeys(f"`{c.module}`" for c in compilations if c.module)
    named = f" Compiled in the used steps: {', '.join(list(modules)[:SHOWN])}." if modules else ""
    return text + named
