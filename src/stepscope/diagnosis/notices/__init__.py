"""The one list of notices: what about the profile itself a reader must know. They are never findings."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.notices import (
    capture,
    contradicted,
    cores,
    devices,
    efficiency,
    memory,
    misread,
    recorded,
    steps,
    waits,
    xla,
)
from stepscope.trace.trace import Loss

NOTICES: tuple[Callable[[Facts], Notice | None], ...] = (
    contradicted.contradicted,
    contradicted.late,
    contradicted.ends_early,
    steps.inferred,
    steps.left_out,
    steps.other_phases,
    cores.no_core,
    cores.threads_beside,
    efficiency.double_precision,
    steps.few_steps,
    steps.little_time,
    steps.warm_up,
    steps.start_up,
    steps.done_once,
    devices.missing,
    capture.sampled,
    devices.launches_unnumbered,
    devices.launched_before,
    devices.busy_unrecorded,
    devices.unused,
    devices.outside_steps,
    devices.late_core,
    steps.host_ran_ahead,
    steps.launch_queue_full,
    recorded.host_unrecorded,
    recorded.no_lines,
    recorded.no_calls,
    capture.slows_host,
    capture.overhead,
    devices.no_collectives,
    devices.ranks_elsewhere,
    misread.meter,
    xla.lazy_phases,
    xla.no_scopes,
    xla.recompiled,
    efficiency.small_grids,
    efficiency.independent_branches_in_a_row,
    efficiency.softmax_in_fp16,
    memory.growth,
    memory.fragmentation,
    memory.headroom,
    waits.cost_nothing,
    waits.measures,
)


_NOT_OF_CAPTURE = (
    steps.inferred,
    steps.left_out,
    steps.few_steps,
    steps.little_time,
    steps.warm_up,
    steps.start_up,
    steps.host_ran_ahead,
    steps.launch_queue_full,
    recorded.no_lines,
    recorded.no_calls,
)
"""What speaks of steps or findings: a recording of graph capture has neither."""


_NAMES_EACH = ("device_clock",)
"""Losses whose text names each of what they count."""


def notices(facts: Facts) -> list[Notice]:
    """All notices, in the order in which one should read them."""
    told = [
        Notice(_code(loss.code, loss.damaged), _sentence(loss), loss.count, loss.code in _NAMES_EACH)
        for loss in facts.trace.completeness.losses
        if loss.damaged or loss.lost_events or not (loss.code == "flow_open" or _closes_the_list(loss))
    ]
    partial = facts.trace.completeness.nameless or facts.device_lost
    for rule in (steps.inferred, devices.missing_in_a_part) if partial else NOTICES:
        notice = None if facts.is_capture and rule in _NOT_OF_CAPTURE else rule(facts)
        if notice is not None:
            told.append(notice)
    return told


def _closes_the_list(loss: Loss) -> bool:
    """One empty event: so XLA's exporter ends its list."""
    return loss.code == "event_empty" and loss.count == 1


def _code(code: str, damaged: bool) -> str:
    return f"damaged_{code}" if damaged else f"profile_{code}"


def _sentence(loss: Loss) -> str:
    lost = loss.damaged or loss.lost_events
    place = f", first at byte {loss.first_offset:,}" if loss.first_offset is not None and lost else ""
    return f"{loss.text[:1].upper()}{loss.text[1:]}{place}."
