from __future__ import annotations

import statistics
from typing import Final

from stepscope.analysis.balance import balance, worth_telling
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.limits import TOGETHER_SHARE
from stepscope.diagnosis.remedies import INFERS, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.units import format_ns

OVERLOADED_TIMES: Final = 1.25

RULE = Rule(
    id="device_overloaded",
    scope="process",
    pages=("ranks",),
    finds="One device of a process computes more than the others, which wait for it.",
    statement="""\
The device that computes most does so `OVERLOADED_TIMES` as long as the median of the others, and the devices work at
the same time (else they are serialised, which is another finding), and the host does not hold up the others with
something else (input, Python) for half of the difference. Predicted is a step in which the work is shared evenly.""",
    limits=(
        Limit(
            "OVERLOADED_TIMES",
            OVERLOADED_TIMES,
            """\
A device is overloaded where it computes this many times what the others do: less is the noise of clocks.""",
        ),
    ),
    needs="Kernels of several devices of one process.",
    cure="A step in which the work is shared evenly: to first order.",
    example="Losses of all devices that are computed on the first.",
)

_CURE: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
What runs on one device only, the loss and the gathered outputs of DataParallel, metrics, an optimizer that is not
sharded, belongs on all: DistributedDataParallel computes the loss where the outputs are.""",
            purposes=TRAINS,
        ),
        RemedyPart(
            "What runs on one device only, such as work on the gathered outputs of DataParallel, belongs on all.",
            purposes=INFERS,
            certain=True,
        ),
        "Of a model split over devices, move layers to the idle ones.",
    ),
    TENSORFLOW: """\
Place variables and what is computed once per step on the CPU, or spread them over the devices
(`tf.distribute.MirroredStrategy`): towers that all read from the first GPU keep it busy with copies.""",
    None: "Move work from this device to the others.",
}


def find(facts: Facts) -> list[Finding]:
    """At most one finding."""
    uneven, step = balance(facts), facts.mean_step_ns
    if uneven is None or not step or uneven.together_ns <= TOGETHER_SHARE * min(uneven.compute_ns):
        return []
    most = max(uneven.compute_ns)
    at = uneven.compute_ns.index(most)
    usual = statistics.median(ns for place, ns in enumerate(uneven.compute_ns) if place != at)
    held = statistics.median(ns for place, ns in enumerate(uneven.held_ns) if place != at) - uneven.held_ns[at]
    saving = round(most - sum(uneven.compute_ns) / len(uneven.compute_ns))
    if most < OVERLOADED_TIMES * usual or 2 * held > most - usual or not worth_telling(facts, saving):
        return []
    device = uneven.devices[at]
    return [
        Finding(
            rule=RULE.id,
            title=f"Device {device} computes more than the others, which wait for it",
            why=(
                f"It computes {format_ns(most)} per step, the others {format_ns(round(usual))} (median): a step ends "
                "when the last device is done."
            ),
            fix=paragraphs(remedy(_CURE, facts.workload)),
            cost_ns_per_step=saving,
            saving_ns_per_step=saving,
            predicted_step_ns=max(step - saving, 0),
            device=device,
            basis="modelled",
            confidence="low",
        )
    ]
