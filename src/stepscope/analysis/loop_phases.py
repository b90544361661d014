"""Phases of a training loop beside training: validation, sampling, saving.

In a profile that shows learning (backward passes, steps of an optimizer), a function of the program's own, a range, or
a library's evaluation, in which a model is called and nothing is learnt, is another phase where it is the outermost
such and in no more than half of the steps: what is in all belongs to training (a teacher, a frozen encoder). A step
that holds one begins behind it, or ends before it, whichever keeps what it learns. Writing checkpoints is told as a
phase too; by itself it leaves steps as they are, and makes them slow ones. Needs recorded Python frames or ranges.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.host_roles import main_thread
from stepscope.analysis.learning import passes, teaches
from stepscope.analysis.limits import LOOP_PHASE_SHARE
from stepscope.analysis.own_code import is_users
from stepscope.analysis.steps import WHOLE, Aside, Markers
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.loop_phases import LoopPhase, loop_phase
from stepscope.regex import regex
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import holding, is_outermost, outermost, rows_of_track
from stepscope.trace.tables import I32, I64, Bools, Kind
from stepscope.trace.trace import Trace

_KINDS = (None, *LoopPhase)
_EVALUATES = regex(
    r"(?:^|/)transformers/trainer\w*\.py\(\d+\): (?:evaluate|predict)$"
    r"|(?:^|/)(?:pytorch_)?lightning/(?:pytorch/)?loops/(?:evaluation|prediction)_loop\.py\(\d+\): run$"
    r"|(?:^|/)transformers/generation/utils\.py\(\d+\): generate$"
)
"""Where libraries evaluate and generate: nothing of the user's may be around."""


def set_apart(trace: Trace, markers: Markers) -> Markers:
    """The steps of training, without the other phases of the loop, which are told beside them."""
    apart = trace.info.framework != "PyTorch" or markers.source == WHOLE or markers.on_device or bool(markers.own)
    learns = np.zeros(0, np.bool_) if apart else teaches(trace)
    if not learns.any():
        return markers
    phases = _phases(trace, markers, learns)
    times = np.sort(trace.slices.start_ns[learns])
    passed = [each for each in phases if each.kind is not LoopPhase.SAVING]
    cut = _cut(markers, passed, phases, times) if passed else markers
    return replace(cut, aside=tuple(phases))


def _phases(trace: Trace, markers: Markers, learns: Bools) -> list[Aside]:
    """The phases in the recorded steps, in order of time."""
    slices, main = trace.slices, main_thread(trace)
    low, high = rows_of_track(slices, main)
    mine = np.zeros(len(slices), np.bool_)
    mine[low:high] = True
    kinds = _named(trace)
    teaching = learns | holding(learns, slices.parent)
    code = mine & ~teaching & among(slices.kind, (Kind.PYTHON_FRAME, Kind.ANNOTATION))
    saves = code & _saving(trace)
    evaluates = code & holding(passes(trace), slices.parent) & _is_program(trace)
    rows = [*_outer(trace, evaluates), *_outer(trace, saves & (outermost(evaluates, slices.parent) < 0))]
    least = LOOP_PHASE_SHARE * float(np.median(markers.end - markers.start))
    phases = [
        Aside(kind, row, int(slices.start_ns[row]), trace.end_ns(row))
        for row in rows
        if (kind := _kind(kinds, row, saves)) is not None
    ]
    return _rare(trace, markers, sorted(phases, key=lambda each: each.start_ns), least)


def _rare(trace: Trace, markers: Markers, phases: list[Aside], least: float) -> list[Aside]:
    """Those of functions that are in half of the steps at most, and take long enough there to be told."""
    kept: list[Aside] = []
    for name in dict.fromkeys(int(trace.slices.name[each.slice]) for each in phases):
        same = [each for each in phases if int(trace.slices.name[each.slice]) == name]
        inside = [each for each in same if markers.start[0] <= each.start_ns < markers.end[-1]]
        steps = {int(np.searchsorted(markers.start, each.start_ns, "right")) for each in inside}
        longest = max((each.end_ns - each.start_ns for each in inside), default=0)
        enough = longest >= least or same[0].kind is LoopPhase.SAVING
        if inside and 2 * len(steps) <= len(markers) and enough:
            kept += inside
    return sorted(kept, key=lambda each: each.start_ns)


def _cut(markers: Markers, passed: list[Aside], every: list[Aside], learns: I64) -> Markers:
    """Steps without the phases that lie in them, and without those in which nothing is left that learns."""
    start, end = markers.start.copy(), markers.end.copy()
    keep, paused = np.ones(len(markers), np.bool_), np.zeros(len(markers), np.bool_)
    for step in range(len(markers)):
        if not _within(passed, start[step], end[step]):
            continue
        inside = _within(every, start[step], end[step])
        first, last = inside[0].start_ns, max(each.end_ns for each in inside)
        began, behind, over = np.searchsorted(learns, (start[step], last, end[step]))
        before = np.searchsorted(learns, first) - began
        if before <= 0 and over <= behind:
            keep[step] = False
            paused[max(step - 1, 0)] = True
        elif over - behind >= before:
            start[step] = last
            paused[max(step - 1, 0)] = True
        else:
            end[step] = first
            paused[step] = True
    if keep.sum() < 2:
        return markers
    numbers = tuple(number for number, stays in zip(markers.numbers, keep.tolist(), strict=True) if stays)
    return replace(
        markers,
        start=start[keep],
        end=end[keep],
        numbers=numbers,
        slices=markers.slices[keep],
        paused=paused[keep],
    )


def _within(asides: list[Aside], start: int, end: int) -> list[Aside]:
    return [each for each in asides if each.start_ns < end and each.end_ns > start]


def _named(trace: Trace) -> I32:
    """Per slice, the place in ``_KINDS`` of what its own name says."""

    def number(name: str) -> int:
        return _KINDS.index(loop_phase(name))

    return mapped(trace.slices.name, trace.strings, number, np.int32)


def _kind(kinds: I32, row: int, saves: Bools) -> LoopPhase | None:
    return LoopPhase.SAVING if saves[row] else _KINDS[int(kinds[row])] or LoopPhase.OTHER


def _saving(trace: Trace) -> Bools:
    """Code that writes checkpoints, and functions of the program's own around it that do nothing with a model."""
    slices = trace.slices

    def writes(name: str) -> bool:
        return classify_host_name(name, is_python=True) is HostRole.CHECKPOINT_IO

    io = (slices.kind == Kind.PYTHON_FRAME) & mapped(slices.name, trace.strings, writes, np.bool_)
    around = holding(io, slices.parent) & _is_program(trace) & ~holding(passes(trace), slices.parent)
    return np.asarray(io | (around & (slices.kind == Kind.PYTHON_FRAME)))


def _is_program(trace: Trace) -> Bools:
    """Functions of the program's own, ranges, and where libraries evaluate."""
    slices = trace.slices
    frames = (slices.kind == Kind.PYTHON_FRAME) & mapped(slices.name, trace.strings, _is_told, np.bool_)
    return np.asarray(frames | (slices.kind == Kind.ANNOTATION))


def _is_told(name: str) -> bool:
    return is_users(name) or _EVALUATES.search(name.replace("\\", "/")) is not None


def _outer(trace: Trace, chosen: Bools) -> list[int]:
    rows: list[int] = np.flatnonzero(is_outermost(chosen, trace.slices.parent)).tolist()
    return rows
