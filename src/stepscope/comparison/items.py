"""Work of two runs side by side, by kernel, op and layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stepscope.comparison.noise import Difference, difference
from stepscope.comparison.work import Item, StepWork
from stepscope.record import record
from stepscope.trace.tables import I64


@record
class ItemChange:
    """One kernel, op or layer in two runs."""

    name: str
    """Its name before; after, where it was not there before."""
    renamed: str | None
    """Its name after, where that is another."""
    op: str | None
    """Of a kernel, the op it works for."""
    count_before: float
    """Launches (calls) per step."""
    count_after: float
    difference: Difference


def item_changes(before: StepWork, after: StepWork, label: str) -> list[ItemChange]:
    """Ops or layers by name; what has none is left out."""
    assert label in ("op", "layer")
    sides = [{str(item.labels[0]): item for item in run.by(label) if item.labels[0]} for run in (before, after)]  # type: ignore[arg-type]
    return [
        _change(name, None, None, ([sides[0].get(name)], before), ([sides[1].get(name)], after))
        for name in dict.fromkeys((*sides[0], *sides[1]))
    ]


def kernel_changes(before: StepWork, after: StepWork) -> list[ItemChange]:
    """Kernels (without a device, ops) by name.

    A kernel that is gone and one that is new are the same where they do the same op's work on the same shapes: a
    library chose, or a compiler wrote, another one. Of several, the dearest go together.
    """
    first, second = _by_name(before), _by_name(after)
    renamed = _renamed(
        {name: items for name, items in first.items() if name not in second},
        {name: items for name, items in second.items() if name not in first},
    )
    taken = set(renamed.values())
    made = []
    for name in dict.fromkeys((*first, *(name for name in second if name not in taken))):
        other = renamed.get(name, name)
        one, two = first.get(name, []), second.get(other, [])
        op = next((item.labels[1] for item in (*one, *two)), None)
        made.append(_change(name, other if other != name else None, op, (one, before), (two, after)))
    return made


def _by_name(run: StepWork) -> dict[str, list[Item]]:
    by_name: dict[str, list[Item]] = {}
    for item in run.by("name", "op", "dims", "layer"):
        by_name.setdefault(str(item.labels[0]), []).append(item)
    return by_name


def _renamed(gone: dict[str, list[Item]], new: dict[str, list[Item]]) -> dict[str, str]:
    """Names before to names after: first what has op, shapes and layer in common, then op and shapes, then the op."""
    made: dict[str, str] = {}
    for depth in (3, 2, 1):
        places: dict[tuple[str | None, ...], list[str]] = {}
        for name, items in new.items():
            if name not in made.values():
                for key in _keys(items, depth):
                    places.setdefault(key, []).append(name)
        for name, items in gone.items():
            if name in made:
                continue
            free = (place for key in _keys(items, depth) for place in places.get(key, ()) if place not in made.values())
            other = next(free, None)
            if other is not None:
                made[name] = other
    return made


def _keys(items: Iterable[Item], depth: int) -> list[tuple[str | None, ...]]:
    """What a kernel works for: op, shapes and layer, all of them known."""
    keys = [item.labels[1 : 1 + depth] for item in items]
    return [key for key in dict.fromkeys(keys) if all(part is not None for part in key)]


def _change(
    name: str,
    renamed: str | None,
    op: str | None,
    before: tuple[Sequence[Item | None], StepWork],
    after: tuple[Sequence[Item | None], StepWork],
) -> ItemChange:
    return ItemChange(name, renamed, op, _count(*before), _count(*after), difference([_ns(*before)], [_ns(*after)]))


def _ns(items: Sequence[Item | None], run: StepWork) -> I64:
    rows = [item.per_step_ns for item in items if item is not None]
    return np.sum(rows, axis=0, dtype=np.int64) if rows else np.zeros(run.steps, np.int64)


def _count(items: Sequence[Item | None], run: StepWork) -> float:
    return sum(item.count for item in items if item is not None) / max(run.steps * run.devices, 1)
