from __future__ import annotations

from typing import Final

from stepscope.analysis.balance import Balance, balance, worth_telling
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.limits import TOGETHER_SHARE
from stepscope.diagnosis.remedies import INFERS, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.units import format_ns, format_share

SERIAL_SHARE: Final = 0.50

RULE = Rule(
    id="devices_serialised",
    scope="process",
    pages=("ranks",),
    tells=(Category.SYNC, Category.LAUNCH, Category.DEPENDENCY),
    tells_beside=True,
    finds="Devices of one process compute one after another.",
    statement="""\
Of the time in which the device that computes least does so, another does at the same time for less than
`TOGETHER_SHARE`, and together they compute for at least `SERIAL_SHARE` of the step: it is no lack of work that keeps
them apart. Predicted is a step in which the others compute while the busiest one does, which a pipeline of many
micro-batches approaches and no pipeline of these parts beats. What parts of equal size would save is said beside
it.""",
    limits=(
        Limit(
            "SERIAL_SHARE",
            SERIAL_SHARE,
            """\
Devices that compute one after another do so for this share of the step together: else something else keeps them
idle.""",
        ),
    ),
    shared_limits=("TOGETHER_SHARE",),
    needs="Kernels of several devices of one process.",
    cure="A step in which the others compute while the busiest does: to first order.",
    example="A model that is cut over two GPUs without micro-batches.",
)

_CURE: Remedies = {
    PYTORCH: (
        "A model whose layers are split over devices computes on one at a time. Send several micro-batches through it",
        RemedyPart("(`torch.distributed.pipelining`,", since=(2, 4)),
        RemedyPart("`ScheduleGPipe` or `Schedule1F1B`),", since=(2, 4), purposes=TRAINS),
        RemedyPart("`ScheduleGPipe`),", since=(2, 4), purposes=INFERS, certain=True),
        RemedyPart("(`torch.distributed.pipeline.sync.Pipe`),", since=(1, 8), before=(2, 4)),
        RemedyPart(
            "shard it instead (FSDP, tensor parallelism), or give each device the whole model and its own batch (DDP).",
            purposes=TRAINS,
        ),
        RemedyPart(
            "shard it instead (tensor parallelism), or give each device the whole model and its own requests.",
            purposes=INFERS,
            certain=True,
        ),
    ),
    TENSORFLOW: """\
Look for what makes one device wait for the other: a control dependency between towers (`tf.control_dependencies`, an op
that reads what the other tower writes, the order that automatic control dependencies of a `tf.function` keep between
ops with state), or a variable that both use. Remove the dependency where the order does not matter, and place what both
read on the CPU or on each (`tf.distribute.MirroredStrategy`).""",
    None: """Split the batch so that one device works on a part while the next works on another, or give each device its
own batch.""",
}


def find(facts: Facts) -> list[Finding]:
    """At most one finding."""
    uneven, step = balance(facts), facts.mean_step_ns
    if uneven is None or not step or not min(uneven.compute_ns):
        return []
    least = min(uneven.compute_ns)
    if uneven.together_ns > TOGETHER_SHARE * least or uneven.any_ns < SERIAL_SHARE * step:
        return []
    saving = uneven.any_ns - max(uneven.compute_ns)
    evenly = uneven.any_ns - sum(uneven.compute_ns) // len(uneven.devices)
    if not worth_telling(facts, evenly):
        return []
    names = ", ".join(map(str, uneven.devices))
    return [
        Finding(
            rule=RULE.id,
            title=f"Devices {names} compute one after another",
            why=(
                f"They compute {', '.join(map(format_ns, uneven.compute_ns))} per step, "
                + _together(uneven.together_ns, least)
                + ": each waits while another works."
                + _evenly(facts, uneven, evenly - saving)
            ),
            fix=paragraphs(remedy(_CURE, facts.workload)),
            cost_ns_per_step=uneven.any_ns - least,
            saving_ns_per_step=saving,
            predicted_step_ns=max(step - saving, 0),
            basis="modelled",
            confidence="low",
        )
    ]


def _together(together_ns: int, least_ns: int) -> str:
    if not together_ns:
        return "and never at the same time"
    return (
        f"and at the same time only {format_ns(together_ns)} ({format_share(together_ns / least_ns)} of what the least "
        "busy one computes)"
    )


def _evenly(facts: Facts, uneven: Balance, more_ns: int) -> str:
    """What the busiest one sets, where equal parts would be worth having."""
    if not worth_telling(facts, more_ns):
        return ""
    busiest = uneven.devices[uneven.compute_ns.index(max(uneven.compute_ns))]
    return (
        f" No step takes less than the {format_ns(max(uneven.compute_ns))} that device {busiest} computes: what saves "
        f"most is to split the work anew, so that all compute alike (then up to {format_ns(more_ns)} more)."
    )
