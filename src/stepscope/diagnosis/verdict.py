"""What bounds the step, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.analysis.accounting import one_time_ns
from stepscope.analysis.categories import Category
from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.analysis.functions import only_functions
from stepscope.analysis.once import Once
from stepscope.analysis.steps import WHOLE
from stepscope.analysis.summary import mean_parts, unrecorded_step_ns
from stepscope.diagnosis.evidence import has_python, of_what
from stepscope.diagnosis.limits import BOTTLENECK_SHARE, DISTORTED
from stepscope.diagnosis.notices.steps import start_up_call
from stepscope.diagnosis.one_time import in_words
from stepscope.units import format_ns, format_share

GROUPS: dict[str, tuple[tuple[Category, ...], str]] = {
    "input": ((Category.INPUT, Category.INFEED), "waits for input data"),
    "sync": ((Category.SYNC,), "waits for a host that was itself held up waiting for the device"),
    "launch": ((Category.LAUNCH, Category.LAUNCH_LATENCY), "waits for the host to launch work"),
    "copy": ((Category.COPY_H2D, Category.COPY_D2H, Category.COPY_P2P, Category.COPY_STAGING), "does nothing but copy"),
    "host_memory": ((Category.HOST_MEMORY,), "waits for data on its way to or from the host's memory"),
    "memory_space": ((Category.MEMORY_SPACE,), "waits for copies between its own memories"),
    "peer": ((Category.PEER,), "waits for another device or core"),
    "communication": (
        (Category.COLLECTIVE, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_TRANSFER),
        "communicates with other devices, which nothing hides",
    ),
    "python": ((Category.PYTHON,), "waits for Python code that launches nothing"),
    "compile": ((Category.COMPILE,), "waits for compilation or loading of code"),
    "graph_build": ((Category.GRAPH_BUILD,), "waits for the host to build the graph"),
    "transfer": ((Category.TRANSFER,), "waits for the host to send it data"),
    "allocator": ((Category.ALLOCATOR,), "waits for memory to be allocated"),
    "checkpoint_io": ((Category.CHECKPOINT_IO,), "waits for checkpoints"),
    "gc": ((Category.GC,), "waits for Python's garbage collector"),
    "profiler": ((Category.PROFILER,), "waits for the profiler itself"),
    "dependency": ((Category.DEPENDENCY,), "waits for what other streams do"),
    "device_latency": ((Category.DEVICE_LATENCY,), "takes its time to begin ops that were queued"),
    "unrecorded": ((Category.UNRECORDED,), "works on what this profile does not hold"),
    "unknown": (
        (Category.UNKNOWN_HOST, Category.UNKNOWN_DEVICE),
        "is idle for reasons the profile does not record",
    ),
}
"""What bounds the step: groups of categories, each with the words for a sentence."""


def largest(parts: Mapping[Category, float]) -> tuple[str, dict[str, float]]:
    """The group of causes that takes most of a mean step, and the share of each group."""
    total = sum(parts.values()) or 1
    shares = {name: sum(parts.get(cause, 0) for cause in causes) / total for name, (causes, _) in GROUPS.items()}
    return max(shares, key=lambda name: shares[name]), shares


def verdict_over_ranks(
    parts: Mapping[Category, float], step_ns: int, ranks: int, *, on_devices: bool
) -> tuple[str, str]:
    """The same of a job in which nobody waits for one rank above all, by its mean step."""
    total = sum(parts.values())
    over, (worst, shares) = f"over {ranks} ranks", largest(parts)
    busy = sum(parts.get(c, 0.0) for c in (Category.COMPUTE, Category.HOST_COMPUTE, Category.MEMSET)) / total
    if shares[worst] < BOTTLENECK_SHARE:
        who = "devices" if on_devices else "processors"
        return f"The {who} set the pace: they compute {format_share(busy)} of each step on average {over}.", "device"
    lost = f"{format_ns(round(shares[worst] * step_ns))} of {format_ns(step_ns)}"
    words = GROUPS[worst][1] if on_devices else HOST_WORDS.get(worst, GROUPS[worst][1])
    what, waiting = f"a rank {words.removesuffix(',')}", parts.get(Category.COLLECTIVE_WAIT, 0.0)
    if worst == "communication" and waiting > 0:
        what += f" (waiting for the last rank {format_share(waiting / total)})"
    return (
        f"For {format_share(shares[worst])} of each step ({lost}, on average {over}) {what}; it computes "
        f"{format_share(busy)}.",
        worst,
    )


def verdict(facts: Facts) -> tuple[str, str]:
    """What bounds the usual step and which steps are not usual, in a sentence each; and the name of what bounds it."""
    if contradictions(facts).withholds:
        sentence = "What bounds the step is not determined: this profile is not what the job did, as its notices say."
        return sentence, "unknown"
    if facts.is_capture:
        return _capture_verdict(facts)
    sentence, bottleneck = _usual_verdict(facts)
    sentence = f"{_distorted(facts)}{sentence}"
    if not facts.slow:
        return sentence, bottleneck
    count, longest = len(facts.slow), max(facts.slow, key=lambda each: each.excess_ns)
    took = format_ns(int(facts.step_ns[longest.step]))
    return f"{sentence} {count} of {len(facts.timed)} steps took much longer, up to {took}.", bottleneck


def _distorted(facts: Facts) -> str:
    """What comes first where the recorded steps have little in common with the job's own."""
    recorded, step = facts.mean_step_ns, unrecorded_step_ns(facts)
    if recorded is None or not step or recorded < DISTORTED * step:
        return ""
    return (
        f"Steps took {recorded / step:.0f} times as long while recorded as otherwise: this tells more of the "
        "recording, or of a busy machine, than of the job; record again. "
    )


