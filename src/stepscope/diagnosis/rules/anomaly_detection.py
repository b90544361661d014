from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.steps import begun_in
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.rule import Rule
from stepscope.trace import intervals as iv
from stepscope.trace.codes import distinct, mapped, marked
from stepscope.trace.forest import outermost
from stepscope.trace.tables import Bools, Kind
from stepscope.units import format_mean, format_ns
from stepscope.whatif.change import Change

RULE = Rule(
    id="anomaly_detection",
    scope="host",
    pages=("ops",),
    finds="PyTorch's anomaly detection is on: every gradient is searched for NaN.",
    statement="""\
`aten::isnan` directly within autograd's own evaluation of a node, in the used steps: the engine searches a gradient
for NaN only while anomaly detection is on. The cost is the time of these searches, and of the stacks that each forward
op then formats (`traceback.py: format_stack` directly within an op, where Python frames were recorded).""",
    needs="Host ops.",
    cure="A step without the searches, their waits and the formatting; what they compute on a device stays.",
    example="`torch.autograd.set_detect_anomaly(True)` left from a hunt for NaN.",
    host_bound=True,
)

_NODE = "autograd::engine::evaluate_function: "
_SEARCHES = frozenset(("aten::isnan", "aten::any", "aten::_is_any_true", "aten::item", "aten::is_nonzero"))
_FIX = """\
Leave `torch.autograd.set_detect_anomaly(True)` out once the NaN is found, or `torch.autograd.detect_anomaly()`, or
Lightning's `Trainer(detect_anomaly=True)`. To watch for NaN without it, look at the loss every N steps."""


def find(facts: Facts) -> list[Finding]:
    """One finding."""
    slices, strings = facts.trace.slices, facts.trace.strings
    code = facts.trace.strings.index("aten::isnan") if "aten::isnan" in strings else -1
    if code < 0 or not facts.used_ns:
        return []
    searches = _searches(facts, (slices.name == code) & (slices.kind == Kind.HOST_OP))
    if not searches.any():
        return []
    formatting = _formatting(facts)
    chosen = searches | formatting
    rows = np.flatnonzero(chosen & begun_in(facts.trace, facts.markers, facts.used))
    spans = {
        track: iv.of(slices, mine)
        for track in distinct(slices.track[rows])
        for mine in (rows[slices.track[rows] == track],)
    }
    cost = facts.per_step(sum(map(iv.measure, spans.values())))
    if not cost:
        return []
    number = (slices.name[rows] == code).sum() / len(facts.used)
    waits = np.flatnonzero((slices.kind == Kind.SYNC) & (outermost(searches, slices.parent) >= 0))
    longest = rows[np.argsort(-slices.dur_ns[rows], kind="stable")]
    return [
        Finding(
            rule=RULE.id,
            title="Anomaly detection is on: every gradient is searched for NaN",
            why=(
                f"{format_mean(number)} gradients per step are searched for NaN, and each op of the forward pass "
                f"writes down where it was called: the host takes {format_ns(cost)} per step for "
                + ("both." if formatting[rows].any() else "the first; what the second takes was not recorded.")
            ),
            fix=_FIX,
            cost_ns_per_step=cost,
            saving_ns_per_step=cost,
            change=Change(host=spans, waits=frozenset(waits.tolist())),
            confidence="high",
            evidence=slices_as_evidence(facts, longest[:3].tolist()),
        )
    ]


def _searches(facts: Facts, isnan: Bools) -> Bools:
    """What the engine does to search a gradient: ops directly within a node in which it asks for NaN."""
    slices, strings = facts.trace.slices, facts.trace.strings
    is_node = mapped(slices.name, strings, lambda name: name.startswith(_NODE), np.bool_)
    within = isnan & (slices.parent >= 0) & is_node[slices.parent]
    asked = marked(slices.parent[within], len(slices) + 1)
    asked[-1] = False
    part = mapped(slices.name, strings, lambda name: name in _SEARCHES, np.bool_) & (slices.kind == Kind.HOST_OP)
    return np.asarray(part & asked[slices.parent])


def _formatting(facts: Facts) -> Bools:
    """Stacks that ops format: Python called by C++."""
    slices, strings = facts.trace.slices, facts.trace.strings
    formats = mapped(
        slices.name, strings, lambda name: "traceback.py(" in name and name.endswith(": format_stack"), np.bool_
    )
    by_op = (slices.parent >= 0) & (slices.kind[slices.parent] == Kind.HOST_OP)
    return np.asarray(formats & (slices.kind == Kind.PYTHON_FRAME) & by_op)
