from __future__ import annotations

from typing import Final

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import parse_frame
from stepscope.analysis.inputs import WAITING, InputRanges
from stepscope.analysis.loading import MULTI_PROCESS, SINGLE_PROCESS, Loading, loader_of, loading
from stepscope.analysis.summary import feeds_devices
from stepscope.analysis.where import Where
from stepscope.diagnosis import tf_data
from stepscope.diagnosis.evidence import booked, has_python, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.host_stretches import booked_in
from stepscope.diagnosis.input_places import input_places
from stepscope.diagnosis.remedies import Remedies, remedy
from stepscope.diagnosis.remedies.input import (
    EITHER,
    EITHER_WITH_STACKS,
    LATE_WORKERS,
    MADE_IN_LOOP,
    NO_WORKERS,
    OTHER,
    TAKING_OVER,
)
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.diagnosis.worker_code import made_in_workers, places_in_workers, what_workers_did
from stepscope.names.tf_graph import QUEUE_TAG
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.units import format_ns, format_share
from stepscope.whatif.changes import without_host_time

PRODUCERS_BUSY_SHARE: Final = 0.8
PRODUCERS_IDLE_SHARE: Final = 0.5

RULE = Rule(
    id="input_bound",
    scope="device",
    pages=("input",),
    tells=(Category.INPUT, Category.INFEED),
    finds="The device (or the main thread) waits for the next batch.",
    statement="""\
The accounting books idle time to `input`, that is, the thread that launches the next op was inside a data loader's
`next` or a framework's equivalent, or in code of the program's own which makes what the next copy to the device sends:
it launches nothing, that copy comes next, and nothing else was launched in the step before, or its name says that it
makes a batch. The wait is followed to the threads that prepare batches, where they were recorded: if they are busy
meanwhile (from `PRODUCERS_BUSY_SHARE` on) they are too few or their work too heavy; if they are idle (up to
`PRODUCERS_IDLE_SHARE`) they wait for the source. Of a tf.data pipeline the iterator that takes most of the waiting
itself is named, and the remedy follows from how it runs. Batches that the loop makes
itself, `OWN_CODE_OPS_SHARE` of it or more in ops, save at least what workers do.""",
    limits=(
        Limit(
            "PRODUCERS_BUSY_SHARE",
            PRODUCERS_BUSY_SHARE,
            """\
Threads that prepare batches keep busy from this share of the time on in which a batch is waited for: one that works
without a pause shows 0.9 or more, less what passes between two batches.""",
        ),
        Limit("PRODUCERS_IDLE_SHARE", PRODUCERS_IDLE_SHARE, "And up to this share they wait themselves."),
    ),
    shared_limits=("OWN_CODE_OPS_SHARE",),
    needs="The host's ranges or Python frames; threads of `tf.data` where they prepare batches.",
    cure="A step without the wait for input, held to what worker processes can do.",
    example="`DataLoader(data, num_workers=0)` with a transform that takes longer than the step.",
    host_bound=True,
    makes_late="input",
    tried_for=("PyTorch", "TensorFlow"),
)

_FIX_QUEUE: Remedies = {
    None: """\
The queue is empty when a step asks for its batch: the producers do not keep up. Give it more of them, and room:
    tf.train.batch([example], batch_size, num_threads=8, capacity=10 * batch_size)
or replace queues by tf.data, which runs ahead by itself:
    AUTO = tf.data.experimental.AUTOTUNE
    dataset.map(parse, num_parallel_calls=AUTO).batch(n).prefetch(AUTO)
Verify with a constant in place of the queue: if the step time does not fall, the cause lies elsewhere."""
}

_FIX_TF_DATA: Remedies = {
    None: (
        "The tf.data pipeline does not keep up. Let it work in parallel and ahead of the step:",
        *tf_data.AUTO,
        """\
    dataset.map(parse, num_parallel_calls=AUTO).batch(n).prefetch(AUTO)
Read files with `interleave(..., num_parallel_calls=AUTO)`, and `cache()` what does not change. Verify with
`dataset.take(1).cache().repeat()`: if the step time does not fall, the cause lies elsewhere.""",
    )
}

_SENT = (
    " Nothing is launched from its beginning until a copy to the device follows: it is taken for the making of what "
    "that sends."
)
_MADE = " It makes tensors of other data ahead of the model's call, or is called after a batch, and is no loader's."
_NAMED = 0.02
"""Share of the time from which a loader or a stage is named."""
_STAGES = {"not recorded": "nothing recorded inside"}

