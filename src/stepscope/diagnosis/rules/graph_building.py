"""graph_building: the device waits while the host builds the step's graph.

Statement: the accounting books idle time to ``graph_build`` in a framework that builds its graph anew in every step
(PyTorch/XLA), in at least ``RECURS_SHARE`` of the used steps and in more than one. With JAX and TensorFlow building a
graph again is ``recompilation``.
"""

from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import host_finding, host_work, in_words, often_enough
from stepscope.diagnosis.remedies import JAX, LAZY_GRAPH, TENSORFLOW, remedy
from stepscope.limits import RECURS_SHARE
from stepscope.units import format_share


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    if facts.trace.info.framework in (JAX, TENSORFLOW):
        return []
    found = []
    for account in facts.working:
        work = host_work(facts, account, Category.GRAPH_BUILD)
        if work is not None and often_enough(facts, work, RECURS_SHARE):
            found.append(
                host_finding(
                    facts,
                    {Category.GRAPH_BUILD: work},
                    rule="graph_building",
                    title="Building the graph holds up the device",
                    why=in_words(facts, work, "the host builds the graph of the step") + _hidden(facts),
                    fix=remedy(LAZY_GRAPH, facts.trace.info.framework),
                )
            )
    return found


def _hidden(facts: Facts) -> str:
    building = facts.xla.building if facts.xla else None
    if building is None:
        return ""
    return f" The device works through {format_share(building.overlapped_ns / building.ns)} of all graph building."
