from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.callbacks import callback_time
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.host_callbacks import callback_slices
from stepscope.analysis.limits import DISPATCH_GAP_NS, PLACES_SHARE, TOLD_SHARE
from stepscope.diagnosis.awaited import of_unknown_gain
from stepscope.diagnosis.evidence import capture_slows_host
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.garbage import of_garbage
from stepscope.diagnosis.host_work import (
    Cause,
    HostWork,
    cause_findings,
    doubted,
    host_finding,
    host_work,
    in_words,
    is_seen,
    keeping,
)
from stepscope.diagnosis.remedies import (
    ASK_ONCE,
    BEFORE_COPY,
    CALLBACKS,
    CHECKPOINTS,
    GARBAGE,
    GIVING_OPS,
    HOST_WORK,
    WAITED_FOR,
    WORK_AHEAD,
    remedy,
)
from stepscope.diagnosis.rule import Rule
from stepscope.diagnosis.rules import callback_time as callbacks_on_host
from stepscope.trace import intervals as iv
from stepscope.trace.codes import distinct

RULE = Rule(
    id="between_steps",
    scope="device",
    pages=("ops",),
    tells=(Category.PYTHON, Category.GC, Category.CHECKPOINT_IO),
    finds="In every step the device waits for host work that is no part of it.",
    statement="""\
The accounting books idle time of the usual steps to `python` (callbacks, metrics, logging: a millisecond or more of
Python that launches nothing), `gc` or `checkpoint_io`. One finding per cause, with the functions or annotations in
which the time passes, and whether it passes before a step's first launch or between its launches. What one step alone
has is a finding from `SEEN_ONCE_SHARE` of it, and says that it was seen once. Of Python at least `TOLD_SHARE` must lie
in recorded frames, or in annotations (whatever they are called: the finding is named after them) in which nothing is
launched that computes; time in which the host shows nothing is no finding. Where a copy to the device comes next, it
may make what that sends, and the advice says so. What passes in callbacks of a training loop (called by the lists of
callbacks of Keras, Hugging Face or Lightning, by their frames, or in the ranges that `stepscope run` puts around
Keras's) is a finding of its own, which names each with file and line. Frames of PyTorch's own that give ops (modules,
autograd, optimizers) do not count to it: where a device waits for them they are a finding of their own; JAX's and
TensorFlow's count, and go with ops that run one by one. Walks over the
modules of a model give none, and have advice of their own from `TOLD_SHARE` on. Without a device all is the main
thread's own time, and theirs is what computing takes; a stretch counts without what its thread may have waited for a
core meanwhile. Waits for another thread, a process or what comes in (queues, locks, connections) are a finding of their
own, whose saving is not known.""",
    shared_limits=("SEEN_ONCE_SHARE", "TOLD_SHARE"),
    needs="Python frames, or ranges around the work.",
    cure="A step in which the host does not do this.",
    example="`if step % 1 == 0: save(figure)` between two steps, or Python's garbage collector in each.",
    host_bound=True,
    makes_late="host",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)


def _is_told(work: HostWork) -> bool:
    """Whether the profile shows that it was Python code, and no more than that."""
    return work.told_share >= TOLD_SHARE and not _walks(work) and work.ranges is None and not _awaits(work)


def _before_copies(work: HostWork) -> bool:
    """Whether some of it may make what a copy sends."""
    return work.sending_share >= 1 - PLACES_SHARE


def _walks(work: HostWork) -> bool:
    """Whether it was walks over the modules of a model."""
    return work.walking_share >= TOLD_SHARE


def _awaits(work: HostWork) -> bool:
    """Whether it was no work of this thread's, but a wait for another's, or for what comes in."""
    return work.awaiting_share >= TOLD_SHARE


def _gives_ops(work: HostWork) -> bool:
    """Whether it was PyTorch's own code, for which a device waits."""
    return work.device is not None and work.giving_share >= TOLD_SHARE


def _in_callbacks(facts: Facts) -> iv.Intervals:
    """When a thread that launches was in a callback of a training loop."""
    return callback_time(facts.trace, facts.callbacks, facts.launching_tracks)


def _others(facts: Facts) -> iv.Intervals:
    """What is told by itself: those callbacks, and the functions that a program calls (``host_callback``)."""
    trace, waiting = facts.trace, set(distinct(facts.trace.device_waits.device))
    devices = [activity.device for activity in facts.activities if activity.device in waiting]
    called = [callback_slices(trace, facts.host, device) for device in devices]
    if len(devices) < len(facts.activities):
        called.append(facts.host.called_python)
    return iv.joined([_in_callbacks(facts), *(iv.of(facts.trace.slices, slices) for slices in called)])


