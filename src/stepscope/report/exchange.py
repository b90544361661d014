"""What a report has of collectives: counts, sizes, times and bandwidths, of a job or of one profile alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stepscope.analysis.exchange.asked import Asked
from stepscope.analysis.facts import Facts
from stepscope.analysis.workload import Purpose
from stepscope.diagnosis.engine import Diagnosis
from stepscope.report import gradients

if TYPE_CHECKING:
    from stepscope.cluster.bandwidth import Traffic
    from stepscope.cluster.job import JobFacts

_SHOWN = 200


def of_job(facts: JobFacts, asked: Asked) -> dict[str, Any]:
    """The analyses of a job."""
    return {"collectives": _entries(facts, asked)} | gradients.of_job(facts, asked)


def of_profile(facts: Facts, diagnosis: Diagnosis, asked: Asked) -> dict[str, Any]:
    """The same of one profile, if it has any collectives: of a rank whose peers are not here transfers are bounds; the
    devices of one process share a clock."""
    if not len(facts.collectives) and asked.parameters is None:
        return {}
    from stepscope.cluster.job import combine  # What few profiles need is not loaded for the others.
    from stepscope.cluster.partial import reduce

    alone = combine([reduce(facts, diagnosis, "", None)])
    table = alone.partials[0].collectives
    learns = facts.workload.is_for((Purpose.TRAINING,))
    wanted = (learns and len(table)) or asked.parameters is not None
    found = gradients.of_profile(table, facts, asked) if wanted else {}
    return found | ({"collectives": _entries(alone, asked)} if len(table) else {})


def _entries(facts: JobFacts, asked: Asked) -> list[dict[str, Any]]:
    from stepscope.cluster.bandwidth import traffic

    return [_entry(facts, one) for one in traffic(facts, asked.bandwidth)[:_SHOWN]]


def _entry(facts: JobFacts, one: Traffic) -> dict[str, Any]:
    told = any(partial.rank is not None for partial in facts.partials) or len(facts.partials) > 1
    return dataclasses.asdict(one) | {"kind": str(one.kind), "ranks": list(one.ranks) if told else []}