def _capture_verdict(facts: Facts) -> tuple[str, str]:
    """Of a profile of graphs that are captured: it holds no step."""
    told = in_words(facts, facts.once.rows(Once.CAPTURE))
    sentence = f"This is a recording of graph capture: {told}. What is captured does not run, so no step is timed."
    return sentence, "capture"


def _usual_verdict(facts: Facts) -> tuple[str, str]:
    step = facts.mean_step_ns
    if step is None or not facts.accounts:
        return "Nothing in this profile says how long a step takes.", "unknown"
    if facts.trace.completeness.nameless:
        return (
            "What the time went to is not determined: the names of most events, and perhaps the devices, lay behind "
            "the place where the file was cut.",
            "unknown",
        )
    if facts.device_lost:
        known = facts.trace.completeness.device_damaged
        what = ", and device activity with it" if known else "; device activity may have been in it"
        return f"What bounds the step is not determined: part of the file is missing{what}.", "unknown"
    parts = mean_parts(facts)
    total = sum(parts.values()) or 1
    worst, shares = largest(parts)
    window = of_what(facts)
    if not facts.activities:
        return _host_verdict(facts, worst, (shares[worst], parts.get(Category.HOST_COMPUTE, 0) / total), window)
    works = _works(parts, total)
    if shares[worst] < BOTTLENECK_SHARE:
        return _device_verdict(shares, works, window), "device"
    lost = sum(parts.get(c, 0) for c in GROUPS[worst][0])
    few = _steps_that_lose(facts, GROUPS[worst][0])
    where = ""
    if facts.markers.source != WHOLE and 2 * few <= len(facts.used):
        window, where = "of the steps' time", f", most of it in {few} of {len(facts.used)} steps,"
    words, start_up = GROUPS[worst][1], start_up_call(facts)
    if start_up is not None and facts.trace.slices.start_ns[start_up] < facts.markers.start[0]:
        start_up = None  # left out of the step
    if worst == "launch" and start_up is not None:
        worst, words = "start_up", f"waits for start-up work of the host ({facts.trace.name_of(start_up)})"
    if worst == "compile" and (once := _mostly_once(facts, lost)):
        words = f"waits while {_ONCE[once]}" + (", which happens once" if few <= 1 else "")
    if worst == "copy" and 2 * parts.get(Category.COPY_STAGING, 0) >= lost:
        words = "waits for copies, mostly while the host stages their data"
    if worst == "unknown" and 2 * _before_first_op(facts) >= lost * len(facts.used):
        words = "has no recorded work before its first op: work from before the profile, most likely"
    # Devices take steps of their own, shorter than the one that begins with the first and ends with the last of them.
    own = len(facts.working) > 1 and format_ns(total) != format_ns(step)
    whole = f"{format_ns(total)}, the mean of the devices' own steps" if own else format_ns(total)
    return (
        f"For {format_share(lost / total)} {window} ({format_ns(lost)} of {whole}){where} the device "
        f"{words}; it {works}.",
        worst,
    )


