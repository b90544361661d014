from __future__ import annotations

from stepscope.cluster.job import JobFacts
from stepscope.cluster.links import SlowLink, slow_links
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import AMD, NVIDIA, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_count, format_ns, format_rate

RULE = Rule(
    id="slow_link",
    scope="job",
    pages=("ranks",),
    finds="A group of ranks exchanges the same data more slowly than the other groups like it.",
    statement="""\
Groups are alike where they have the same number of ranks on as many hosts, and exchange the same sizes by the same
collectives. Held against the others' median in the same step, from the moment the last rank has come, a group takes
`SLOW_LINK_TIMES` as long, in more steps than chance explains (`STRAGGLER_SIGNIFICANCE`, with the number of groups taken
into account), and by more than its clocks are uncertain. Only groups of which every rank was read can be compared. A
single group of all ranks has none to be compared with: a ring is as slow as its slowest link.""",
    shared_limits=("SLOW_LINK_TIMES", "STRAGGLER_SIGNIFICANCE"),
    needs="Profiles of all ranks of several groups alike.",
    cure="A step in which the group exchanges as fast as the others.",
    example="Four ranks whose traffic goes over one network card.",
)

_FIX: Remedies = {
    None: (
        "Something between these ranks is slower than between the others:",
        RemedyPart(
            """\
run `nccl-tests` (`all_reduce_perf -b 8M -e 256M`) on them alone, compare `nvidia-smi topo -m` and
`nvidia-smi nvlink --status`,""",
            vendors=NVIDIA,
        ),
        RemedyPart(
            """\
run `rccl-tests` (`all_reduce_perf -b 8M -e 256M`) on them alone, compare `amd-smi topology` and `amd-smi xgmi`,""",
            vendors=AMD,
            certain=True,
        ),
        RemedyPart("compare", vendors=("Intel", "Google", "AWS"), certain=True),
        "PCIe width and speed (`lspci -vv`), the NIC each was given and its error counters,",
        RemedyPart("and what `NCCL_DEBUG=INFO` says of the transport (P2P, SHM or NET).", vendors=(*NVIDIA, *AMD)),
        RemedyPart("and what the library of collectives logs.", vendors=("Intel", "Google", "AWS"), certain=True),
        "Place ranks that exchange most on the fastest links.",
    )
}
_TOLD = 4


def find(facts: JobFacts) -> list[Finding]:
    """One finding per slow group, the dearest first."""
    if facts.sampled:
        return []
    return [_finding(facts, one) for one in slow_links(facts)[:_TOLD]]


def _finding(facts: JobFacts, one: SlowLink) -> Finding:
    ranks = f"{', '.join(map(str, one.ranks[:8]))}{', …' if len(one.ranks) > 8 else ''}"
    hosts = f" ({', '.join(one.hosts[:4])})" if one.hosts else ""
    speed = ""
    if one.bandwidth is not None and one.usual_bandwidth is not None:
        speeds = [format_rate(rate, "B/s") for rate in (one.bandwidth, one.usual_bandwidth)]
        speed = f": {speeds[0]}, the others {speeds[1]}"
    return Finding(
        rule=RULE.id,
        title=f"Ranks {ranks} exchange data more slowly than the other groups like theirs",
        why=(
            f"Once all have come, their {one.kind.replace('_', '-')}s take {one.times:.2f} times as long as those of "
            f"{format_count(one.siblings)} other groups of as many ranks{speed}. That is {format_ns(one.excess_ns)} "
            f"per step, in {one.steps} steps{hosts}; for {format_ns(one.exposed_ns)} of it nothing hides it."
        ),
        fix=paragraphs(remedy(_FIX, facts.partials[0].workload)),
        cost_ns_per_step=one.exposed_ns,
        saving_ns_per_step=one.exposed_ns,
        confidence="high" if one.siblings > 1 else "medium",
        rank=one.ranks[0],
    )
