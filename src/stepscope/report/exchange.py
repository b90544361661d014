"""``analyses.collectives`` and ``analyses.gradients``: what devices exchange."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stepscope.analysis.exchange.asked import Asked
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Diagnosis

if TYPE_CHECKING:
    from stepscope.cluster.exchange import ReportedExchange
    from stepscope.cluster.job import JobFacts


def of_job(facts: JobFacts, asked: Asked) -> dict[str, Any]:
    """The analyses of a job."""
    from stepscope.cluster import exchange

    return _entries(exchange.of_job(facts, asked))


def of_profile(facts: Facts, diagnosis: Diagnosis, asked: Asked) -> dict[str, Any]:
    """The same of one profile, if it has any collectives."""
    if not len(facts.collectives) and asked.parameters is None:
        return {}
    from stepscope.cluster import exchange  # What few profiles need is not loaded for the others.

    return _entries(exchange.of_profile(facts, diagnosis, asked))


def _entries(found: ReportedExchange) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if found.collectives is not None:
        made["collectives"] = [
            dataclasses.asdict(one) | {"kind": str(one.kind), "ranks": list(one.ranks) if found.ranks_known else []}
            for one in found.collectives
        ]
    if found.gradients is not None:
        made["gradients"] = dataclasses.asdict(found.gradients)
    return made