_ONCE = {
    Once.CAPTURE: "graphs are captured",
    Once.LOADING: "code and libraries are loaded",
    Once.START_UP: "devices are set up",
}


def _mostly_once(facts: Facts, lost: int) -> Once | None:
    """The sort of one-time work that makes up half or more of what is lost per device and step; None for none."""
    total, rows = dict.fromkeys(Once, 0), 0
    for account in facts.working:
        used = facts.used_rows(account)
        rows += len(used)
        for kind in Once:
            total[kind] += int(one_time_ns(account, facts.once, kind)[used].sum())
    most = max(total, key=lambda kind: total[kind])
    return most if 2 * sum(total.values()) >= lost * rows else None


def _device_verdict(shares: dict[str, float], works: str, window: str) -> str:
    """Where no cause is large by itself: together they may be."""
    if sum(shares.values()) < BOTTLENECK_SHARE:
        return f"The device sets the pace: it {works} {window}."
    first, second = sorted(shares, key=lambda name: -shares[name])[:2]
    rest = [f"for {format_share(shares[name])} it {GROUPS[name][1]}" for name in (first, second) if shares[name]]
    return f"The device {works} {window}; {', '.join(rest)}."


def _works(parts: dict[Category, int], total: int) -> str:
    """What a device does by itself: computing, and what it moves within its memory where that is much."""
    moving = sum(parts.get(c, 0) for c in (Category.MEMSET, Category.COPY_D2D)) / total
    moves = f" and copies or clears its own memory {format_share(moving)}" if moving >= BOTTLENECK_SHARE else ""
    return f"computes {format_share(parts.get(Category.COMPUTE, 0) / total)}{moves}"


def _steps_that_lose(facts: Facts, causes: tuple[Category, ...]) -> int:
    """In how many used steps at least half of the mean time is lost to some causes."""
    codes = [cause.code for cause in causes]
    per_step = dict.fromkeys(facts.used, 0)
    for account in facts.working:
        rows = facts.used_rows(account)
        for row, lost in zip(rows, account.parts[rows][:, codes].sum(axis=1).tolist(), strict=True):
            per_step[account.rows.steps[row] or 0] += lost
    total = sum(per_step.values())
    return sum(2 * lost * len(per_step) >= total for lost in per_step.values())


def _before_first_op(facts: Facts) -> int:
    """Time at the beginning of the first device's rows that nothing explains."""
    _, account = facts.devices[0]
    if account.idle is None or account.rows.phases[0] != "step":
        return 0
    pieces = account.idle.pieces
    first = (pieces.gap == 0) & (pieces.category == Category.UNKNOWN_DEVICE.code)
    starts_there = len(account.idle.gaps) > 0 and account.idle.gaps.start[0] == account.rows.bounds[0]
    return int((pieces.end - pieces.start)[first].sum()) if starts_there else 0


HOST_WORDS = {
    "input": "waits for input data",
    "sync": "waits in synchronise calls",
    "launch": "launches work",
    "copy": "copies",
    "communication": "waits for other ranks, with nothing to compute,",
    "python": "runs Python code outside any op",
    "compile": "compiles",
    "graph_build": "builds graphs",
    "transfer": "sends data to a device",
    "allocator": "allocates memory",
    "checkpoint_io": "reads or writes checkpoints",
    "gc": "collects garbage",
    "profiler": "works for the profiler",
    "unknown": "does what the profile does not record",
}


def _host_verdict(facts: Facts, worst: str, shares: tuple[float, float], window: str) -> tuple[str, str]:
    """Of a profile without a device; ``shares`` are those of the worst cause and of computing."""
    place = "On the CPU:" if facts.trace.info.on_cpu else "No device was recorded;"
    share, computing = shares[0], f"computes {format_share(shares[1])}"
    if share < BOTTLENECK_SHARE:
        return f"{place} the host {computing} {window}.", "host"
    who = "session" if facts.host.pool else "main thread"
    told = "what it computes is not recorded" if only_functions(facts.trace) else computing
    words = HOST_WORDS[worst]
    if worst == "python" and only_functions(facts.trace) and not has_python(facts):
        words = "is in named ranges, of which nothing more was recorded,"
    if shares[1] > share and told is computing:  # What takes most comes first.
        words = words.removesuffix(",")
        return f"{place} the {who} {computing} {window} and {words} {format_share(share)}.", worst
    sentence = f"{place} the {who} {words} {format_share(share)} {window} and {told}."
    return sentence, worst
