"""data_parallel: torch.nn.DataParallel copies the model to every device in every step.

Statement: a module or function of ``torch.nn.DataParallel`` was recorded in the used steps, and more than one device
computes. What it costs is what devices spend on copies and collectives that nothing hides, and on waiting for launches:
with a process per device the first shrink to one all-reduce and the last goes.
"""

from __future__ import annotations

import re

import numpy as np

from stepscope.analysis.balance import balance, worth_telling
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import booked, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, TRAINS, Part, Remedies, remedy
from stepscope.trace.codes import mapped
from stepscope.units import format_ns

_NAMES = re.compile(
    r"^(?:nn\.Module: )?DataParallel(?:_\d+|\.forward)?$|nn/parallel/(?:data_parallel|parallel_apply)\.py"
)
_COSTS = (
    Category.COLLECTIVE, Category.COPY_P2P, Category.COPY_D2D, Category.LAUNCH, Category.LAUNCH_LATENCY,
)  # fmt: skip

_FIX: Remedies = {
    None: (
        "Use a process per device instead of threads in one:",
        Part("    torchrun --nproc-per-node=gpu main.py", since=(1, 10)),
        Part("    python -m torch.distributed.launch --nproc_per_node=8 main.py", before=(1, 10)),
        Part(
            """\
    model = torch.nn.parallel.DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])
The model then stays on its device, and only gradients travel, while the backward pass computes.""",
            purposes=TRAINS,
        ),
        Part(
            "The model then stays on its device, and each process works on inputs of its own: nothing travels.",
            purposes=INFERS,
            certain=True,
        ),
    ),
}


def find(facts: Facts) -> list[Finding]:
    """At most one finding."""
    step, slices = facts.mean_step_ns, facts.trace.slices
    named = np.flatnonzero(mapped(slices.name, facts.trace.strings, _is_data_parallel, np.bool_))
    if not named.size or not step:
        return []
    found = balance(facts)
    if found is None:
        return []
    accounts = [account for account in facts.working if account.rows.device in found.devices]
    cost = max(booked(facts, account, *_COSTS) for account in accounts)
    if not worth_telling(facts, cost):
        return []
    inside = named[np.isin(np.searchsorted(facts.markers.start, slices.start_ns[named], "right") - 1, facts.used)]
    return [
        Finding(
            rule="data_parallel",
            title=f"DataParallel drives {len(found.devices)} devices from one process",
            why=(
                "In every step it copies the model to each device, scatters the batch, gathers the outputs on the "
                f"first one and launches everything from threads that share Python's lock: {format_ns(cost)} per step "
                "on the device that loses most."
            ),
            fix=paragraphs(remedy(_FIX, facts.workload)),
            cost_ns_per_step=cost,
            saving_ns_per_step=cost,
            predicted_step_ns=max(step - cost, 0),
            evidence=slices_as_evidence(facts, inside.tolist()),
            basis="modelled",
            confidence="medium",
        )
    ]


def _is_data_parallel(name: str) -> bool:
    return bool(_NAMES.search(name[:300]))
