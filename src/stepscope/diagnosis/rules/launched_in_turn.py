from __future__ import annotations

from typing import Final

from stepscope.analysis.balance import Balance, balance, worth_telling
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import FINDING_SHARE
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import (
    AMD,
    INFERS,
    NVIDIA,
    PYTORCH,
    RUNS,
    TENSORFLOW,
    TRAINS,
    Remedies,
    RemedyPart,
    remedy,
)
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.units import format_ns

TURNS: Final = 1.5

RULE = Rule(
    id="launched_in_turn",
    scope="process",
    pages=("ranks",),
    tells=(Category.LAUNCH,),
    tells_beside=True,
    finds="The host launches work of several devices one after another.",
    statement="""\
One thread launches nearly all kernels of several devices, each device's in one run per step (at most `TURNS` runs), and
a device waits for its launches while the thread makes those of others (not while it is blocked in a wait, which is no
launching). That time goes where each device has a launcher of its own; a step still takes what the device takes that
loses least by the turns, or by waiting in collectives for one that does. Where several threads launch in such runs, the
device that waits longest while another is launched, not the first one, waits so much longer than the one that waits
least: that difference.""",
    limits=(
        Limit(
            "TURNS",
            TURNS,
            """\
Runs of launches per step and device up to which devices are launched in turn: 1 and a straggling kernel or two.""",
        ),
    ),
    needs="Launches, of a process with several devices.",
    cure="A launcher of its own for each device: to first order.",
    example="A loop over devices that runs the model on each.",
)

_GRAPHS = RemedyPart(
    "In one process, captured graphs (`torch.cuda.graph`) take one call each.",
    purposes=RUNS,
    since=(1, 10),
    vendors=(*NVIDIA, *AMD),
)
_CURE: Remedies = {
    PYTORCH: (
        RemedyPart(
            "Use a process per device (`torchrun` with DistributedDataParallel): each launches for its own device.",
            purposes=TRAINS,
            since=(1, 10),
        ),
        RemedyPart("Use a process per device: each launches for its own.", purposes=INFERS, certain=True),
        RemedyPart("Use a process per device (DistributedDataParallel).", purposes=TRAINS, before=(1, 10)),
        "Within one process, launch from a thread per device, not from one for all.",
        _GRAPHS,
    ),
    TENSORFLOW: """\
Give each device its own launching threads, apart from those that run the input pipeline:
    TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2""",
    None: "Launch from a process or a thread per device.",
}


_THREADS: Remedies = {
    PYTORCH: (
        RemedyPart(
            "Use a process per device (`torchrun` with DistributedDataParallel): threads of one process share Python's "
            "lock, and launch one at a time.",
            purposes=TRAINS,
            since=(1, 10),
        ),
        RemedyPart(
            "Use a process per device: threads of one share Python's lock, and launch one at a time.",
            purposes=INFERS,
            certain=True,
        ),
        RemedyPart("Use a process per device (DistributedDataParallel).", purposes=TRAINS, before=(1, 10)),
        _GRAPHS,
    ),
    TENSORFLOW: _CURE[TENSORFLOW],
    None: "Launch from a process per device, or see what makes the launching threads wait for each other.",
}


def find(facts: Facts) -> list[Finding]:
    """Where one thread launches one finding per device, else at most one."""
    balanced = balance(facts)
    if balanced is None or not facts.mean_step_ns or not 0 < balanced.blocks <= TURNS:
        return []
    return (
        _one_thread(facts, balanced) if balanced.one_thread else _several_threads(facts, balanced, facts.mean_step_ns)
    )


def _several_threads(facts: Facts, uneven: Balance, step_ns: int) -> list[Finding]:
    waits = uneven.turn_wait_ns
    cost, late = max(waits) - min(waits), uneven.devices[waits.index(max(waits))]
    if late == uneven.first or not worth_telling(facts, cost) or min(uneven.compute_ns) < FINDING_SHARE * step_ns:
        return []  # threads that hardly launch anything do not take turns
    return [
        Finding(
            rule=RULE.id,
            title=f"Threads launch {len(uneven.devices)} devices one after another",
            why=(
                f"Each device is given its whole step before the next is given any: device {late} waits "
                f"{format_ns(max(waits))} per step while another is launched, another device {format_ns(min(waits))}. "
                "Threads of their own launch for them; what lets only one do so at a time was not recorded."
            ),
            fix=paragraphs(remedy(_THREADS, facts.workload)),
            cost_ns_per_step=cost,
            saving_ns_per_step=cost,
            predicted_step_ns=max(step_ns - cost, 0),
            device=late,
            confidence="medium",
        )
    ]


def _one_thread(facts: Facts, uneven: Balance) -> list[Finding]:
    """A step takes what the device takes that loses least: by its own turns, or waiting in an exchange for the last."""
    cost = max(uneven.others_ns)
    if not worth_telling(facts, cost):
        return []
    held_up = [min(exchange - min(uneven.exchange_ns), cost) for exchange in uneven.exchange_ns]
    left = max(
        window - waits - late for window, waits, late in zip(uneven.window_ns, uneven.others_ns, held_up, strict=True)
    )
    saving = max(max(uneven.window_ns) - left, 0)
    last = uneven.devices[uneven.others_ns.index(cost)]
    several = sum(worth_telling(facts, waits) for waits in uneven.others_ns)
    why = (
        f"Each device is given its whole step before the next is given any: device {last} waits {format_ns(cost)} per "
        "step while the thread launches for the others."
    )
    if several > 1:
        why += f" {several} of {len(uneven.devices)} devices wait so; the figures are those of device {last}."
    if worth_telling(facts, min(saving, max(held_up))):
        why += " The others wait for it where they exchange data."
    return [
        Finding(
            rule=RULE.id,
            title=f"One thread launches {len(uneven.devices)} devices one after another",
            why=why,
            fix=paragraphs(remedy(_CURE, facts.workload)),
            cost_ns_per_step=cost,
            saving_ns_per_step=saving,
            predicted_step_ns=max((facts.mean_step_ns or 0) - saving, 0),
            device=last,
            confidence="medium",
        )
    ]