def _outside_callbacks(facts: Facts) -> iv.Intervals:
    ends = facts.trace.slices.start_ns + facts.trace.slices.dur_ns
    return iv.complement(_in_callbacks(facts), int(facts.trace.slices.start_ns.min()), int(ends.max()))


_TITLE = "Steps wait for Python code that launches nothing"
_DOING = "Python code runs that launches nothing"
_CAUSES = {
    Category.PYTHON: Cause(
        title=_TITLE,
        doing=_DOING,
        fix=HOST_WORK,
        holds=lambda _, work: _is_told(work) and not _before_copies(work),
        but=_others,
        least_ns=DISPATCH_GAP_NS,
        within="running_eagerly",
    ),
}

_COLLECTING = {
    Category.GC: Cause(title="Steps wait for Python's garbage collector", doing="Python collects garbage", fix=GARBAGE)
}

_OTHERS = {
    Category.CHECKPOINT_IO: Cause(
        title="Steps wait for checkpoints", doing="a checkpoint is read or written", fix=CHECKPOINTS
    ),
}

_SENDING = {
    Category.PYTHON: Cause(
        title=_TITLE,
        doing=f"{_DOING}, and the copy of what may be a batch comes next for some of it",
        fix=BEFORE_COPY,
        holds=lambda _, work: _is_told(work) and _before_copies(work),
        but=_others,
        least_ns=DISPATCH_GAP_NS,
    )
}

_CALLING = {
    Category.PYTHON: Cause(
        title="Steps wait for callbacks",
        doing="callbacks run",
        fix=CALLBACKS,
        but=_outside_callbacks,
    )
}

_WALKING = {
    Category.PYTHON: Cause(
        title="Steps wait for walks over the modules of the model",
        doing="Python walks over the modules of the model and launches nothing",
        fix=ASK_ONCE,
        holds=lambda _, work: _walks(work),
        but=_others,
        least_ns=DISPATCH_GAP_NS,
    )
}

_AWAITING = {
    Category.PYTHON: Cause(
        title="Steps wait for another thread or process, or for what comes in",
        doing="the thread that runs the steps waits in Python (a queue, a lock, a connection)",
        fix=WAITED_FOR,
        holds=lambda _, work: _awaits(work),
        but=_others,
        least_ns=DISPATCH_GAP_NS,
    )
}

_PYTORCHS = {
    Category.PYTHON: Cause(
        title="The device waits for PyTorch's own Python code, which gives it ops",
        doing="PyTorch's own Python code prepares the next launch",
        fix=GIVING_OPS,
        holds=lambda _, work: _gives_ops(work),
        but=_others,
        least_ns=DISPATCH_GAP_NS,
    )
}


def _in_ranges(facts: Facts) -> list[Finding]:
    """Of ranges that the program named, and of which no frames tell what runs there."""
    findings, but = [], _others(facts)
    for account in facts.working:
        work = host_work(facts, account, Category.PYTHON, but, DISPATCH_GAP_NS)
        if work is None or work.ranges is None or not is_seen(facts, work, 0.0):
            continue
        name = f"`{work.ranges.name}`" if work.ranges.mostly else "ranges that the program named"
        name += " and other ranges" if work.ranges.mostly and not work.ranges.nearly_all else ""
        why = in_words(facts, work, f"the host is in {name} and launches nothing")
        advice = (BEFORE_COPY,) if _before_copies(work) else (WORK_AHEAD, HOST_WORK)
        fix = "\n".join(remedy(each, facts.workload) for each in advice).strip()
        finding = host_finding(facts, {work.cause: work}, rule=RULE.id, title=f"Steps wait in {name}", why=why, fix=fix)
        findings.append(keeping(doubted(facts, finding, work, 0.0), but))
    return findings


def of_python(facts: Facts) -> list[Finding]:
    """Of Python code: on a host that computes, what is told of callbacks with all their ops is left out."""
    calling = () if callbacks_on_host.find(facts) else (_CALLING,)
    sets = _CAUSES, _SENDING, *calling, _WALKING
    findings = [each for causes in sets for each in cause_findings(facts, causes, rule=RULE.id)]
    findings += [of_unknown_gain(each) for each in cause_findings(facts, _AWAITING, rule=RULE.id)]
    return findings + _in_ranges(facts)


def find(facts: Facts) -> list[Finding]:
    """One finding per device and cause."""
    findings = [of_garbage(facts, each) for each in cause_findings(facts, _COLLECTING, rule=RULE.id)]
    findings += [*cause_findings(facts, _OTHERS, rule=RULE.id), *of_python(facts)]
    slowed = capture_slows_host(facts)
    return findings + [
        replace(each, confidence="low", why=f"{each.why} How much of it is the recording of {slowed} is not known.")
        for each in cause_findings(facts, _PYTORCHS, rule=RULE.id)
    ]
