from __future__ import annotations

import re
from typing import Final

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.idle import Idle
from stepscope.analysis.limits import GRAPH_PAUSE_NS, LATENCY_CAP_NS
from stepscope.analysis.where import Where
from stepscope.diagnosis.dispatch import dispatching, launched_at
from stepscope.diagnosis.evidence import SHOWN, capture_slows_host, placed, shares
from stepscope.diagnosis.finding import Evidence, Finding, paragraphs
from stepscope.diagnosis.limits import LAUNCH_SHARE
from stepscope.diagnosis.remedies import LAUNCH, OPTIMIZER, ZERO_GRAD, remedy
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.names.hosts import is_zero_grad
from stepscope.trace.codes import among
from stepscope.trace.tables import I64, NULL
from stepscope.units import format_ns, format_times
from stepscope.whatif.changes import without_dispatch
from stepscope.whatif.limits import LAUNCH_GAP_NS

LAUNCH_SHARE_RECORDED: Final = 0.10

RULE = Rule(
    id="launch_bound",
    scope="device",
    pages=("ops", "kernels"),
    tells=(Category.LAUNCH,),
    tells_beside=True,
    finds="The device finishes each kernel before the host has launched the next.",
    statement="""\
Short gaps (each under `LAUNCH_GAP_NS`) booked to `launch` and `launch_latency` take at least `LAUNCH_SHARE` of the
step, `LAUNCH_SHARE_RECORDED` where the capture recorded what slows the host.""",
    limits=(
        Limit(
            "LAUNCH_SHARE_RECORDED",
            LAUNCH_SHARE_RECORDED,
            """\
`LAUNCH_SHARE` where stacks, shapes or memory were recorded: recording them makes the host's steps 1.6 to 2.3 times as
long (measured with PyTorch 2.13 on a CPU), so half of what is seen may be the capture's own.""",
        ),
    ),
    shared_limits=("LAUNCH_GAP_NS", "LAUNCH_SHARE"),
    needs="Launches.",
    cure="A step in which the host launches ahead of the device.",
    example="An eager model of many small ops, at batch size 1.",
    host_bound=True,
    makes_late="host",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device that waits for launches."""
    findings = []
    for activity, account in facts.devices:
        per_gap = _launch_time(facts, account)
        cost = facts.per_step(int(per_gap.sum()))
        limit = LAUNCH_SHARE if capture_slows_host(facts) is None else LAUNCH_SHARE_RECORDED
        if facts.used and cost * len(facts.used) >= limit * max(facts.used_ns, 1):
            findings.append(_finding(facts, activity, account, per_gap, cost))
    return findings


def _launch_time(facts: Facts, account: Account) -> I64:
    """Per gap, time waited for a launch: only in the used steps and only in short gaps."""
    assert account.idle is not None
    gaps, pieces = account.idle.gaps, account.idle.pieces
    waiting = among(pieces.category, [Category.LAUNCH.code, Category.LAUNCH_LATENCY.code])
    start, end = pieces.start[waiting], pieces.end[waiting]
    # Ops that compute on the host (`ops_on_host`) and functions that launch nothing (`hot_python`) are no launching.
    length = dispatching(facts, start, end)
    per_gap = np.bincount(pieces.gap[waiting], length, len(gaps)).astype(np.int64)
    counted = facts.in_used_steps(account, gaps.start) & (gaps.end - gaps.start <= LAUNCH_GAP_NS)
    return np.where(counted, per_gap, 0)


def _finding(facts: Facts, activity: DeviceActivity, account: Account, per_gap: I64, cost: int) -> Finding:
    assert account.idle is not None
    gaps = account.idle.gaps
    waiting = np.flatnonzero(per_gap > 0)
    longest = np.sort(waiting[np.argsort(-per_gap[waiting], kind="stable")][:SHOWN])
    median = int(np.median(activity.end - activity.start))
    pause = int(np.median(per_gap[waiting]))
    places = launched_at(facts, activity, gaps.cause_op[waiting], per_gap[waiting])
    return Finding(
        rule=RULE.id,
        device=activity.device,
        title=f"The device waits for the host to {_launch(facts, activity.device)}",
        cost_ns_per_step=cost,
        saving_ns_per_step=max(cost - facts.per_step(waiting.size * _floor(account.idle)), 0),
        change=without_dispatch(facts),
        basis="modelled",
        why=(
            f"{format_times(waiting.size / len(facts.used))} per step the device runs dry before the next launch: half "
            f"of its ops take under {format_ns(median)}, and half of these waits take over {format_ns(pause)}."
            + shares(facts, places, "The waiting")
        ),
        fix=paragraphs(remedy(LAUNCH, facts.workload).format(optimizer=_optimizer_lines(facts, placed(facts, places)))),
        where=placed(facts, places),
        evidence=tuple(
            Evidence(
                facts.trace.name_of(int(activity.slice[gaps.op[g]])),
                int(gaps.start[g]),
                int(gaps.end[g] - gaps.start[g]),
                None,
                activity.device,
            )
            for g in longest.tolist()
        ),
    )


def _launch(facts: Facts, device: int) -> str:
    """What the host does for a device: XLA's devices, other than GPUs, run whole programs."""
    kinds = {described.id: described.kind for described in facts.trace.info.devices}
    return "launch kernels" if kinds.get(device, "gpu") == "gpu" else "start programs"


def _optimizer_lines(facts: Facts, places: tuple[Where, ...]) -> str:
    """Code for the optimizer this profile shows, nothing where it shows none (inference)."""
    matches = (re.match(r"Optimizer\.step#(\w+)\.step$", name) for name in facts.trace.strings)
    name = next((match[1] for match in matches if match), None)
    lines = [] if name is None else [remedy(OPTIMIZER, facts.workload).format(name=name)]
    if any(is_zero_grad(place.annotation or "") for place in places):
        lines.append(remedy(ZERO_GRAD, facts.workload))
    return "\n".join(filter(None, lines))


def _floor(idle: Idle) -> int:
    """What stays between kernels that one launch runs: this trace's own pause between queued ops, else 1 µs."""
    gaps = idle.gaps
    queued = (gaps.launch != NULL) & (gaps.launch_end < gaps.start) & (gaps.end - gaps.start < LATENCY_CAP_NS)
    queued &= ~idle.under_way
    return int(np.median((gaps.end - gaps.start)[queued])) if queued.any() else GRAPH_PAUSE_NS
