from __future__ import annotations

from typing import Final

from stepscope.cluster.job import JobFacts
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import PYTORCH, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.units import format_ns, format_share

BUBBLE_SHARE: Final = 0.05

RULE = Rule(
    id="pipeline_bubbles",
    scope="job",
    pages=("ranks",),
    finds="Stages of a pipeline wait for each other's micro-batches.",
    statement="""\
Ranks that send to, or receive from, one other rank wait in it with nothing else to do, on average for `BUBBLE_SHARE` of
the step. Of p stages and m micro-batches (p - 1) / (m + p - 1) of a step is bubble whatever the stages take (GPipe,
Huang et al. 2019); stages that are not equally long make more. Predicted is a step without it, which many micro-batches
approach.""",
    limits=(
        Limit(
            "BUBBLE_SHARE",
            BUBBLE_SHARE,
            """\
Bubbles of a pipeline are told from this share of the step: four stages have 3 % with 100 micro-batches.""",
        ),
    ),
    needs="Profiles of all stages over the same steps.",
    cure="A step without the bubbles, which many micro-batches approach.",
    example="Four stages with four micro-batches.",
)

_FIX: Remedies = {
    PYTORCH: (
        "Send more, smaller micro-batches through the pipeline (the bubble shrinks with their number),",
        RemedyPart(
            """\
use a schedule that interleaves (`Schedule1F1B`, `ScheduleInterleaved1F1B` of `torch.distributed.pipelining`),""",
            purposes=TRAINS,
            since=(2, 4),
        ),
        "and give stages equal times: move layers away from the one that waits least.",
    ),
    None: """\
Send more, smaller micro-batches through the pipeline (the bubble shrinks with their number), and give stages equal
times: move layers away from the one that waits least.""",
}


def find(facts: JobFacts) -> list[Finding]:
    """At most one finding."""
    step = facts.mean_step_ns or 0
    waits = {lane: ns for lane in facts.means if (ns := facts.pipeline_wait_ns(lane)) is not None}
    if facts.sampled or len(waits) < 2 or not step:
        return []
    mean = round(sum(waits.values()) / len(waits))
    if mean < BUBBLE_SHARE * step:
        return []
    least, most = min(waits, key=lambda lane: waits[lane]), max(waits, key=lambda lane: waits[lane])
    finding = Finding(
        rule=RULE.id,
        title="Stages of the pipeline wait for each other",
        why=(
            f"{len(waits)} stages wait {format_ns(mean)} per step on average ({format_share(mean / step)}) for what "
            f"their neighbours send: {facts.name(least)} least ({format_ns(waits[least])}), {facts.name(most)} most "
            f"({format_ns(waits[most])})."
        ),
        fix=paragraphs(remedy(_FIX, facts.partials[0].workload)),
        cost_ns_per_step=mean,
        saving_ns_per_step=mean,
        basis="modelled",
        confidence="low",
    )
    return [finding]
