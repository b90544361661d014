from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.dispatch import waited_for
from stepscope.diagnosis.evidence import SHOWN, placed, shares
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.names.compiled_code import compiled_frame, resumed_at
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import is_outermost
from stepscope.trace.tables import Kind
from stepscope.units import format_times

RULE = Rule(
    id="graph_breaks",
    scope="device",
    pages=("ops",),
    tells=(Category.LAUNCH,),
    tells_beside=True,
    finds="A function that torch.compile made runs in pieces, with eager ops between them.",
    statement="""\
Within a step two or more compiled regions of different frames (Dynamo numbers them `frame/recompilation`) follow each
other on the main thread, ops run eagerly between them, and neither backward nor optimizer does. The cost is what the
device waits for those eager ops to be dispatched. Two functions compiled on purpose look the same, unless the frames
say where a graph was resumed: without those the basis is a heuristic.""",
    needs="PyTorch's marks of compiled regions; Python frames, for the place.",
    cure="A step without dispatching the ops between the pieces.",
    example="`print(x.sum())` inside a function that `torch.compile` made.",
)

_FIX: Remedies = {
    None: (
        RemedyPart("Remove what breaks the graph: `TORCH_LOGS=graph_breaks` names each reason and line.", since=(2, 1)),
        RemedyPart("Remove what breaks the graph: `torch._dynamo.explain` names each reason and line.", before=(2, 1)),
        """\
Most are reads of a value (`.item()`, `print`, `if tensor:`), calls into code that cannot be traced, and changes of
Python objects outside the function. Then let a break be an error, so that none comes back:
    model = torch.compile(model, fullgraph=True)""",
    ),
}
"""Only what ``torch.compile`` made has graph breaks."""


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    between = _between_regions(facts)
    if not len(between[0]):
        return []
    told = dict.fromkeys(place for name in facts.trace.strings if (place := resumed_at(name)))
    findings = []
    for activity, account in facts.devices:
        starts = np.where(activity.launched, facts.trace.slices.start_ns[activity.call], -1)
        inside = np.searchsorted(between[0], starts, "right") - 1
        broken = (inside >= 0) & (starts < between[1][inside]) & (starts >= 0)
        waited = waited_for(facts, account, activity, broken)
        if not waited.cost_ns_per_step:
            continue
        resumed = f" Graphs are resumed in {', '.join(list(told)[:SHOWN])}." if told else ""
        findings.append(
            Finding(
                rule=RULE.id,
                device=activity.device,
                title="Graph breaks leave ops outside of the compiled code",
                why=(
                    f"{format_times(len(between[0]) / len(facts.used))} per step one compiled region ends, ops run "
                    f"eagerly, and another region begins; the device waits for the launches between.{resumed}"
                    + shares(facts, waited.places, "The waiting")
                ),
                fix=paragraphs(remedy(_FIX, facts.workload)),
                basis="measured" if told else "heuristic",
                confidence="high" if told else "low",
                cost_ns_per_step=waited.cost_ns_per_step,
                saving_ns_per_step=waited.cost_ns_per_step,
                change=waited.change(facts),
                where=placed(facts, waited.places),
            )
        )
    return findings


def _between_regions(facts: Facts) -> iv.Intervals:
    """Stretches of the main thread between two compiled regions of a used step in which ops run, but no backward."""
    trace, slices = facts.trace, facts.trace.slices
    frame = mapped(slices.name, trace.strings, _frame, np.int64)
    region = frame > 0
    if np.unique(frame[region]).size < 2:
        return iv.EMPTY
    rows = np.flatnonzero(is_outermost(region, slices.parent))
    rows = rows[slices.track[rows] == facts.host.main]
    step = np.searchsorted(facts.markers.start, slices.start_ns[rows], "right") - 1
    begin, end = (slices.start_ns + slices.dur_ns)[rows][:-1], slices.start_ns[rows][1:]
    chosen = (step[1:] == step[:-1]) & among(step[1:], facts.used) & (frame[rows][1:] != frame[rows][:-1])
    eager = (slices.kind == Kind.HOST_OP) & (slices.track == facts.host.main) & ~region
    eager &= ~mapped(slices.name, trace.strings, _is_dynamos, np.bool_)
    other = mapped(slices.name, trace.strings, _is_other_phase, np.bool_)
    chosen &= _holds(slices.start_ns[eager], begin, end) & ~_holds(slices.start_ns[other], begin, end)
    return begin[chosen], end[chosen]


def _holds(points: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    ordered = np.sort(points)
    return np.asarray(np.searchsorted(ordered, end) > np.searchsorted(ordered, begin))


def _frame(name: str) -> int:
    """One more than the number of the frame, 0 for others."""
    number = compiled_frame(name)
    return 0 if number is None else number + 1


def _is_dynamos(name: str) -> bool:
    return name.startswith("TorchDynamo")


def _is_other_phase(name: str) -> bool:
    return name.startswith(("autograd::engine", "Optimizer."))
