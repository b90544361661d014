from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.steps import begun_in
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.function_lines import lines_of_calls
from stepscope.diagnosis.remedies import PYTORCH, remedy
from stepscope.diagnosis.remedies.overhead import ONE_UPDATE, PARAMETERS_AT_ONCE
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.names.hosts import fusible_optimizer, is_zero_grad
from stepscope.names.in_use import Feature
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, mapped
from stepscope.trace.forest import outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, Bools, Kind
from stepscope.units import format_ns, format_share
from stepscope.whatif.change import Change

OPTIMIZER_SHARE: Final = 0.2
FUSED_LEAVES: Final = 0.4
FUSED_LEAVES_LEAST: Final = 0.1
_SINCE = 2, 4
"""PyTorch whose Adam is fused on CPUs, too (torch/optim/adam.py)."""
_OPS = 20
"""Ops of one update from which on it goes over parameters one by one. Chosen: Adam takes some ten for each."""

RULE = Rule(
    id="optimizer_loop",
    scope="host",
    pages=("ops",),
    tells_within=True,
    finds="Adam updates parameters one by one on a host that computes.",
    statement="""\
In a profile of PyTorch without a device, ranges `Optimizer.step#` of Adam or AdamW take at least `OPTIMIZER_SHARE` of
the used steps, in ops on single parameters: neither `fused=True` nor `foreach=True` is in use. On a CPU that is
PyTorch's default. Fused it takes `FUSED_LEAVES_LEAST` to `FUSED_LEAVES` of that. Where it steps twice or more for each
time that gradients are cleared, that is said, too.""",
    limits=(
        Limit("OPTIMIZER_SHARE", OPTIMIZER_SHARE, "Chosen: models of a usual size have less."),
        Limit(
            "FUSED_LEAVES",
            FUSED_LEAVES,
            """\
Measured with PyTorch 2.13 on two virtual cores: 0.12 to 0.26 of 20 to 120 parameters of 32 to a million numbers, by
themselves; 0.34 in a step.""",
        ),
        Limit("FUSED_LEAVES_LEAST", FUSED_LEAVES_LEAST, "A little below the least of those."),
    ),
    needs="A profile of PyTorch without a device.",
    cure="A step in which one kernel updates all parameters; to first order.",
    example="`torch.optim.Adam(model.parameters())` of a model of sixty small layers.",
    tried_for=("PyTorch",),
)


@record
class Update:
    """The updates of one optimizer in the used steps."""

    optimizer: str
    calls: I32
    """Its ranges."""
    ns: int
    steps_per_clearing: int
    """How often it steps for each time that gradients are cleared; 0 where that is not recorded."""


def find(facts: Facts) -> list[Finding]:
    """One finding of each optimizer."""
    return [_finding(facts, each) for each in updates(facts)]


@shared
def updates(facts: Facts) -> list[Update]:
    """The optimizers whose update takes much of a step, an op on a parameter at a time."""
    workload = facts.workload
    if facts.activities or not facts.used_ns or facts.trace.info.framework != PYTORCH or workload.is_before(_SINCE):
        return []
    if not workload.uses.isdisjoint((Feature.FUSED, Feature.FOREACH)):
        return []
    return list(_large(facts))


def in_updates(facts: Facts) -> Bools:
    """The slices of those."""
    chosen = np.zeros(len(facts.trace.slices), np.bool_)
    for each in updates(facts):
        chosen[each.calls] = True
    return chosen


def _large(facts: Facts) -> Iterator[Update]:
    slices, strings = facts.trace.slices, facts.trace.strings
    mine = begun_in(facts.trace, facts.markers, facts.used) & (slices.track == facts.host.main)
    ranges = mine & mapped(slices.name, strings, lambda name: fusible_optimizer(name) is not None, np.bool_)
    ops = mine & (slices.kind == Kind.HOST_OP)
    cleared = int((mine & mapped(slices.name, strings, is_zero_grad, np.bool_)).sum())
    for code in distinct(slices.name[ranges]):
        calls = np.flatnonzero(ranges & (slices.name == code)).astype(np.int32)
        ns, optimizer = int(slices.dur_ns[calls].sum()), fusible_optimizer(strings[code])
        inside = int((ops & among(outermost(ranges, slices.parent), calls)).sum())
        if optimizer is not None and ns >= OPTIMIZER_SHARE * facts.used_ns and inside >= _OPS * calls.size:
            yield Update(optimizer, calls, ns, round(calls.size / cleared) if cleared else 0)


def _finding(facts: Facts, update: Update) -> Finding:
    cost, mean = facts.per_step(update.ns), facts.mean_step_ns
    often, name = update.steps_per_clearing, update.optimizer
    cures = (PARAMETERS_AT_ONCE, ONE_UPDATE) if often > 1 else (PARAMETERS_AT_ONCE,)
    spans = iv.of(facts.trace.slices, update.calls)
    gone = round((1 - FUSED_LEAVES_LEAST) * cost)
    return Finding(
        rule=RULE.id,
        title=f"{name} updates the parameters one by one",
        why=(
            f"`{name}.step` takes {format_ns(cost)} of each step ({format_share(update.ns / facts.used_ns)}), in ops "
            "on single parameters and the Python around them."
        ),
        fix=paragraphs("\n".join(remedy(each, facts.workload).format(name=name, often=often) for each in cures)),
        cost_ns_per_step=cost,
        saving_ns_per_step=round((1 - FUSED_LEAVES) * cost),
        change=Change(host={facts.host.main: spans}),
        best_step_ns=None if mean is None else max(mean - gone, 0),
        prediction_basis="first_order",
        confidence="medium",
        where=tuple(dict.fromkeys(place.where for place in lines_of_calls(facts, update.calls)[:1])),
        evidence=slices_as_evidence(facts, update.calls.tolist()),
    )
