"""What devices exchange and what reducing gradients takes: of a job, or of one rank whose peers are not here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.exchange.asked import Asked
from stepscope.analysis.facts import Facts
from stepscope.analysis.workload import Purpose
from stepscope.cluster.bandwidth import Traffic, traffic
from stepscope.cluster.gradients import Gradients, gradients
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.partial import reduce
from stepscope.diagnosis.finding import Diagnosis
from stepscope.record import record

_SHOWN = 200


@record
class ReportedExchange:
    """What a report tells; None where there is nothing of it."""

    collectives: Sequence[Traffic] | None
    gradients: Gradients | None
    ranks_known: bool
    """Whether a rank can be named."""


def of_job(facts: JobFacts, asked: Asked) -> ReportedExchange:
    """Of a job; gradients by its first rank."""
    first, hosts = facts.partials[0], {partial.host for partial in facts.partials}
    one_host = False if len(hosts - {None}) > 1 else None if None in hosts or facts.missing else True
    estimate = gradients(first.collectives, np.flatnonzero(first.steps.used), first, one_host, asked)
    return _exchange(facts, asked, estimate)


def of_profile(facts: Facts, diagnosis: Diagnosis, asked: Asked) -> ReportedExchange:
    """Of one rank: transfers are bounds, as its peers are not here, nor are their hosts known; the devices of one
    process share a clock."""
    alone = combine([reduce(facts, diagnosis, "", None)])
    table = alone.partials[0].collectives
    learns = facts.workload.is_for((Purpose.TRAINING,))  # What other programs reduce are no gradients.
    wanted = (learns and len(table)) or asked.parameters is not None
    estimate = gradients(table, np.array(facts.used, np.int64), facts.trace.info, None, asked) if wanted else None
    return _exchange(alone, asked, estimate) if len(table) else ReportedExchange(None, estimate, ranks_known=False)


def _exchange(facts: JobFacts, asked: Asked, estimate: Gradients | None) -> ReportedExchange:
    told = any(partial.rank is not None for partial in facts.partials) or len(facts.partials) > 1
    return ReportedExchange(traffic(facts, asked.bandwidth)[:_SHOWN], estimate, told)
