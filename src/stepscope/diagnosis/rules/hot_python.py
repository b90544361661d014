from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import Frame, parse_frame
from stepscope.analysis.limits import PLACES_SHOWN
from stepscope.analysis.places import find_places
from stepscope.analysis.silent import Silence, SilentFunction
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.function_lines import longest_line
from stepscope.diagnosis.remedies import ASK_ONCE, KEEP_ANSWERS, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.names.hosts import walks_modules
from stepscope.trace.codes import mapped
from stepscope.trace.forest import holding
from stepscope.trace.tables import Kind
from stepscope.units import format_mean, format_ns, format_share
from stepscope.whatif.change import Change

RULE = Rule(
    id="hot_python",
    scope="device",
    pages=("ops",),
    tells=(Category.LAUNCH,),
    finds="The device waits for Python functions that launch nothing.",
    statement="""\
Calls of one Python function (the program's own or a library's, with all that it calls) in which no op runs and nothing
is launched, on a thread that launches, while the device has nothing to do and the accounting books that to `launch`:
all calls of a function together take at least `HOT_PYTHON_SHARE` of the used steps. Walks over a model's modules count,
PyTorch's other code around its ops does not: that is launching. Stretches of a millisecond or more are `python` and
told by `between_steps`.""",
    shared_limits=("HOT_PYTHON_SHARE",),
    needs="Python frames.",
    cure="A step without these calls.",
    example="`sum(p.numel() for p in model.parameters())` in the forward pass of each layer.",
    host_bound=True,
    tried_for=("PyTorch", "JAX"),
)

_LOOKED_AT = 1_000
"""Calls of a function whose place is looked up: those the device waits for longest."""


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    return [
        _finding(facts, account, silent)
        for (_, account), silent in zip(facts.devices, facts.silences, strict=True)
        if silent.functions
    ]


def _finding(facts: Facts, account: Account, silent: Silence) -> Finding:
    shown = silent.functions[:PLACES_SHOWN]
    cost = facts.per_step(sum(function.ns for function in silent.functions))
    calls = [int(call) for function in shown for call in function.calls[:2]]
    where = dict.fromkeys(place for function in shown for place in _places(facts, function))
    cure = ASK_ONCE if any(_walks(facts, function) for function in shown) else KEEP_ANSWERS
    share = format_share(cost * len(facts.used) / facts.used_ns)
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title="Python functions that launch nothing hold up the launches",
        why=(
            f"For {format_ns(cost)} per step ({share}) the device waits between launches while functions run that "
            f"launch nothing: {'; '.join(_told(facts, function) for function in shown)}. Each time is that of the "
            "function and all that it calls."
        ),
        fix=paragraphs(remedy(cure, facts.workload)),
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=Change(host=dict(silent.spans)),
        confidence="medium",
        where=tuple(where)[:PLACES_SHOWN],
        evidence=slices_as_evidence(facts, calls, device=account.rows.device),
    )


def _places(facts: Facts, function: SilentFunction) -> list[Where]:
    """Where to look, first what can be changed: of the standard library's functions that is who calls them."""
    frame = parse_frame(function.name)
    own, callers = _own(facts, function), [_by(facts, function), _caller(facts, function)]
    return [place for place in ([*callers, own] if frame and frame.is_standard else [own, *callers]) if place]


def _walks(facts: Facts, function: SilentFunction) -> bool:
    """Whether it is, or calls, a walk over the modules of a model."""
    slices = facts.trace.slices
    walks = mapped(slices.name, facts.trace.strings, walks_modules, np.bool_) & (slices.kind == Kind.PYTHON_FRAME)
    return bool((walks | holding(walks, slices.parent))[function.calls].any())


def _told(facts: Facts, function: SilentFunction) -> str:
    frame = parse_frame(function.name)
    name = frame.told if frame else f"`{function.name}`"
    callers = dict.fromkeys(place for place in (_by(facts, function), _caller(facts, function)) if place)
    by = " below ".join(f"`{place.function}` ({place.at})" for place in callers)
    often = format_mean(function.calls.size / len(facts.used))
    return f"{name} {format_ns(facts.per_step(function.ns))} in {often} calls" + (f" from {by}" if by else "")


def _by(facts: Facts, function: SilentFunction) -> Where | None:
    """The function outside of the standard library that calls it where the device waits longest."""
    parent = int(facts.trace.slices.parent[function.calls[0]])
    code = int(facts.locator.functions[parent]) if parent >= 0 else -1
    frame = facts.locator.frame(facts.trace.strings[code]) if code >= 0 else None
    return _place(frame)


def _own(facts: Facts, function: SilentFunction) -> Where | None:
    frame = facts.locator.frame(function.name)
    return longest_line(facts, function.calls[:_LOOKED_AT].astype(np.int32), frame) if frame else None


def _place(frame: Frame | None) -> Where | None:
    return Where(frame.file, frame.line, frame.function, defined=frame.is_definition) if frame else None


def _caller(facts: Facts, function: SilentFunction) -> Where | None:
    """The user's function from which most of its time is called; None where none was recorded."""
    calls = function.calls[:_LOOKED_AT]
    parents = facts.trace.slices.parent[calls]
    places = find_places(facts.locator, parents, facts.trace.slices.dur_ns[calls])
    known = (place.where for place in places if place.where.file is not None)
    return next(
        (Where(place.file, place.line, place.function, defined=place.defined) for place in known if _is_users(place)),
        None,
    )


def _is_users(place: Where) -> bool:
    return Frame(place.file or "", place.line or 0, place.function or "").is_users
