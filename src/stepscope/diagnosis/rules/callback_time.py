from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import Frame
from stepscope.analysis.limits import FINDING_SHARE, TOLD_SHARE
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.function_lines import lines_of_calls, longest_line
from stepscope.diagnosis.numbers_read import outer_reads
from stepscope.diagnosis.remedies import remedy
from stepscope.diagnosis.remedies.overhead import IN_CALLBACKS
from stepscope.diagnosis.rule import Rule
from stepscope.names.callbacks import named_callback
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import I32, Bools, Rows
from stepscope.units import format_count, format_ns, format_share
from stepscope.whatif.change import Change

RULE = Rule(
    id="callback_time",
    scope="host",
    pages=("ops",),
    tells_within=True,
    finds="Callbacks of a training loop hold up the steps of a host that computes.",
    statement="""\
In a profile without a device, the main thread is in callbacks of the loop (Lightning, transformers, Keras; by their
frames, or the ranges that `stepscope run` puts around Keras's) in the used steps: with all that they call, ops,
compiling and input included, since nothing else of the step runs meanwhile. Each must take `FINDING_SHARE` of the
steps. Those that read numbers of tensors say how many. With a device waits and `between_steps` tell of callbacks.""",
    shared_limits=("FINDING_SHARE",),
    needs="Python frames or ranges around callbacks, of a job without a device.",
    cure="A step without the callbacks; to first order.",
    example="A callback that calls `model.predict`, or `.item()` on twenty tensors, in every batch.",
    tried_for=("TensorFlow",),
)


@record
class _Called:
    """One callback in the used steps."""

    frame: Frame
    function: str
    """With its class, where that is known."""
    rows: Rows
    ns: int


def find(facts: Facts) -> list[Finding]:
    """One finding for all callbacks that take a part of the step worth telling."""
    if facts.activities or not facts.used_ns:
        return []
    slices, strings = facts.trace.slices, facts.trace.strings
    rows = np.flatnonzero(in_callbacks(facts))
    names = slices.name[rows]
    sums = {code: int(slices.dur_ns[rows[names == code]].sum()) for code in distinct(names)}
    large = sorted((code for code in sums if sums[code] >= FINDING_SHARE * facts.used_ns), key=lambda code: -sums[code])
    named = [
        _Called(*known, rows[names == code], sums[code])
        for code in large
        if (known := _frame(facts, strings[code])) is not None
    ]
    return [_finding(facts, named)] if named else []


def _frame(facts: Facts, name: str) -> tuple[Frame, str] | None:
    """The function that a frame or a range names, and what it is called."""
    told = named_callback(name)
    if told is None:
        frame = facts.locator.frame(name)
        return None if frame is None else (frame, frame.function)
    function, file, line = told
    return Frame(file, line, function.rpartition(".")[2], is_definition=True), function


def in_callbacks(facts: Facts) -> Bools:
    """The outermost callbacks of the loop's thread in the used steps."""
    slices = facts.trace.slices
    step = np.searchsorted(facts.markers.start, slices.start_ns, "right") - 1
    inside = among(step, facts.used) & (slices.start_ns < facts.markers.end[np.maximum(step, 0)])
    itself = facts.callbacks == np.arange(len(slices))
    return np.asarray(inside & itself & (slices.track == facts.host.main))


def _finding(facts: Facts, named: list[_Called]) -> Finding:
    cost = facts.per_step(sum(each.ns for each in named))
    share = format_share(cost * len(facts.used) / facts.used_ns)
    listed = "; ".join(_told(facts, each) for each in named)
    rows = np.concatenate([each.rows for each in named]).astype(np.int32)
    return Finding(
        rule=RULE.id,
        title="Steps wait for callbacks",
        why=f"Callbacks take {format_ns(cost)} of each step ({share}), with all that they call: {listed}.",
        fix=paragraphs(remedy(IN_CALLBACKS, facts.workload)),
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=Change(host={facts.host.main: _in_all_steps(facts, rows)}),
        where=tuple(dict.fromkeys(place for each in named for place in _places(facts, each))),
        evidence=slices_as_evidence(facts, rows.tolist()),
    )


def _in_all_steps(facts: Facts, rows: I32) -> iv.Intervals:
    """When callbacks of the same names ran, in steps that are not used, too."""
    slices = facts.trace.slices
    itself = facts.callbacks == np.arange(len(slices))
    return iv.of(slices, itself & (slices.track == facts.host.main) & among(slices.name, distinct(slices.name[rows])))


def _places(facts: Facts, each: _Called) -> tuple[Where, ...]:
    """The callback's line that takes most of its time, and that of what it calls."""
    rows, frame = each.rows.astype(np.int32), each.frame
    lines = [place.where for place in lines_of_calls(facts, rows) if place.share >= TOLD_SHARE]
    if (
        lines and lines[0].function == frame.function and not lines[0].defined
    ):  # A range has no frame to hold its lines.
        return (lines[0],)
    own = longest_line(facts, rows, frame)
    return tuple(dict.fromkeys((replace(own, function=each.function) if own.defined else own, *lines[:1])))


def _told(facts: Facts, each: _Called) -> str:
    name, read = replace(each.frame, function=each.function).told, _numbers_read(facts, each.rows)
    text = f"{name} {format_ns(facts.per_step(each.ns))}"
    return text + (f", which reads {format_count(read)} numbers of tensors (`.item()`)" if read > 1 else "")


def _numbers_read(facts: Facts, rows: Rows) -> int:
    """How many tensors each call turns into numbers."""
    slices, outer = facts.trace.slices, outer_reads(facts)
    ends = slices.start_ns[rows] + slices.dur_ns[rows]
    begun = slices.start_ns[outer]
    at = np.searchsorted(slices.start_ns[rows], begun, "right") - 1
    return round(int(((at >= 0) & (begun < ends[np.maximum(at, 0)])).sum()) / max(rows.size, 1))
