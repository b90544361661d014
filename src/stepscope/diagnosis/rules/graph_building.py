from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import Cause, cause_findings
from stepscope.diagnosis.remedies import JAX, LAZY_GRAPH, TENSORFLOW
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_share

RULE = Rule(
    id="graph_building",
    scope="device",
    pages=("ops",),
    tells=(Category.GRAPH_BUILD,),
    finds="The device waits while the host builds the step's graph.",
    statement="""\
The accounting books idle time to `graph_build` in a framework that builds its graph anew in every step (PyTorch/XLA),
in at least `RECURS_SHARE` of the used steps and in more than one; in fewer it is a finding from `SEEN_ONCE_SHARE` of
them and says how often it was seen. With JAX and TensorFlow building a graph again is `recompilation`.""",
    shared_limits=("RECURS_SHARE", "SEEN_ONCE_SHARE"),
    needs="The framework's ranges (PyTorch/XLA).",
    cure="A step without building its graph.",
    example="A loop of PyTorch/XLA with thousands of small ops per step.",
    host_bound=True,
    makes_late="host",
)

_CAUSES = {
    Category.GRAPH_BUILD: Cause(
        title="Building the graph holds up the device",
        doing="the host builds the graph of the step",
        fix=LAZY_GRAPH,
        share=RECURS_SHARE,
    )
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    if facts.trace.info.framework in (JAX, TENSORFLOW):
        return []
    hidden = _hidden(facts)
    return [replace(finding, why=finding.why + hidden) for finding in cause_findings(facts, _CAUSES, rule=RULE.id)]


def _hidden(facts: Facts) -> str:
    building = facts.xla.building if facts.xla else None
    if building is None:
        return ""
    return f" The device works through {format_share(building.overlapped_ns / building.ns)} of all graph building."
