"""Which slices are steps, by statistics and lines (no name tells)."""

from __future__ import annotations

import numpy as np

from stepscope.formats.xplane.grouping import grouped
from stepscope.formats.xplane.planes import LineRole
from stepscope.formats.xplane.times import EventTimes
from stepscope.formats.xplane.view import View
from stepscope.trace import tables as t


def step_marks(view: View, times: EventTimes, slices: t.Bools, slice_id: t.I32) -> t.StepMarks:
    """The marks of every source; which one counts is the analysis's choice."""
    parts = [_numbered(view, slices), _of_steps_lines(view, slices), _of_modules(view, times, slices)]
    rows, source, number = (np.concatenate(part) for part in zip(*parts, strict=True))
    return t.StepMarks(slice_id[rows], source, number)


Marks = tuple[t.Rows, t.U8, t.I64]


def _numbered(view: View, slices: t.Bools) -> Marks:
    """``step_num`` on a host event, with ``_r`` or without."""
    rows = view.space.stats.rows("step_num").astype(np.intp)
    rows = rows[slices[rows] & view.on(LineRole.HOST)[rows]]
    root = view.space.stats.integers("_r", rows) == 1
    source = np.where(root, t.MarkerSource.STEP_NUM_ROOT, t.MarkerSource.STEP_NUM).astype(np.uint8)
    return rows, source, view.space.stats.integers("step_num", rows)


def _of_steps_lines(view: View, slices: t.Bools) -> Marks:
    rows = np.flatnonzero(slices & view.on(LineRole.STEPS))
    names = [view.names[code] for code in view.name[rows].tolist()]
    numbers = [int(name) if name.isascii() and name.isdigit() and len(name) < 19 else t.NULL for name in names]
    return rows, np.full(rows.size, t.MarkerSource.STEPS_LINE, np.uint8), np.array(numbers, np.int64)


def _of_modules(view: View, times: EventTimes, slices: t.Bools) -> Marks:
    """Per device the executions of the module that took most time, if it ran twice or more. What a sparse core runs is
    part of its chip's step."""
    rows = np.flatnonzero(slices & view.on(LineRole.MODULES))
    sparse = np.array([parts.kind == "sparse_core" for parts in view.planes], np.bool_)
    on_core = sparse[view.lines.plane[view.events.line[rows]]] if rows.size else np.zeros(0, np.bool_)
    rows = rows if on_core.all() else rows[~on_core]
    kept = [np.empty(0, np.intp)]
    for _, places in grouped(view.lines.plane[view.events.line[rows]]):
        mine = rows[places]
        _, module = np.unique(view.name[mine], return_inverse=True)
        longest = mine[module == int(np.bincount(module, times.dur[mine]).argmax())]
        kept.append(longest if longest.size >= 2 else kept[0])
    marked = np.concatenate(kept)
    source = np.full(marked.size, t.MarkerSource.MODULES_LINE, np.uint8)
    return marked, source, np.full(marked.size, t.NULL, np.int64)
