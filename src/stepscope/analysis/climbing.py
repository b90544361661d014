"""From a slice up to what is around it, of those that are asked for, few of many.

A slice is most often a few levels deep, and climbing is all that it takes. Where stacks nest without end the rest is
answered otherwise: as soon as climbing has taken as many steps as there are slices.
"""

from __future__ import annotations

import numpy as np

from stepscope.compiled import kernel
from stepscope.trace.forest import inherit, ladders
from stepscope.trace.tables import I32, Bools


def nearest_chosen(row: I32, chosen: Bools, parent: I32) -> I32:
    """The nearest chosen slice around each, or itself; -1 for none."""
    made, done = _climb(row, chosen, parent)
    if done < row.size:
        nearest = inherit(np.where(chosen, np.arange(parent.size, dtype=np.int32), np.int32(-1)), parent)
        made[done:] = np.where(row[done:] >= 0, nearest[row[done:]], np.int32(-1))
    return made


def outermost_call_in(slices: I32, functions: I32, is_python: Bools, parent: I32) -> I32:
    """Per slice, the outermost call around it (or itself) inside of a function; -1 for none."""
    made, done = _climb_within(slices, functions, is_python, parent)
    if done < slices.size:
        made[done:] = _jump_within(slices[done:], functions[done:], *ladders(parent, is_python), parent)
    return made


@kernel
def _climb(row: I32, chosen: Bools, parent: I32) -> tuple[I32, int]:
    made = np.full(row.size, -1, np.int32)
    steps = 0
    for i in range(row.size):
        if steps > parent.size:
            return made, i
        j = row[i]
        while j >= 0 and not chosen[j]:
            j = parent[j]
            steps += 1
        made[i] = j
    return made, row.size


@kernel
def _climb_within(slices: I32, functions: I32, is_python: Bools, parent: I32) -> tuple[I32, int]:
    made = np.full(slices.size, -1, np.int32)
    steps = 0
    for i in range(slices.size):
        if steps > parent.size:
            return made, i
        j = slices[i] if functions[i] >= 0 else -1
        while j >= 0 and j != functions[i]:
            if is_python[j]:
                made[i] = j
            j = parent[j]
            steps += 1
        if j < 0:
            made[i] = -1
    return made, slices.size


@kernel
def _jump_within(slices: I32, functions: I32, depth: I32, calls: I32, jump: I32, parent: I32) -> I32:
    made = np.full(slices.size, -1, np.int32)
    for i in range(slices.size):
        j, function = slices[i], functions[i]
        if j < 0 or function < 0 or calls[j] <= calls[function]:
            continue
        # The outermost call inside is the outermost slice around which there are more calls than around the function.
        while parent[j] >= 0 and calls[parent[j]] > calls[function]:
            j = jump[j] if calls[jump[j]] > calls[function] else parent[j]
        around = parent[j]
        while around >= 0 and depth[around] > depth[function]:
            around = jump[around] if depth[jump[around]] >= depth[function] else parent[around]
        if around == function:
            made[i] = j
    return made
