"""idle_untold: idle time of a step that no finding and no other notice speaks of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stepscope.analysis.accounting import Account, host_time
from stepscope.analysis.categories import Category
from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import UNTOLD_SHARE
from stepscope.diagnosis.evidence import SHOWN, booked, has_python, of_what
from stepscope.diagnosis.finding import Finding, Notice
from stepscope.diagnosis.host_work import host_work
from stepscope.diagnosis.notices.steps import takes_little
from stepscope.diagnosis.notices.waits import timer_cost
from stepscope.diagnosis.remedies import PYTHON_ADVICE, sentence
from stepscope.diagnosis.rules import DECLARED
from stepscope.trace import intervals as iv
from stepscope.trace.tables import Kind
from stepscope.units import format_ns, format_share


class _Kind(NamedTuple):
    """Causes of idle time, and what a device does meanwhile, in words. Rules say which of them they tell of."""

    causes: tuple[Category, ...]
    words: str


KINDS = (
    _Kind((Category.INPUT, Category.INFEED), "waits for input"),
    _Kind((Category.SYNC,), "idles since the host had waited for it"),
    _Kind((Category.COMPILE,), "waits for the host to compile"),
    _Kind((Category.ALLOCATOR,), "waits for memory to be taken or freed"),
    _Kind((Category.COPY_STAGING,), "waits for copies to be staged"),
    _Kind((Category.LAUNCH, Category.LAUNCH_LATENCY), "waits for launches"),
    _Kind((Category.PYTHON,), "waits for Python code"),
    _Kind((Category.GC, Category.CHECKPOINT_IO), "waits for garbage collection or checkpoints"),
    _Kind((Category.GRAPH_BUILD,), "waits for graphs to be built"),
    _Kind((Category.TRANSFER,), "waits for batches to be sent"),
    _Kind((Category.HOST_MEMORY,), "waits for the host's memory"),
    _Kind((Category.MEMORY_SPACE,), "waits for copies between its own memories"),
    _Kind((Category.PEER,), "waits for another device or core"),
    _Kind((Category.DEPENDENCY,), "waits for what other streams or devices do"),
    _Kind((Category.DEVICE_LATENCY,), "takes its time to begin ops that were queued"),
    _Kind(
        (Category.UNKNOWN_DEVICE,),
        "has work queued and does not begin it: what that waits for (another stream, program or device) was not "
        "recorded",
    ),
)
"""``profile_host_unrecorded`` tells of a host that was not recorded, ``profile_overhead`` of the profiler."""

ON_HOST = (
    _Kind((Category.INPUT,), "waits for input data"),
    _Kind((Category.COMPILE,), "compiles or loads code"),
    _Kind((Category.PYTHON,), "runs Python code outside any op"),
    _Kind((Category.GC, Category.CHECKPOINT_IO), "collects garbage or handles checkpoints"),
    _Kind((Category.GRAPH_BUILD,), "builds graphs"),
    _Kind((Category.ALLOCATOR,), "allocates memory"),
)
"""Of a profile without a device, what its main thread does instead of computing."""


def untold(facts: Facts, findings: Iterable[Finding]) -> list[Notice]:
    """A notice of idle time from ``UNTOLD_SHARE`` of the step on, per kind, that findings leave untold."""
    lost = facts.device_lost or any(loss.code == "time_out_of_range" for loss in facts.trace.completeness.losses)
    lost = lost or facts.sampling.sampled or contradictions(facts).withholds
    if facts.is_capture or not facts.used_ns or lost or takes_little(facts):
        return []
    told, device = list(findings), bool(facts.activities)
    if not facts.working:
        return []
    kinds = KINDS if device else ON_HOST
    left = [(*_left(facts, kind, told), kind) for kind in kinds]
    left = [each for each in left if each[0] * len(facts.used) >= _least(facts)]
    if not left:
        return []
    listed = [
        f"for {format_ns(ns)} ({format_share(ns * len(facts.used) / facts.used_ns)}) {_who(facts, on)} {kind.words}"
        for ns, on, kind in sorted(left, key=lambda each: -each[0])
    ]
    python = not device and any(Category.PYTHON in kind.causes for *_, kind in left)
    where = _python_where(facts, told) if python else ""
    text = f"{of_what(facts).capitalize()} no finding explains: {'; '.join(listed)}.{where}"
    return [Notice("idle_untold", text)]


def _python_where(facts: Facts, findings: list[Finding]) -> str:
    """Where the Python code of a host without a device lies that no finding takes away, as far as that was recorded,
    else how to record it."""
    taken = iv.joined(spans for each in findings if each.change is not None for spans in each.change.host.values())
    work = host_work(facts, facts.working[0], Category.PYTHON, taken)
    named = [f"{place.name} {format_ns(facts.per_step(place.ns))}" for place in (work.places if work else ())[:SHOWN]]
    told = f" Most of its longest stretches lie in {', '.join(named)}." if named else ""
    if (facts.trace.slices.kind == Kind.PYTHON_FRAME).any():
        return told
    advice = "" if has_python(facts) else f" {sentence(PYTHON_ADVICE, facts.workload)}"
    return f"{told} Which functions run there was not recorded.{advice}"


def _least(facts: Facts) -> float:
    return UNTOLD_SHARE * facts.used_ns


def _who(facts: Facts, device: int | None) -> str:
    if device is None:
        return "the main thread"
    return "the device" if len(facts.working) == 1 else f"device {device}"


def _within(facts: Facts, account: Account, kind: _Kind, findings: list[Finding]) -> int:
    """What is booked to it in the host's time of which findings tell whatever that is booked to, in ns per step."""
    changes = [each.change for each in findings if DECLARED[each.rule].tells_within and each.change is not None]
    if not changes:
        return 0
    told, windows = (
        iv.joined(spans for change in changes for spans in change.host.values()),
        facts.used_windows(account),
    )
    booked_to = (host_time(facts.trace, facts.host, cause, windows) for cause in kind.causes)
    return facts.per_step(sum(iv.measure(iv.intersect(spans, told)) for spans in booked_to))


def _left(facts: Facts, kind: _Kind, findings: list[Finding]) -> tuple[int, int | None]:
    """What the device with most of it leaves untold, in ns per step, and which that is."""
    account: Account = max(facts.working, key=lambda each: booked(facts, each, *kind.causes))
    costs = [(DECLARED[finding.rule], finding.cost_ns_per_step or 0) for finding in findings]
    costs = [(rule, ns) for rule, ns in costs if not set(kind.causes).isdisjoint(rule.tells)]
    told = sum(ns for rule, ns in costs if not rule.tells_beside)
    told += max((ns for rule, ns in costs if rule.tells_beside), default=0)
    told += _within(facts, account, kind, findings)
    if Category.SYNC in kind.causes:
        told += sum(
            facts.per_step(timer_cost(syncs))
            for each, syncs in zip(facts.accounts, facts.syncs, strict=False)
            if each is account
        )
    return booked(facts, account, *kind.causes) - told, account.rows.device
