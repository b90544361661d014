"""Runs the rules, ranks what they find by what it saves, and says in one sentence what bounds the step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from stepscope.diagnosis.evidence import capture_slows_host
from stepscope.diagnosis.finding import Finding, Notice
from stepscope.diagnosis.rules import RULES, profile
from stepscope.limits import BOTTLENECK_SHARE, FINDING_NS, FINDING_SHARE, NAMES_LOST_SHARE
from stepscope.units import format_ns, format_share

HOST_BOUND_RULES = ("input_bound", "sync_bound", "launch_bound")

_SAMPLED = "The profile was sampled: record whole steps (no sampling, no event filter) to have costs per step."


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the rules say of one trace. ``minor`` costs too little to be a finding and shows under ``-v`` only."""

    findings: tuple[Finding, ...]
    minor: tuple[Finding, ...]
    notices: tuple[Notice, ...]
    verdict: str
    bottleneck: str

    @property
    def plan(self) -> tuple[str, ...]:
        """Ids in the order one should work: findings that say what they save, largest first."""
        return tuple(f.id for f in self.findings if f.saving_ns_per_step is not None)


def diagnose(facts: Facts) -> Diagnosis:
    """Apply every rule."""
    found = [_qualified(facts, finding) for rule in RULES for finding in _over_devices(facts, rule(facts))]
    found = [_predicted(facts, finding) for finding in _numbered(sorted(found, key=_rank))]
    step = facts.median_step_ns or 0
    worth = [
        f
        for f in found
        if (f.cost_ns_per_step or 0) >= max(FINDING_SHARE * step, FINDING_NS)
        or (f.not_determined is not None and f.cost_ns_per_step is None)
    ]
    minor = tuple(f for f in found if f not in worth)
    verdict, bottleneck = _verdict(facts)
    return Diagnosis(tuple(worth), minor, tuple(profile.notices(facts)), verdict, bottleneck)


def _predicted(facts: Facts, finding: Finding) -> Finding:
    """With the step time that the saving leaves."""
    mean, saving = facts.mean_step_ns, finding.saving_ns_per_step
    if finding.predicted_step_ns is not None or mean is None or saving is None:
        return finding
    return replace(finding, predicted_step_ns=max(mean - saving, 0))


def _rank(finding: Finding) -> tuple[bool, int]:
    saving = finding.saving_ns_per_step
    return saving is None, -(saving if saving is not None else finding.cost_ns_per_step or 0)


def _numbered(found: list[Finding]) -> list[Finding]:
    seen: dict[str, int] = {}
    numbered = []
    for finding in found:
        seen[finding.rule] = seen.get(finding.rule, 0) + 1
        numbered.append(replace(finding, id=f"{finding.rule}.{seen[finding.rule]}"))
    return numbered


def _over_devices(facts: Facts, found: list[Finding]) -> list[Finding]:
    """One finding per rule and title: the device where it costs most speaks for all that have it.

    Waits are the host's, so those of all devices are one set, whatever each device names first.
    A step is as long as its longest device window, so a fix gains what the longest one loses: a device that lacks
    the cause, or has less of it, holds the step. A device that computes nothing holds none, whatever it waits for.
    """
    merged = []
    found = [finding for finding in found if finding.device not in facts.unused]
    keys = [(f.rule, "" if f.rule == "sync_bound" else f.title) for f in found]
    for key in dict.fromkeys(keys):
        group = [finding for finding, own in zip(found, keys, strict=True) if own == key]
        worst = max(group, key=lambda finding: finding.cost_ns_per_step or 0)
        if worst.saving_ns_per_step is None or worst.predicted_step_ns is not None or len(facts.working) < 2:
            merged.append(worst)
            continue
        saved = {finding.device: finding.saving_ns_per_step or 0 for finding in group}
        windows = {account.rows.device: _mean_window(facts, account) for account in facts.working}
        left = max(window - saved.get(device, 0) for device, window in windows.items())
        also = f" {len(group)} of {len(windows)} devices have it." if len(group) > 1 else ""
        merged.append(replace(worst, saving_ns_per_step=max(max(windows.values()) - left, 0), why=worst.why + also))
    return merged


def _mean_window(facts: Facts, account: Account) -> int:
    return facts.per_step(int(account.duration_ns[facts.used_rows(account)].sum()))


def _qualified(facts: Facts, finding: Finding) -> Finding:
    """Lower what a finding claims where the profile does not carry it."""
    if facts.sampling.sampled:
        return replace(
            finding,
            cost_ns_per_step=None,
            saving_ns_per_step=None,
            prediction_basis=None,
            confidence="low",
            not_determined=_SAMPLED,
        )
    recorded = capture_slows_host(facts)
    if finding.rule in HOST_BOUND_RULES and recorded is not None:
        finding = replace(
            finding,
            confidence="low" if finding.confidence == "low" else "medium",
            why=f"{finding.why} Part of this is the capture's own: recording {recorded} slows the host.",
        )
    if facts.markers.source == "whole profile" and finding.confidence == "high":
        finding = replace(finding, confidence="medium")
    return finding


