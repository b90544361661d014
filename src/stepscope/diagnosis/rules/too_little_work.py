from __future__ import annotations

from typing import Final

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.dispatch import dispatching, waiting_for_launches
from stepscope.diagnosis.evidence import booked
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import (
    AMD,
    INFERS,
    JAX,
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
from stepscope.whatif.limits import LAUNCH_GAP_NS

LITTLE_WORK_NS: Final = 1_000_000

RULE = Rule(
    id="too_little_work",
    scope="device",
    pages=("kernels",),
    finds="Launching and sending take longer than computing, and there is little to compute.",
    statement="""\
On a GPU that computes less than `LITTLE_WORK_NS` per step, time booked to launches and copies between host and device
is more than its compute. Waiting for one launch for more than `LAUNCH_GAP_NS`, for ops that compute on the host and for
functions that launch nothing does not count: other findings tell of it. A heuristic: whether the CPU alone, or a larger
batch, is faster is not in the profile, so no saving is given.""",
    limits=(
        Limit(
            "LITTLE_WORK_NS",
            LITTLE_WORK_NS,
            """\
A device that computes less than this per step has little to do: the forward pass of a small network on one sample takes
a CPU a few ms.""",
        ),
    ),
    shared_limits=("LAUNCH_GAP_NS",),
    needs="Launches and copies of a GPU.",
    cure="None: whether the CPU, or a larger batch, is faster is known from a measured run only.",
    example="A network of two small layers at batch size 1 on a GPU.",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)

_TRANSFERS = (Category.COPY_H2D, Category.COPY_D2H, Category.COPY_STAGING, Category.TRANSFER)

_OR_CPU = """\
Or time the same step on the CPU: for a model this small it may be faster, as nothing is launched and sent."""
_MORE = RemedyPart("Give each step more to do: a larger batch where memory and convergence allow it,", purposes=TRAINS)
_MORE_WITHOUT_TRAINING = RemedyPart(
    "Give each step more to do: a larger batch where memory and latency allow it,", purposes=INFERS, certain=True
)
_FIX: Remedies = {
    PYTORCH: (
        _MORE,
        _MORE_WITHOUT_TRAINING,
        "or fewer and larger ops.",
        RemedyPart(
            "A captured graph (`torch.cuda.CUDAGraph`) runs a step by one launch.",
            purposes=RUNS,
            since=(1, 10),
            vendors=(*NVIDIA, *AMD),
        ),
        _OR_CPU,
    ),
    JAX: (_MORE, _MORE_WITHOUT_TRAINING, "or several steps in one call (`jax.lax.scan`).", _OR_CPU),
    TENSORFLOW: (
        _MORE,
        _MORE_WITHOUT_TRAINING,
        RemedyPart("or several steps in one call (`steps_per_execution`).", since=(2, 4)),
        RemedyPart("or fewer and larger ops.", before=(2, 4)),
        _OR_CPU,
    ),
    None: (_MORE, _MORE_WITHOUT_TRAINING, "or several steps in one launch.", _OR_CPU),
}


def _launches(facts: Facts, account: Account) -> int:
    """What a device waits per step for launches, but for single long ones."""
    assert account.idle is not None
    start, end, _, gap = waiting_for_launches(facts, account, account.idle.pieces)
    waited = np.bincount(gap, dispatching(facts, start, end))
    return facts.per_step(int(waited[waited <= LAUNCH_GAP_NS].sum())) + booked(facts, account, Category.LAUNCH_LATENCY)


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    findings = []
    kinds = {described.id: described.kind for described in facts.trace.info.devices}
    for activity, account in facts.devices:
        if kinds.get(activity.device, "gpu") != "gpu":
            continue
        compute = booked(facts, account, Category.COMPUTE)
        launches, transfers = _launches(facts, account), booked(facts, account, *_TRANSFERS)
        if not 0 < compute < min(LITTLE_WORK_NS, launches + transfers):
            continue
        findings.append(
            Finding(
                rule=RULE.id,
                device=activity.device,
                title="Too little work for this device",
                why=(
                    f"Per step the device computes {format_ns(compute)}, but waits {format_ns(launches)} for launches "
                    f"and spends {format_ns(transfers)} on transfers."
                ),
                fix=paragraphs(remedy(_FIX, facts.workload)),
                basis="heuristic",
                confidence="low",
                cost_ns_per_step=launches + transfers,
                saving_ns_per_step=None,
                prediction_basis=None,
                not_determined="How long the step takes on the CPU, or with a larger batch: time both.",
            )
        )
    return findings
