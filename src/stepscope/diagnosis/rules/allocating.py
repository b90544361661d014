"""allocator_bound: the device waits while memory is taken from the driver and given back, step after step.

Statement: the accounting books idle time to ``allocator`` (cudaMalloc, cudaFree and their like) in at least
``RECURS_SHARE`` of the used steps, and in more than one: the first step always allocates.
"""

from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import host_finding, host_work, in_words, often_enough
from stepscope.diagnosis.remedies import ALLOCATIONS, remedy
from stepscope.limits import RECURS_SHARE


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    if facts.allocator_calls is not None and facts.allocator_calls.recur:
        return []  # memory runs out: ``allocator_retries`` says so
    found = []
    for account in facts.working:
        work = host_work(facts, account, Category.ALLOCATOR)
        if work is not None and often_enough(facts, work, RECURS_SHARE):
            found.append(
                host_finding(
                    facts,
                    {Category.ALLOCATOR: work},
                    rule="allocator_bound",
                    title="Memory is allocated anew in every step",
                    why=in_words(facts, work, "the host takes memory from the driver or gives it back"),
                    fix=remedy(ALLOCATIONS, facts.trace.info.framework),
                )
            )
    return found
