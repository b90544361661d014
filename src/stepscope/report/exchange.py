"""What a report has of collectives: counts, sizes, times and bandwidths, of a job or of one profile alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from stepscope.analysis.exchange.asked import Asked
from stepscope.analysis.exchange.collectives import Collectives
from stepscope.analysis.facts import Facts
from stepscope.analysis.workload import Purpose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.diagnosis.remedies import TRAINS

if TYPE_CHECKING:
    from stepscope.cluster.bandwidth import Traffic
    from stepscope.cluster.gradients import Gradients
    from stepscope.cluster.job import JobFacts

_SHOWN = 200


def of_job(facts: JobFacts, asked: Asked) -> dict[str, Any]:
    """The analyses of a job."""
    return {"collectives": _entries(facts, asked)} | _gradients_of_job(facts, asked)


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
    found = _gradients_of_profile(table, facts, asked) if wanted else {}
    return found | ({"collectives": _entries(alone, asked)} if len(table) else {})


def _entries(facts: JobFacts, asked: Asked) -> list[dict[str, Any]]:
    from stepscope.cluster.bandwidth import traffic

    return [_entry(facts, one) for one in traffic(facts, asked.bandwidth)[:_SHOWN]]


def _entry(facts: JobFacts, one: Traffic) -> dict[str, Any]:
    told = any(partial.rank is not None for partial in facts.partials) or len(facts.partials) > 1
    return dataclasses.asdict(one) | {"kind": str(one.kind), "ranks": list(one.ranks) if told else []}


def _gradients_of_profile(table: Collectives, facts: Facts, asked: Asked) -> dict[str, Any]:
    """What the analyses of one profile say of it, if anything; the hosts of its peers are not known."""
    if asked.parameters is None and not facts.workload.is_for(TRAINS):
        return {}  # what such a program reduces are no gradients
    from stepscope.cluster.gradients import gradients  # Not loaded for profiles that reduce none.

    return _estimate(gradients(table, np.array(facts.used, np.int64), facts.trace.info, None, asked))


def _gradients_of_job(facts: JobFacts, asked: Asked) -> dict[str, Any]:
    """What the analyses of a job say of it, by its first rank."""
    from stepscope.cluster.gradients import gradients

    first, hosts = facts.partials[0], {partial.host for partial in facts.partials}
    one_host = False if len(hosts - {None}) > 1 else None if None in hosts or facts.missing else True
    return _estimate(gradients(first.collectives, np.flatnonzero(first.steps.used), first, one_host, asked))


def _estimate(found: Gradients | None) -> dict[str, Any]:
    return {} if found is None else {"gradients": dataclasses.asdict(found)}
