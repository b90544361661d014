"""launched_in_turn: one host thread launches several devices' work one device after another.

Statement: one thread launches nearly all kernels of several devices, each device's in one run per step (at most
``TURNS`` runs), and the device that waits longest for launches, not the first one, waits so much longer than the one
that waits least: the difference is what launching in turn costs.
"""

from __future__ import annotations

from stepscope.analysis.balance import balance, worth_telling
from stepscope.analysis.facts import Facts
from stepscope.analysis.workload import Purpose
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, PYTORCH, RUNS, TENSORFLOW, TRAINS, Part, Remedies, remedy
from stepscope.limits import TURNS
from stepscope.units import format_ns

_CURE: Remedies = {
    PYTORCH: (
        Part(
            "Use a process per device (`torchrun` with DistributedDataParallel): each launches for its own device.",
            purposes=TRAINS,
            since=(1, 10),
        ),
        Part("Use a process per device: each launches for its own.", purposes=INFERS, certain=True),
        Part("Use a process per device (DistributedDataParallel).", purposes=TRAINS, before=(1, 10)),
        "Within one process, launch from a thread per device,",
        Part("or launch captured graphs (`torch.cuda.graph`), which takes one call.", purposes=RUNS, since=(1, 10)),
        Part("not from one for all.", purposes=RUNS, before=(1, 10)),
        Part("not from one for all.", purposes=(Purpose.CAPTURE,), certain=True),
    ),
    TENSORFLOW: """\
Give each device its own launching threads, apart from those that run the input pipeline:
    TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2""",
    None: "Launch from a process or a thread per device.",
}


def find(facts: Facts) -> list[Finding]:
    """At most one finding."""
    found, step = balance(facts), facts.mean_step_ns
    if found is None or not step or not found.one_thread or not 0 < found.blocks <= TURNS:
        return []
    cost = max(found.launch_wait_ns) - min(found.launch_wait_ns)
    late = found.devices[found.launch_wait_ns.index(max(found.launch_wait_ns))]
    if late == found.first or not worth_telling(facts, cost):
        return []
    return [
        Finding(
            rule="launched_in_turn",
            title=f"One thread launches {len(found.devices)} devices one after another",
            why=(
                f"Each device is given its whole step before the next is given any: device {late} waits "
                f"{format_ns(max(found.launch_wait_ns))} per step for launches, another "
                f"{format_ns(min(found.launch_wait_ns))}."
            ),
            fix=paragraphs(remedy(_CURE, facts.workload)),
            cost_ns_per_step=cost,
            saving_ns_per_step=cost,
            predicted_step_ns=max(step - cost, 0),
            device=late,
            confidence="medium",
        )
    ]
