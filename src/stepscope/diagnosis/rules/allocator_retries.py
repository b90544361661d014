from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.allocator import AllocatorCalls
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import HostWork, host_finding, host_work, in_words
from stepscope.diagnosis.remedies import JAX, PYTORCH, SEGMENTS, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_bytes, format_count, format_share

RULE = Rule(
    id="allocator_retries",
    scope="device",
    pages=("memory",),
    tells=(Category.ALLOCATOR,),
    tells_beside=True,
    finds="The device's memory is so full that the allocator gives back its cache and asks again.",
    statement="""\
In more than one used step a request to the driver (`cudaMalloc` and its like) is followed, in the same op, by frees and
another request: the first one failed (inferred: no profile records what a call returns). The cost is what the
accounting books to `allocator`; waits that the frees bring about are those of `sync_bound`.""",
    needs="Calls of the device's runtime.",
    cure="A step without asking, freeing and asking again.",
    example="A batch so large that `cudaMalloc` fails, and the cache is given back in every step.",
    makes_late="host",
    tried_for=("PyTorch", "JAX"),
)

SHORT_OF_MEMORY: Remedies = {
    PYTORCH: (
        "Let the allocator use what it holds for other sizes, then need less of it: a smaller batch,",
        RemedyPart("activation checkpointing,", purposes=TRAINS),
        "fewer tensors kept alive, shapes that stay the same (pad or bucket).",
        *SEGMENTS,
    ),
    JAX: (
        "Need less at once: a smaller batch,",
        RemedyPart("`jax.checkpoint` around layers,", purposes=TRAINS),
        "and `jax.jit(step, donate_argnums=0)` so that what is overwritten is not kept beside its successor.",
    ),
    TENSORFLOW: (
        "Need less at once: a smaller batch,",
        RemedyPart("`tf.recompute_grad` around layers,", purposes=TRAINS),
        """\
shapes that stay the same; or let memory be used for other sizes with `TF_GPU_ALLOCATOR=cuda_malloc_async`.""",
    ),
    None: (
        "Need less memory at once: a smaller batch,",
        RemedyPart("recomputed activations,", purposes=TRAINS),
        "shapes that stay the same.",
    ),
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    calls = facts.allocator_calls
    if calls is None or not calls.recur or not facts.activities:
        return []
    works = [(account.rows.device, host_work(facts, account, Category.ALLOCATOR)) for account in facts.working]
    return [_finding(facts, calls, work, device) for device, work in works if work is not None]


def _finding(facts: Facts, calls: AllocatorCalls, work: HostWork, device: int | None) -> Finding:
    text = (
        f"In {format_count(calls.retried_steps)} of {format_count(len(facts.used))} steps the driver refused "
        f"{format_count(calls.retries)} requests for memory: each time the allocator gave back what it had cached "
        f"({format_count(calls.freed)} frees) and asked again. "
    )
    told = in_words(facts, work, "the host takes memory from the driver or gives it back")
    finding = host_finding(
        facts,
        {Category.ALLOCATOR: work},
        rule=RULE.id,
        title="Memory runs out, and the allocator frees and asks again",
        why=text + told + _held(facts, device),
        fix=remedy(SHORT_OF_MEMORY, facts.workload),
    )
    return replace(finding, basis="heuristic", confidence="medium")


def _held(facts: Facts, device: int | None) -> str:
    """What of the allocator's memory is unused at the peak, where that was recorded."""
    use = next((use for use in facts.memory if use.fragmentation and use.pool.device == device), None)
    if use is None or use.fragmentation is None:
        return ""
    share = format_share(use.fragmentation.share)
    return (
        f" When most is in use, the allocator holds {format_bytes(use.peak.reserved)}, of which "
        f"{format_bytes(use.fragmentation.free_bytes)} ({share}) is not in use."
    )
