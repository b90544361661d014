"""launched_in_turn: one host thread launches several devices' work one device after another.

Statement: one thread launches nearly all kernels of several devices, each device's in one run per step (at most
``TURNS`` runs), and a device waits for its launches while the thread makes those of others (not while it is blocked in
a wait, which is no launching). That time goes where each device has a launcher of its own; a step still takes what the
device takes that loses least by the turns.
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
    """One finding per device, where the turns cost one of them enough: the device that loses least sets the step."""
    found = balance(facts)
    if found is None or not facts.mean_step_ns or not found.one_thread or not 0 < found.blocks <= TURNS:
        return []
    if not worth_telling(facts, max(found.others_ns)):
        return []
    return [
        Finding(
            rule="launched_in_turn",
            title=f"One thread launches {len(found.devices)} devices one after another",
            why=(
                f"Each device is given its whole step before the next is given any: device {device} waits "
                f"{format_ns(waits)} per step while the thread launches for the others."
            ),
            fix=paragraphs(remedy(_CURE, facts.workload)),
            cost_ns_per_step=waits,
            saving_ns_per_step=waits,
            device=device,
            confidence="medium",
        )
        for device, waits in zip(found.devices, found.others_ns, strict=True)
        if waits
    ]
