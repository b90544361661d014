from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.places import find_places
from stepscope.diagnosis.dispatch import prologue_time
from stepscope.diagnosis.evidence import SHOWN, placed, shares, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, PYTORCH, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.trace import intervals as iv
from stepscope.units import format_ns, format_times
from stepscope.whatif.change import Change

RULE = Rule(
    id="compiled_prologue",
    scope="device",
    pages=("ops",),
    tells=(Category.LAUNCH,),
    finds="Compiled code takes long until its first launch, and the device waits for it.",
    statement="""\
Idle time that the accounting books to `launch` while a thread is in a region of compiled code (PyTorch's marks of
`torch.compile`: looking up what was compiled, checking guards, the wrappers around the graph) and has launched nothing
in it yet, in at least `LAUNCH_SHARE` of the step. Compiling itself is not part of it, nor are ops that compute on the
host.""",
    shared_limits=("LAUNCH_SHARE",),
    needs="PyTorch's marks of compiled code, and launches.",
    cure="A step in which compiled code launches at once.",
    example="A compiled model with thousands of guarded parameters.",
)

_CURE: Remedies = {
    PYTORCH: (
        """\
Before its first launch compiled code checks its guards and handles every argument, parameters and buffers among them:
the time grows with their number and with the number of compiled regions. Compile one region in place of many (the whole
model or step), and pass fewer tensors (one stacked tensor in place of a list, no dictionaries of them).
`TORCH_LOGS=guards` lists what is checked.""",
        RemedyPart(
            """\
Once every shape was seen, guards that can be left out are, at your own risk:
    torch.compiler.set_stance(skip_guard_eval_unsafe=True)""",
            since=(2, 6),
        ),
        RemedyPart(
            """\
Weights that do not change can be part of the compiled code: `torch._inductor.config.freezing = True` before compiling,
under `torch.no_grad()`.""",
            purposes=INFERS,
            since=(2, 1),
        ),
    ),
    None: "Compile one region in place of many, and hand fewer arguments to it.",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    if not facts.prologues.slice.size:
        return []
    return [made for _, account in facts.devices if (made := _finding(facts, account))]


def _finding(facts: Facts, account: Account) -> Finding | None:
    prologues = facts.prologues
    spans = prologue_time(facts, account)
    waited = np.zeros(prologues.slice.size, np.int64)
    for thread, idle in spans.items():
        mine = prologues.track == thread
        waited[mine] = iv.covered_between(idle, prologues.start[mine], prologues.end[mine])
    cost = facts.per_step(int(waited.sum()))
    if not cost:
        return None
    held = np.flatnonzero(waited)
    slices = prologues.slice[held[np.argsort(-waited[held], kind="stable")]]
    places = find_places(facts.locator, prologues.slice[held].astype(np.int32), waited[held], own_names=True)
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title="Compiled code takes long until its first launch",
        why=(
            f"{format_times(held.size / len(facts.used))} per step the device waits while a call of compiled code "
            "looks up what was compiled, checks guards and handles its arguments, and has launched nothing yet: "
            f"{format_ns(cost)} per step, at most {format_ns(int(waited.max()))} at a time. How much of it can go the "
            "profile does not say: the saving is the most to expect." + shares(facts, places, "The waiting")
        ),
        fix=paragraphs(remedy(_CURE, facts.workload)),
        basis="modelled",
        confidence="medium",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=Change(host=spans),
        where=placed(facts, places),
        evidence=slices_as_evidence(facts, slices[:SHOWN].tolist(), device=account.rows.device),
    )
