from __future__ import annotations

from stepscope.analysis.workload import Workload
from stepscope.cluster.blame import Straggler
from stepscope.cluster.cause import Cause, OwnCause
from stepscope.cluster.job import JobFacts
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.limits import BOTTLENECK_SHARE
from stepscope.diagnosis.remedies import AMD, INFERS, NVIDIA, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_count, format_ns, format_share

RULE = Rule(
    id="straggler",
    scope="job",
    pages=("ranks",),
    finds="One rank is late step after step, and the others wait for it.",
    statement="""\
Over the steps, what the others wait for a rank exceeds what they wait for anyone else by more than chance makes of
ranks that are alike (one-sided t with the number of ranks taken into account, `STRAGGLER_SIGNIFICANCE`), and it is the
late one in at least `STRAGGLER_STEPS` of them. The others are those it exchanges data with, directly or through others.
A delay that was handed on is followed to where it began. Its own cause is what it spends more on than the median of the
others, where that explains `CAUSE_SHARE` of the delay. Predicted is a step in which it comes with the latest other.""",
    shared_limits=("STRAGGLER_SIGNIFICANCE", "STRAGGLER_STEPS", "CAUSE_SHARE"),
    needs="Profiles of several ranks over the same steps.",
    cure="A step in which the rank comes with the latest other.",
    example="One rank whose shard holds longer sequences.",
)

_TOLD = 4
_TITLES: dict[Cause, str] = {
    "input": "it waits for input longer",
    "slow_device": "its device is slower",
    "uneven_work": "it has more work",
    "host": "its host is slower",
    "link": "its transfers take longer",
    "unknown": "why is not determined",
}
_INPUT: Remedies = {
    None: """\
Look at what this rank reads: a slower disk or network path, larger files in its shard, other processes on its host.
Shard by size instead of by count, and give the loader more workers or a deeper prefetch there."""
}
_DEVICE: Remedies = {
    None: (
        """\
All its kernels take longer, so the device itself is slower: look at its clocks, power cap, temperature and other
processes""",
        RemedyPart("(`nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE`),", vendors=NVIDIA),
        RemedyPart("(`amd-smi metric`),", vendors=AMD, certain=True),
        "and swap it for another to see whether the delay moves with it.",
    )
}
_WORK: Remedies = {
    None: (
        "It is given more work than the others: balance batches by tokens or elements instead of samples,",
        RemedyPart("experts by load (capacity factor, auxiliary loss), pipeline stages by time.", purposes=TRAINS),
        RemedyPart(
            "experts by load (replicate those that are asked most), pipeline stages by time.",
            purposes=INFERS,
            certain=True,
        ),
    )
}
_HOST: Remedies = {
    TENSORFLOW: """\
Compare its host with the others: other processes, CPU pinning and power settings, NUMA placement of the process, work
that only the chief does (summaries, saving). Where threads that preprocess keep those from their cores that launch,
give each device launching threads of its own, and the input pipeline fewer:
    TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2
    options = tf.data.Options(); options.threading.private_threadpool_size = 8""",
    None: """\
Compare its host with the others: other processes, CPU pinning and power settings, NUMA placement of the process,
logging or saving that only this rank does. Work that only one rank does (`if rank == 0:`) belongs where nobody waits
for it: another thread, or fewer steps.""",
}
_LINK: Remedies = {
    None: (
        "Compare this rank's links with the others': cabling, PCIe width and speed, the NIC it was given",
        RemedyPart("(`nccl-tests` between pairs of nodes shows which), `NCCL_DEBUG=INFO`", vendors=NVIDIA),
        RemedyPart("(`rccl-tests` between pairs of nodes shows which), `NCCL_DEBUG=INFO`", vendors=AMD, certain=True),
        RemedyPart("and what the library of collectives logs", vendors=("Intel", "Google", "AWS"), certain=True),
        "for the transport that was chosen.",
    )
}
_FIXES: dict[Cause, Remedies] = {
    "input": _INPUT,
    "slow_device": _DEVICE,
    "uneven_work": _WORK,
    "host": _HOST,
    "link": _LINK,
}


def find(facts: JobFacts) -> list[Finding]:
    """One finding per late rank, the dearest first."""
    if facts.blame is None or facts.sampled or not facts.blame.determined:
        return []
    return [_finding(facts, one) for one in facts.blame.stragglers[:_TOLD]]