_TENSORFLOW = {
    "QueueDequeue": ("It waits for the producers that fill the queue.", _FIX_QUEUE),
    "IteratorGetNext": ("It waits for the tf.data pipeline.", _FIX_TF_DATA),
}
"""By part of the op's name: what it waits for, and the remedy."""


def find(facts: Facts) -> list[Finding]:
    """One finding per device that waits for input."""
    ranges, findings = facts.inputs, []
    for account in facts.accounts:
        cost = booked(facts, account, Category.INPUT)
        cost -= booked_in(facts, account, Category.INPUT, _starting(facts))
        if cost > 0 and ranges is not None:
            findings.append(_finding(facts, account.rows.device, cost, ranges))
    return findings


def _starting(facts: Facts) -> iv.Intervals:
    """What ``worker_starts`` tells of."""
    starts = facts.worker_starts
    return starts.time if starts is not None and starts.again else iv.EMPTY


def _finding(facts: Facts, device: int | None, cost: int, ranges: InputRanges) -> Finding:
    host = "The session waits" if facts.host.pool else "The main thread waits"
    subject = "The device waits" if device is not None else host
    fix = _fix(facts, ranges)
    made_by = _made_by(facts, ranges)
    theirs: tuple[Where, ...] = ()
    seen = facts.run.loader_workers
    if fix is LATE_WORKERS and seen is not None and seen.busy_share > PRODUCERS_IDLE_SHARE:
        made_by, theirs = made_in_workers(facts), places_in_workers(facts)
    change = without_host_time(facts, Category.INPUT)
    return Finding(
        rule=RULE.id,
        device=device,
        title=f"{subject} for input data{made_by}",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=change.outside(_starting(facts)),
        loading=_loading(facts, fix),
        why=_why(facts, cost, ranges),
        fix=paragraphs(remedy(fix, facts.workload)),
        where=(*theirs, *input_places(facts, ranges)),
        evidence=slices_as_evidence(facts, list(ranges.slices), device=device),
    )


def _loading(facts: Facts, fix: Remedies) -> Loading | None:
    """What workers could do, of those remedies that ask for them."""
    if fix is MADE_IN_LOOP:
        return loading(facts, by_loop=True)
    return loading(facts) if fix in (NO_WORKERS, LATE_WORKERS) else None


def _made_by(facts: Facts, ranges: InputRanges) -> str:
    """That the loop's own code makes most of it, and which function does, where one takes most of that time."""
    made = np.intersect1d(facts.host.produced, np.array(ranges.slices, np.int32))
    slices = facts.trace.slices
    if 2 * int(slices.dur_ns[made].sum()) < ranges.total_ns:
        return ""
    frames = (parse_frame(name) for name, ns in ranges.loaders if 2 * ns >= ranges.total_ns)
    named = [frame.function for frame in frames if frame is not None and not frame.function.startswith("<")]
    return ", which the loop makes itself" + (f" in `{named[0]}`" if named else "")


def _why(facts: Facts, cost: int, ranges: InputRanges) -> str:
    share = format_share(cost * len(facts.used) / facts.used_ns) if facts.used_ns else "part"
    node = _node(facts, ranges)
    waits = "the device waits" if facts.activities else "the host does nothing else"
    text = f"For {format_ns(cost)} of each step ({share}) {waits} while {_loaders(facts, ranges, node)}."
    text += next((f" {words}" for part, (words, _) in _TENSORFLOW.items() if part in ranges.loader), "")
    if "QueueDequeue" in ranges.loader:
        text += f" {_queue_fill(facts, ranges, node)}"
    stages = [
        f"{_STAGES.get(name, name)} {format_ns(facts.per_step(ns))}"
        for name, ns in ranges.stages
        if ns >= _NAMED * ranges.total_ns
    ]
    if len(ranges.stages) > 1:
        text += f" The host's time there, per step: {', '.join(stages)}."
    if ranges.ahead:
        least = _NAMED * sum(ns for _, ns in ranges.ahead)
        ahead = (f"{name} {format_ns(facts.per_step(ns))}" for name, ns in ranges.ahead if ns >= least)
        text += f" Threads that prepare batches spend, all together, per step: {', '.join(ahead)}."
    if among(facts.host.produced, ranges.slices).any():
        text += _SENT if facts.activities else _MADE
    return text + _producers(facts) + _workers(facts, ranges) + tf_data.bottleneck(facts) + _fed(facts)


def _workers(facts: Facts, ranges: InputRanges) -> str:
    """What a loader's did meanwhile."""
    return what_workers_did(facts) if MULTI_PROCESS in loader_of(ranges) else ""


