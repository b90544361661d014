from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import Frame
from stepscope.analysis.limits import FINDING_SHARE
from stepscope.diagnosis.evidence import slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.function_lines import longest_line
from stepscope.diagnosis.numbers_read import outer_reads
from stepscope.diagnosis.remedies import PYTORCH, remedy
from stepscope.diagnosis.remedies.overhead import IN_CALLBACKS
from stepscope.diagnosis.rule import Rule
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import Bools, Kind, Rows
from stepscope.units import format_count, format_ns, format_share

RULE = Rule(
    id="callback_time",
    scope="host",
    pages=("ops",),
    tells=(Category.PYTHON,),
    finds="Callbacks of a training loop hold up the steps of a host that computes.",
    statement="""\
In PyTorch's profile of a job without a device, the main thread is in callbacks of the loop (Lightning, transformers,
Keras) in the used steps: with all that they call, ops included, since nothing else runs meanwhile. Those that read
numbers of tensors say how many. Elsewhere waits and `between_steps` tell of callbacks.""",
    needs="Python frames, of a job without a device.",
    cure="A step without the callbacks; to first order.",
    example="A callback of Lightning that calls `.item()` on twenty tensors in every batch.",
    tried_for=("TensorFlow",),
)


def find(facts: Facts) -> list[Finding]:
    """One finding for all callbacks that take a part of the step worth telling."""
    if facts.activities or not facts.used_ns or facts.trace.info.framework != PYTORCH:
        return []
    slices, strings = facts.trace.slices, facts.trace.strings
    rows = np.flatnonzero(in_callbacks(facts))
    names = slices.name[rows]
    sums = {code: int(slices.dur_ns[rows[names == code]].sum()) for code in distinct(names)}
    large = sorted((code for code in sums if sums[code] >= FINDING_SHARE * facts.used_ns), key=lambda code: -sums[code])
    frames = ((code, facts.locator.frame(strings[code])) for code in large)
    named = [(frame, rows[names == code], sums[code]) for code, frame in frames if frame is not None]
    return [_finding(facts, named)] if named else []


def in_callbacks(facts: Facts) -> Bools:
    """The outermost callbacks of the loop's thread in the used steps; ranges of validation and others are none."""
    slices = facts.trace.slices
    step = np.searchsorted(facts.markers.start, slices.start_ns, "right") - 1
    inside = among(step, facts.used) & (slices.start_ns < facts.markers.end[np.maximum(step, 0)])
    itself = facts.callbacks == np.arange(len(slices))
    return np.asarray(inside & itself & (slices.track == facts.host.main) & (slices.kind == Kind.PYTHON_FRAME))


def _finding(facts: Facts, named: list[tuple[Frame, Rows, int]]) -> Finding:
    cost = facts.per_step(sum(ns for _, _, ns in named))
    share = format_share(cost * len(facts.used) / facts.used_ns)
    listed = "; ".join(_told(facts, *each) for each in named)
    return Finding(
        rule=RULE.id,
        title="Steps wait for callbacks",
        why=f"Callbacks take {format_ns(cost)} of each step ({share}), with all that they call: {listed}.",
        fix=paragraphs(remedy(IN_CALLBACKS, facts.workload)),
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        where=tuple(longest_line(facts, rows.astype(np.int32), frame) for frame, rows, _ in named),
        evidence=slices_as_evidence(facts, [int(row) for _, rows, _ in named for row in rows]),
    )


def _told(facts: Facts, frame: Frame, rows: Rows, ns: int) -> str:
    text = f"{frame.told} {format_ns(facts.per_step(ns))}"
    read = _numbers_read(facts, rows)
    return text + (f", which reads {format_count(read)} numbers of tensors (`.item()`)" if read > 1 else "")


def _numbers_read(facts: Facts, rows: Rows) -> int:
    """How many tensors each call turns into numbers."""
    slices, outer = facts.trace.slices, outer_reads(facts)
    ends = slices.start_ns[rows] + slices.dur_ns[rows]
    begun = slices.start_ns[outer]
    at = np.searchsorted(slices.start_ns[rows], begun, "right") - 1
    return round(int(((at >= 0) & (begun < ends[np.maximum(at, 0)])).sum()) / max(rows.size, 1))
