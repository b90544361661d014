from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.analysis.once import warm_up_ranges
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import Cause, cause_findings
from stepscope.diagnosis.remedies import ALLOCATIONS
from stepscope.diagnosis.rule import Rule

RULE = Rule(
    id="allocator_bound",
    scope="device",
    pages=("memory",),
    tells=(Category.ALLOCATOR,),
    finds="The device waits while memory is taken from the driver and given back.",
    statement="""\
The accounting books idle time to `allocator` (cudaMalloc, cudaFree and their like) in at least `RECURS_SHARE` of the
used steps, and in more than one; in fewer it is a finding from `SEEN_ONCE_SHARE` of them and says how often it was
seen, since the first step always allocates. What lies in ranges that the program calls its warm-up does not count: it
is what they are for.""",
    shared_limits=("RECURS_SHARE", "SEEN_ONCE_SHARE"),
    needs="Calls of the device's runtime.",
    cure="A step without taking memory from the driver.",
    example="`torch.cuda.empty_cache()` in every step, or batches of ever new sizes.",
    makes_late="host",
    tried_for=("PyTorch", "JAX"),
)

_CAUSES = {
    Category.ALLOCATOR: Cause(
        title="Memory is allocated anew while steps run",
        doing="the host takes memory from the driver or gives it back",
        fix=ALLOCATIONS,
        share=RECURS_SHARE,
        but=lambda facts: warm_up_ranges(facts.trace),
    )
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    if facts.allocator_calls is not None and facts.allocator_calls.recur:
        return []  # memory runs out: ``allocator_retries`` says so
    return cause_findings(facts, _CAUSES, rule=RULE.id)