def _finding(facts: JobFacts, one: Straggler) -> Finding:
    assert facts.blame is not None
    lane = facts.blame.lanes[one.lane]
    partial = facts.partials[lane.partial]
    own = facts.cause_of(lane, one.waited_ns)
    name, host, cause = facts.name(lane), partial.host, own.cause
    counted = [late for late in facts.blame.steps if late.number in facts.used_steps]
    who, wait = _who_waits(facts, one)
    some = f"{who[0].upper()}{who[1:]} {wait}"
    waiting = some if len(one.others) + 1 < len(facts.blame.lanes) else "The other ranks wait"
    why = (
        f"In {one.steps} of {len(facts.used_steps)} steps {name}{f' (host {host})' if host else ''} is the last to "
        f"come to collectives, and {who} {wait} {format_ns(one.waited_ns)} per step for it"
        f"{' on average' if len(one.others) > 1 else ''}. {_because(own)}"
    )
    return Finding(
        rule=RULE.id,
        title=f"{waiting} for {name}: {_TITLES[cause]}",
        why=why + _also(facts, one, len(counted)),
        fix=paragraphs(_fix(cause, partial.workload)),
        cost_ns_per_step=one.waited_ns,
        saving_ns_per_step=one.saving_ns,
        confidence="high" if cause != "unknown" else "medium",
        device=lane.device if lane.device >= 0 else None,
        rank=facts.ranks[lane.partial],
    )


def sets_pace(facts: JobFacts) -> str | None:
    """The job's verdict where waiting for one rank is what bounds the step."""
    step = facts.mean_step_ns
    if not step or facts.blame is None or not facts.blame.stragglers or facts.sampled:
        return None
    one = facts.blame.stragglers[0]
    if one.waited_ns * len(one.others) < BOTTLENECK_SHARE * step * (len(facts.blame.lanes) - 1):
        return None
    lane = facts.blame.lanes[one.lane]
    cause = _TITLES[facts.cause_of(lane, one.waited_ns).cause]
    lost = f"{format_ns(one.waited_ns)} of {format_ns(step)}, mean over the ranks that wait"
    who = " ".join(_who_waits(facts, one))
    return f"For {format_share(one.waited_ns / step)} of each step ({lost}) {who} for {facts.name(lane)}: {cause}."


def _who_waits(facts: JobFacts, one: Straggler) -> tuple[str, str]:
    """Who waits for a straggler, and the verb."""
    assert facts.blame is not None
    if len(one.others) + 1 == len(facts.blame.lanes):
        return "the other ranks", "wait"
    if len(one.others) == 1:
        return facts.name(facts.blame.lanes[one.others[0]]), "waits"
    return f"the {format_count(len(one.others))} that exchange data with it", "wait"


def _fix(cause: Cause, workload: Workload) -> str:
    return remedy(_FIXES[cause], workload) if cause in _FIXES else ""


def _because(cause: OwnCause) -> str:
    if cause.category is None:
        return "Its own time differs from theirs in nothing that was recorded."
    spent = f"It spends {format_ns(cause.excess_ns)} per step more than they do on {_words(cause)}"
    if cause.cause == "unknown":
        return f"{spent}, which explains too little of it."
    if cause.kernels:
        name, times = cause.kernels[0]
        short = name if len(name) <= 80 else name[:79] + "…"
        uneven = cause.cause == "uneven_work"
        spent += f"; kernel `{short}` takes {times:.2f} times as long" if uneven else ""
        spent += "" if uneven else f"; all its kernels are slower, `{short}` {times:.2f} times"
    return f"{spent}."


def _words(cause: OwnCause) -> str:
    if cause.cause == "host" and cause.category is not None:
        return f"its host ({cause.category.replace('_', ' ')})"
    return {"input": "waiting for input", "link": "transfers"}.get(cause.cause, str(cause.category).replace("_", " "))


def _also(facts: JobFacts, one: Straggler, counted: int) -> str:
    """The chain by which it holds up ranks that it exchanges nothing with itself."""
    assert facts.blame is not None
    chains = [late.chain for late in facts.blame.steps if late.lane == one.lane and len(late.chain) > 1]
    if not chains or not counted:
        return ""
    names = [facts.name(facts.blame.lanes[lane]) for lane in chains[0]]
    return f" The delay is handed on: {' → '.join(names)}."
