"""The one list of rules. A rule is a function from facts to findings; each lives in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.rules import (
    allocating,
    between_steps,
    exposed_collective,
    exposed_copy,
    graph_building,
    input_bound,
    launch_bound,
    recompilation,
    slow_steps,
    sync_bound,
    tensor_cores,
    transfer,
)

RULES: tuple[Callable[[Facts], list[Finding]], ...] = (
    input_bound.find,
    between_steps.find,
    allocating.find,
    recompilation.find,
    graph_building.find,
    transfer.find,
    sync_bound.find,
    launch_bound.find,
    exposed_copy.find,
    exposed_collective.find,
    tensor_cores.find,
    slow_steps.find,
)
