from __future__ import annotations

from stepscope.cluster.job import JobFacts
from stepscope.cluster.links import slow_links
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import INFERS, JAX, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_ns

RULE = Rule(
    id="rank_skew",
    scope="job",
    pages=("ranks",),
    finds="Ranks wait for each other, now for one and now for another.",
    statement="""\
What ranks, but the one that waits least, wait in collectives with nothing else to do for whoever comes last, beyond
what they wait for stragglers and for ranks behind a slow link. Nobody is to blame more often than chance explains; who
may be (`SUSPECT_SIGNIFICANCE`) is named. Predicted is a step without that waiting, which no real job reaches: batches
and hosts always differ a little.""",
    shared_limits=("SUSPECT_SIGNIFICANCE",),
    needs="Profiles of several ranks over the same steps.",
    cure="A step without that waiting, which no real job reaches.",
    example="Batches of differing lengths on every rank.",
)

_EVEN = """\
Even out the work of a step: batches of equal length (bucket by length, pack sequences), fixed shapes instead of padding
to each batch's longest, no host work that strikes ranks at different times (logging, garbage collection, saving: let
all ranks do it in the same step)."""
_PINNED = """\
Where hosts launch late now and then, keep their processes apart: cores of its own for each rank (`taskset`, `numactl`),
and fewer threads in each."""
_LESS_OFTEN = "A larger batch makes ranks meet less often."
_CURE: Remedies = {
    TENSORFLOW: (
        _EVEN,
        """\
Where launches are late now and then, because threads that preprocess take the cores, give each device launching threads
of its own and the rest fewer:
    TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2
    options = tf.data.Options(); options.threading.private_threadpool_size = 8
A larger batch makes waiting for each other a smaller part of the step.""",
    ),
    PYTORCH: (
        _EVEN,
        _PINNED,
        RemedyPart("    OMP_NUM_THREADS=4 torchrun ...", since=(1, 10)),
        RemedyPart("    OMP_NUM_THREADS=4 python -m torch.distributed.launch ...", before=(1, 10)),
        "and `gc.freeze()`, so that ranks do not collect garbage in turn.",
        RemedyPart("A larger batch, or several under `model.no_sync()`, makes ranks meet less often.", purposes=TRAINS),
        RemedyPart(_LESS_OFTEN, purposes=INFERS, certain=True),
    ),
    JAX: (
        _EVEN,
        _PINNED,
        "A larger batch, or several steps in one `jax.lax.scan`, makes ranks meet less often.",
    ),
    None: (_EVEN, _PINNED, _LESS_OFTEN),
}


def find(facts: JobFacts) -> list[Finding]:
    """At most one finding."""
    if facts.blame is None or facts.sampled or not facts.blame.determined:
        return []
    blame = facts.blame
    behind = {rank for one in slow_links(facts) for rank in one.ranks}
    known = {at for at, lane in enumerate(blame.lanes) if facts.ranks[lane.partial] in behind}
    known |= {one.lane for one in blame.stragglers}
    rest = blame.rest(known)
    if rest < 1:
        return []
    lasts = len({int(blame.cost[:, at].argmax()) for at in blame.counted})
    apart = "The other ranks" if known else "Ranks"
    leads = None if blame.suspect is None else facts.name(blame.lanes[blame.suspect])
    often = f"for {leads} more often than others" if leads is not None else "now for one and now for another"
    finding = Finding(
        rule=RULE.id,
        title=f"{apart} wait for each other, {often}",
        why=(
            f"They wait {format_ns(round(rest))} per step on average for whoever comes last to a collective; "
            f"{lasts} different {'ranks do' if lasts > 1 else 'rank does'} in {len(blame.counted)} steps, "
            f"{_most_often(facts)}."
        ),
        fix=paragraphs(remedy(_CURE, facts.partials[0].workload)),
        cost_ns_per_step=round(rest),
        saving_ns_per_step=round(rest),
        basis="modelled",
        confidence="low",
    )
    return [finding]


def _most_often(facts: JobFacts) -> str:
    assert facts.blame is not None
    blame, lane = facts.blame, facts.blame.suspect
    if lane is None:
        return "none more often than chance explains"
    times = sum(int(blame.cost[:, at].argmax()) == lane for at in blame.counted)
    return (
        f"{facts.name(blame.lanes[lane])} in {times} of them: more than the others, but chance may explain it "
        f"(p = {blame.p_values[lane]:.2g}). Record more steps to tell"
    )
