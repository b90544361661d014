from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.balance import balance, worth_telling
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import booked, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.regex import regex
from stepscope.trace.codes import among, mapped
from stepscope.units import format_ns

RULE = Rule(
    id="data_parallel",
    scope="process",
    pages=("ranks",),
    tells=(Category.LAUNCH,),
    tells_beside=True,
    finds="Torch.nn.DataParallel copies the model to every device in every step.",
    statement="""\
A module or function of `torch.nn.DataParallel` was recorded in the used steps, and more than one device computes. What
it costs is what devices spend on copies between them and on collectives that nothing hides, and on waiting for a thread
that launches for others: with a process per device the first shrink to one all-reduce and the last goes. Each process
still launches its own kernels, so that waiting for launches stays, but for what threads take from each other by sharing
Python's lock, which no profile says: where that is all there may be, no saving is told.""",
    needs="Python frames or modules, of a process with several devices.",
    cure="A process per device: to first order.",
    example="`torch.nn.DataParallel(model)`.",
)

_NAMES = regex(r"^(?:nn\.Module: )?DataParallel(?:_\d+|\.forward)?$|nn/parallel/(?:data_parallel|parallel_apply)\.py")
_EXCHANGE = Category.COLLECTIVE, Category.COPY_P2P
_UNTOLD = (
    "how much of that the threads take from each other by sharing Python's lock was not recorded, and each process "
    "launches its own kernels all the same; time a run with the fix"
)

_FIX: Remedies = {
    None: (
        "Use a process per device instead of threads in one:",
        RemedyPart("    torchrun --nproc-per-node=gpu main.py", since=(1, 10)),
        RemedyPart("    python -m torch.distributed.launch --nproc_per_node=8 main.py", before=(1, 10)),
        RemedyPart(
            """\
    model = torch.nn.parallel.DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])
The model then stays on its device, and only gradients travel, while the backward pass computes.""",
            purposes=TRAINS,
        ),
        RemedyPart(
            "The model then stays on its device, and each process works on inputs of its own: nothing travels.",
            purposes=INFERS,
            certain=True,
        ),
    ),
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device: the one that loses least sets the step."""
    slices = facts.trace.slices
    named = np.flatnonzero(mapped(slices.name, facts.trace.strings, _is_data_parallel, np.bool_))
    uneven = balance(facts) if named.size and facts.mean_step_ns else None
    if uneven is None:
        return []
    moved = {account.rows.device: booked(facts, account, *_EXCHANGE) for account in facts.working}
    exchange = [moved[device] for device in uneven.devices]
    lost = [sent + turns for sent, turns in zip(exchange, uneven.others_ns, strict=True)]
    inside = named[among(np.searchsorted(facts.markers.start, slices.start_ns[named], "right") - 1, facts.used)]
    told = Finding(
        rule=RULE.id,
        title=f"DataParallel drives {len(uneven.devices)} devices from one process",
        why="",
        fix=paragraphs(remedy(_FIX, facts.workload)),
        cost_ns_per_step=None,
        saving_ns_per_step=None,
        evidence=slices_as_evidence(facts, inside.tolist()),
        basis="modelled",
        confidence="medium",
    )
    if worth_telling(facts, max(lost)):
        return [
            replace(
                told,
                device=device,
                why=_DOES + _costs(sent, turns) + _beside(beside),
                cost_ns_per_step=sent + turns,
                saving_ns_per_step=sent + turns,
            )
            for device, sent, turns, beside in zip(
                uneven.devices, exchange, uneven.others_ns, uneven.beside_ns, strict=True
            )
        ]
    most = max(uneven.beside_ns)
    if not worth_telling(facts, most):
        return []
    device = uneven.devices[uneven.beside_ns.index(most)]
    why = _DOES.replace(":", ".") + _beside(most)
    return [replace(told, device=device, why=why, cost_ns_per_step=most, not_determined=_UNTOLD)]


_DOES = (
    "In every step it copies the model to each device, scatters the batch, gathers the outputs on the first one and "
    "launches everything from threads of one process:"
)


def _costs(sent_ns: int, turns_ns: int) -> str:
    parts = (
        (sent_ns, "of copies and collectives that nothing hides"),
        (turns_ns, "of waiting while the thread launches for other devices"),
    )
    told = " and ".join(f"{format_ns(ns)} {words}" for ns, words in parts if ns)
    return f" {told or 'nothing'} per step on this device."


def _beside(beside_ns: int) -> str:
    if not beside_ns:
        return ""
    return (
        f" For {format_ns(beside_ns)} per step a device waits for launches while another thread launches too; both "
        "need Python's lock."
    )


def _is_data_parallel(name: str) -> bool:
    return bool(_NAMES.search(name[:300]))
