"""``analyses.collectives`` and ``analyses.gradients``: what devices exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.exchange.asked import Asked
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Diagnosis
from stepscope.report.entries import plain

if TYPE_CHECKING:
    from stepscope.cluster.exchange import ReportedExchange
    from stepscope.cluster.job import JobFacts
    from stepscope.document.report import Analyses


def of_job(facts: JobFacts, asked: Asked) -> Analyses:
    """The analyses of a job."""
    from stepscope.cluster import exchange

    return _entries(exchange.of_job(facts, asked))


def of_profile(facts: Facts, diagnosis: Diagnosis, asked: Asked) -> Analyses:
    """The same of one profile, if it has any collectives."""
    if not len(facts.collectives) and asked.parameters is None:
        return {}
    from stepscope.cluster import exchange  # What few profiles need is not loaded for the others.

    return _entries(exchange.of_profile(facts, diagnosis, asked))


def _entries(exchanged: ReportedExchange) -> Analyses:
    made: Analyses = {}
    if exchanged.collectives is not None:
        made["collectives"] = [
            plain(one) | {"kind": str(one.kind), "ranks": list(one.ranks) if exchanged.ranks_known else []}
            for one in exchanged.collectives
        ]
    if exchanged.gradients is not None:
        made["gradients"] = plain(exchanged.gradients)
    return made