def _loaders(facts: Facts, ranges: InputRanges, node: str | None) -> str:
    """The loaders that take much of the host's time, and how much it spends in them: more than a device waits, where
    that has work meanwhile."""
    total = format_ns(facts.per_step(ranges.total_ns))
    named = [(name, ns) for name, ns in ranges.loaders if ns >= _NAMED * ranges.total_ns]
    if len(named) < 2:
        return f"`{ranges.loader}`" + (f" (node `{node}`)" if node else "") + f" runs, {total} of the host's time"
    times = (f"`{name}` {format_ns(facts.per_step(ns))}" for name, ns in named)
    return f"input is prepared, {total} of the host's time: {', '.join(times)}"


def _fed(facts: Facts) -> str:
    """That several devices are more than the threads can feed."""
    fed, count = feeds_devices(facts), len(facts.working)
    if fed is None or fed >= count or count < 2:
        return ""
    return f" At that rate the input feeds {fed:.1f} devices like these, not {count}."


def _producers(facts: Facts) -> str:
    """What the threads that prepare batches did meanwhile."""
    producers = facts.input_stages.producers if facts.input_stages else None
    if producers is None:
        return ""
    busy, one = producers.busy_share, producers.threads == 1
    who = "The thread that prepares batches" if one else f"The {producers.threads} threads that prepare batches"
    text = f" {who} {'works' if one else 'work'} {format_share(busy)} of the time it is waited for"
    text = text if one else text.replace("it is", "they are")
    if producers.any_busy_share <= PRODUCERS_IDLE_SHARE:
        return f"{text}: {tf_data.waits_for(facts)}."
    stage = f", mostly in `{producers.heaviest}`" if producers.heaviest else ""
    if busy < PRODUCERS_BUSY_SHARE:
        some = "" if one else f"; one of them or more works {format_share(producers.any_busy_share)} of it"
        return f"{text}{stage}{some}."
    return f"{text}{stage}: there are too few of them, or each batch is too much work."


def _queue_fill(facts: Facts, ranges: InputRanges, node: str | None) -> str:
    """How full the queue was by the summary nearest to the wait; of all queues where none is called after the node."""
    trace, counters = facts.trace, facts.trace.counters
    tags = [code for code in distinct(counters.name) if QUEUE_TAG.search(trace.strings[code])]
    named = [code for code in tags if trace.strings[code].startswith(f"{node}/")]
    rows = np.flatnonzero(among(counters.name, named or tags))
    if rows.size == 0:
        return (
            "How full the queue was is not recorded: write `tf.summary.merge_all()` with a FileWriter into the "
            "profile's folder."
        )
    begun = int(trace.slices.start_ns[ranges.slices[0]])
    nearest = rows[np.abs(counters.time_ns[rows] - begun).argmin()]
    tag, share = trace.strings[int(counters.name[nearest])], float(counters.value[nearest])
    apart = format_ns(abs(int(counters.time_ns[nearest]) - begun))
    return f"`{tag}` was {format_share(share)} in the nearest summary, {apart} apart."


def _node(facts: Facts, ranges: InputRanges) -> str | None:
    """The node of a TensorFlow graph that waits longest; None where the profile holds none."""
    nodes, slices = facts.trace.nodes, facts.trace.slices
    rows = np.flatnonzero(among(nodes.slice, ranges.slices))
    longest = rows[np.argsort(slices.dur_ns[nodes.slice[rows]])][-1:]
    return next((facts.trace.strings[code] for code in nodes.node[longest].tolist()), None)


def _fix(facts: Facts, ranges: InputRanges) -> Remedies:
    loader = loader_of(ranges)
    if SINGLE_PROCESS in loader:
        return NO_WORKERS
    for part, (_, fix) in _TENSORFLOW.items():
        if part in ranges.loader:
            return tf_data.remedy_for(facts, fix) if fix is _FIX_TF_DATA else fix
    if MULTI_PROCESS not in loader:
        return MADE_IN_LOOP if _made_by(facts, ranges) else OTHER
    stages = dict(ranges.stages)
    busy = sum(ns for name, ns in stages.items() if name not in (WAITING, "not recorded"))
    waiting, unseen = stages.get(WAITING, 0), stages.get("not recorded", 0)
    seen = facts.run.loader_workers
    if seen is not None and seen.busy_share >= PRODUCERS_BUSY_SHARE:
        return LATE_WORKERS
    if unseen >= max(busy, waiting):
        if seen is not None and seen.busy_share <= PRODUCERS_IDLE_SHARE:
            return TAKING_OVER
        return EITHER_WITH_STACKS if has_python(facts) else EITHER
    return TAKING_OVER if busy > waiting else LATE_WORKERS
