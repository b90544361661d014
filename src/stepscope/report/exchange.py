"""What a report has of collectives: counts, sizes, times and bandwidths, of a job or of one profile alone."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope.analysis.facts import Facts
from stepscope.analysis.workload import Purpose
from stepscope.cluster.bandwidth import Traffic, traffic
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.partial import reduce
from stepscope.diagnosis.engine import Diagnosis
from stepscope.report import gradients

_SHOWN = 200


def of_job(facts: JobFacts, parameters: int | None) -> dict[str, Any]:
    """The analyses of a job; ``parameters`` of its model, where they were given."""
    return {"collectives": _entries(facts)} | gradients.of_job(facts, parameters)


def of_profile(facts: Facts, diagnosis: Diagnosis, parameters: int | None) -> dict[str, Any]:
    """The same of one profile, if it has any collectives: of a rank whose peers are not here transfers are bounds; the
    devices of one process share a clock."""
    alone = combine([reduce(facts, diagnosis, "", None)])
    table = alone.partials[0].collectives
    learns = facts.workload.is_for((Purpose.TRAINING,))
    found = gradients.of_profile(table, facts, parameters) if (learns and len(table)) or parameters is not None else {}
    return found | ({"collectives": _entries(alone)} if len(table) else {})


def _entries(facts: JobFacts) -> list[dict[str, Any]]:
    return [_entry(facts, one) for one in traffic(facts)[:_SHOWN]]


def _entry(facts: JobFacts, one: Traffic) -> dict[str, Any]:
    told = any(partial.rank is not None for partial in facts.partials) or len(facts.partials) > 1
    return dataclasses.asdict(one) | {"kind": str(one.kind), "ranks": list(one.ranks) if told else []}