# What bounds the step: groups of categories, each with the words for a sentence.
_GROUPS: dict[str, tuple[tuple[Category, ...], str]] = {
    "input": ((Category.INPUT, Category.INFEED), "waits for input data"),
    "sync": ((Category.SYNC,), "waits for a host that was itself held up waiting for the device"),
    "launch": ((Category.LAUNCH, Category.LAUNCH_LATENCY), "waits for the host to launch work"),
    "copy": ((Category.COPY_H2D, Category.COPY_D2H, Category.COPY_P2P, Category.COPY_STAGING), "does nothing but copy"),
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
    "unknown": (
        (Category.UNKNOWN_HOST, Category.UNKNOWN_DEVICE, Category.DEPENDENCY, Category.DEVICE_LATENCY),
        "is idle for reasons the profile does not record",
    ),
}


def _verdict(facts: Facts) -> tuple[str, str]:
    """What bounds the usual step and which steps are not usual, in a sentence each; and the name of what bounds it."""
    sentence, bottleneck = _usual_verdict(facts)
    if not facts.slow:
        return sentence, bottleneck
    count, longest = len(facts.slow), max(facts.slow, key=lambda found: found.excess_ns)
    took = format_ns(int(facts.step_ns[longest.step]))
    return f"{sentence} {count} of {len(facts.timed)} steps took much longer, up to {took}.", bottleneck


def _usual_verdict(facts: Facts) -> tuple[str, str]:
    step = facts.mean_step_ns
    if step is None or not facts.accounts:
        return "Nothing in this profile says how long a step takes.", "unknown"
    lost = sum(loss.count for loss in facts.trace.completeness.losses if loss.code == "names_lost")
    if lost > NAMES_LOST_SHARE * facts.trace.completeness.events:
        return (
            "What the time went to is not determined: the names of most events, and perhaps the devices, lay behind "
            "the place where the file was cut.",
            "unknown",
        )
    parts = mean_parts(facts)
    total = sum(parts.values()) or 1
    shares = {name: sum(parts.get(c, 0) for c in causes) / total for name, (causes, _) in _GROUPS.items()}
    worst = max(shares, key=lambda name: shares[name])
    whole = facts.markers.source == "whole profile"
    window = "of the profile" if whole else "of a usual step" if facts.slow else "of each step"
    if not facts.activities:
        return _host_verdict(parts, total, worst, shares[worst], window)
    busy = sum(parts.get(c, 0) for c in (Category.COMPUTE, Category.MEMSET, Category.COPY_D2D)) / total
    if shares[worst] < BOTTLENECK_SHARE:
        return (
            f"The device sets the pace: it computes {format_share(busy)} {window}, and nothing else takes "
            f"{format_share(BOTTLENECK_SHARE)} or more.",
            "device",
        )
    lost = sum(parts.get(c, 0) for c in _GROUPS[worst][0])
    words, start_up = _GROUPS[worst][1], profile.start_up_call(facts)
    if worst == "launch" and start_up is not None:
        worst, words = "start_up", f"waits for start-up work of the host ({facts.trace.name_of(start_up)})"
    if worst == "unknown" and 2 * _before_first_op(facts) >= lost * len(facts.used):
        words = "has no recorded work before its first op: work from before the profile, most likely"
    return (
        f"For {format_share(lost / total)} {window} ({format_ns(lost)} of {format_ns(step)}) the device "
        f"{words}; it computes {format_share(busy)}.",
        worst,
    )


def _before_first_op(facts: Facts) -> int:
    """Time at the beginning of the first device's rows that nothing explains."""
    _, account = facts.devices[0]
    if account.idle is None or account.rows.phases[0] != "step":
        return 0
    pieces = account.idle.pieces
    first = (pieces.gap == 0) & (pieces.category == Category.UNKNOWN_DEVICE.code)
    starts_there = len(account.idle.gaps) > 0 and account.idle.gaps.start[0] == account.rows.bounds[0]
    return int((pieces.end - pieces.start)[first].sum()) if starts_there else 0


_HOST_WORDS = {
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


def _host_verdict(parts: dict[Category, int], total: int, worst: str, share: float, window: str) -> tuple[str, str]:
    computing = format_share(parts.get(Category.HOST_COMPUTE, 0) / total)
    if share >= BOTTLENECK_SHARE:
        return (
            f"No device was recorded; the training thread {_HOST_WORDS[worst]} {format_share(share)} {window} and "
            f"computes {computing}.",
            worst,
        )
    return f"No device was recorded; the host computes {computing} {window}.", "host"
