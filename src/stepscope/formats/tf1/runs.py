"""Several runs of a session as one recording, in which each run is a step.

A session runs more than its training: queues are filled, summaries written. The runs of the kind that takes most time
are the steps; runs are of one kind where they share most of their nodes. What passes between two runs was not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from stepscope.formats.limits import FAR_NS
from stepscope.formats.tf1.limits import RUN_SHARED_NODES
from stepscope.formats.tf1.recording import Allocations, Executions, Outputs, Tf1Recording
from stepscope.names.tf_graph import RowKind, parse_row
from stepscope.trace.tables import I32, NULL
from stepscope.trace.trace import Loss

_OF_NODES = (RowKind.HOST, RowKind.LAUNCH)


def together(runs: Sequence[Tf1Recording], losses: Sequence[Loss]) -> tuple[Tf1Recording, list[Loss]]:
    """The runs as one recording, rows of one device as one, and what was lost. One run is itself, and has no steps."""
    if len(runs) == 1:
        return runs[0], list(losses)
    kept = _of_half_a_day(runs)
    all_losses = list(losses)
    if len(kept) < len(runs):
        lost = sum(len(run.executions) for run in runs) - sum(len(run.executions) for run in kept)
        text = "executions of runs that began half a day or more before the last one, which are left out"
        all_losses.append(Loss("runs_far_apart", lost, text, lost_events=lost))
    return _joined(kept), all_losses


def _of_half_a_day(runs: Sequence[Tf1Recording]) -> list[Tf1Recording]:
    """The runs within half a day of the last one: all are within a day of their middle, as the clock of one profile
    needs."""
    begins = [span[0] if (span := _span(run)) else NULL for run in runs]
    last = max(begins)
    return [run for run, begin in zip(runs, begins, strict=True) if begin == NULL or last - begin < FAR_NS // 2]


def _joined(runs: Sequence[Tf1Recording]) -> Tf1Recording:
    rows = list(dict.fromkeys(name for run in runs for name in run.rows))
    labels: list[str] = []
    executions: list[Executions] = []
    outputs: list[Outputs] = []
    allocations: list[Allocations] = []
    names: dict[tuple[int, int], str] = {}
    before = 0
    for run in runs:
        place = np.array([rows.index(name) for name in run.rows], np.int32)
        executions.append(_moved(run.executions, place, len(labels)))
        outputs.append(replace(run.outputs, execution=run.outputs.execution + np.int32(before)))
        allocations.append(replace(run.allocations, execution=run.allocations.execution + np.int32(before)))
        names |= {(int(place[row]), thread): name for (row, thread), name in run.thread_names.items()}
        labels += run.labels
        before += len(run.executions)
    return Tf1Recording(
        rows, _stacked(executions), _stacked(outputs), _stacked(allocations), labels, names, steps=_steps(runs)
    )


def _moved(given: Executions, place: I32, labels: int) -> Executions:
    """Executions in the rows and with the labels of the whole."""
    label = np.where(given.label >= 0, given.label + labels, -1).astype(np.int32)
    return replace(given, row=place[given.row] if place.size else given.row, label=label)


def _stacked(parts: Sequence[Any]) -> Any:
    columns = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(parts[0])}
    return type(parts[0])(**columns)


def _steps(runs: Sequence[Tf1Recording]) -> list[tuple[int, int]]:
    """Start and end of the runs of the kind that takes most time, in order."""
    kinds: list[tuple[frozenset[int], list[tuple[int, int]]]] = []
    for run in runs:
        span, nodes = _span(run), _nodes(run)
        if span is None:
            continue
        alike = next((spans for known, spans in kinds if _are_alike(known, nodes)), None)
        if alike is None:
            kinds.append((nodes, [span]))
        else:
            alike.append(span)
    longest = max((spans for _, spans in kinds), key=lambda spans: sum(end - start for start, end in spans), default=[])
    return sorted(longest)


def _nodes(run: Tf1Recording) -> frozenset[int]:
    of_nodes = np.array([parse_row(name).kind in _OF_NODES for name in run.rows], np.bool_)
    chosen = of_nodes[run.executions.row] if of_nodes.size else np.zeros(len(run.executions), np.bool_)
    return frozenset(np.unique(run.executions.name[chosen]).tolist())


def _are_alike(known: frozenset[int], nodes: frozenset[int]) -> bool:
    return len(known & nodes) >= RUN_SHARED_NODES * max(len(known | nodes), 1)


def _span(run: Tf1Recording) -> tuple[int, int] | None:
    """From the first start to the last end; None for a run without usable times."""
    start, dur = run.executions.start_ns, run.executions.dur_ns
    timed = (start != NULL) & (start != 0) & (dur != NULL) & (dur >= 0) & (dur < FAR_NS)
    if not timed.any():
        return None
    return int(start[timed].min()), int((start + dur)[timed].max())
