"""The comparison of two profiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.comparison.found import Achieved, FindingChange, achieved, finding_changes
from stepscope.comparison.items import ItemChange, item_changes, kernel_changes
from stepscope.comparison.noise import Difference, difference
from stepscope.comparison.scaling import Scaling, scaling
from stepscope.comparison.side import Side
from stepscope.limits import COMPARED_ITEM_SHARE


@dataclass(frozen=True, slots=True)
class PartChange:
    """A category of the accounting, ns per step as a mean over devices."""

    category: Category
    difference: Difference
    told: bool
    """Whether it changed by more than noise, and by enough to matter."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one profile to another. Lists are in order of the difference, and but for
    ``parts`` and ``findings`` hold only what changed."""

    step: Difference
    changed: bool | None
    """Whether the step time did; None where that cannot be told."""
    not_determined: str | None
    """Why it cannot."""
    parts: tuple[PartChange, ...]
    """Of every category booked in either."""
    kernels: tuple[ItemChange, ...]
    ops: tuple[ItemChange, ...]
    layers: tuple[ItemChange, ...]
    findings: tuple[FindingChange, ...]
    achieved: Achieved | None
    scaling: Scaling | None
    """Where the second run has more devices."""
    differences: tuple[str, ...]
    """What else differs between the runs and may be the reason."""


def compare(before: Side, after: Side) -> Comparison:
    """Compare two runs by their used steps: ``profile.side`` and ``job.side`` give one."""
    step = difference(before.step_ns, after.step_ns)
    reason = _not_comparable(before, after)
    least = COMPARED_ITEM_SHARE * max(step.before_ns, step.after_ns)
    found = finding_changes(before, after)
    parts = _parts(before, after, least)
    of = {part.category: part.difference for part in parts}
    kernels, ops, layers = _items(before, after, least)
    return Comparison(
        step=step,
        changed=None if reason else step.changed(step.before_ns),
        not_determined=reason,
        parts=tuple(parts),
        kernels=kernels,
        ops=ops,
        layers=layers,
        findings=tuple(found),
        achieved=None if reason else achieved(found, before.replayed, step.before_ns, step.after_ns),
        scaling=None if reason else scaling(before.devices, after.devices, step, of),
        differences=tuple(_differences(before, after)),
    )


def _not_comparable(before: Side, after: Side) -> str | None:
    for which, side in (("the first", before), ("the second", after)):
        if side.not_comparable:
            return f"{which} profile {side.not_comparable}"
    if before.basis != after.basis:
        return "one profile has device activity and the other has not: record both alike"
    return None


def _parts(before: Side, after: Side, least: float) -> list[PartChange]:
    booked = np.flatnonzero(before.parts.any(axis=0) | after.parts.any(axis=0)).tolist()
    changes = [(CATEGORIES[c], difference(before.parts[:, c], after.parts[:, c])) for c in booked]
    made = [PartChange(category, change, _tells(change, least)) for category, change in changes]
    return sorted(made, key=lambda part: -abs(part.difference.ns))


Items = tuple[ItemChange, ...]


def _items(before: Side, after: Side, least: float) -> tuple[Items, Items, Items]:
    """Kernels, ops and layers; none of jobs."""
    if before.work is None or after.work is None:
        return (), (), ()
    works = before.work, after.work
    kernels = kernel_changes(*works) if before.basis == "device" else []
    found = (kernels, item_changes(*works, "op"), item_changes(*works, "layer"))
    one, two, three = (_told(changes, least) for changes in found)
    return one, two, three


def _told(changes: list[ItemChange], least: float) -> Items:
    told = [change for change in changes if _tells(change.difference, least)]
    return tuple(sorted(told, key=lambda change: (-abs(change.difference.ns), change.name)))


def _tells(change: Difference, least: float) -> bool:
    return abs(change.ns) >= max(least, 1) and (change.beyond_noise or not change.determined)


def _differences(before: Side, after: Side) -> Iterator[str]:
    """What a reader must know before blaming the code."""
    for what, one in before.setting.items():
        two = after.setting.get(what)
        if one != two:
            yield f"{what} differ: {one or 'not recorded'}, then {two or 'not recorded'}."
