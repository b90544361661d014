"""The comparison of two profiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.comparison.found import Achieved, FindingChange, achieved, finding_changes
from stepscope.comparison.items import ItemChange, item_changes, kernel_changes
from stepscope.comparison.noise import Difference, difference
from stepscope.comparison.scaling import Scaling, scaling
from stepscope.comparison.work import step_work
from stepscope.diagnosis.engine import Diagnosis
from stepscope.limits import COMPARED_ITEM_SHARE, COMPARED_STEPS
from stepscope.trace.tables import I64
from stepscope.units import format_count


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two profiles."""

    facts: Facts
    diagnosis: Diagnosis

    @property
    def step_ns(self) -> I64:
        """Durations of the used steps."""
        return self.facts.step_ns[list(self.facts.used)]


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
    """Compare two profiles by their used steps."""
    step = difference(before.step_ns, after.step_ns)
    reason = _not_comparable(before.facts, after.facts)
    least = COMPARED_ITEM_SHARE * max(step.before_ns, step.after_ns)
    works = step_work(before.facts), step_work(after.facts)
    found = finding_changes(before.diagnosis, after.diagnosis)
    parts = _parts(before.facts, after.facts, least)
    of = {part.category: part.difference for part in parts}
    return Comparison(
        step=step,
        changed=None if reason else step.changed(step.before_ns),
        not_determined=reason,
        parts=tuple(parts),
        kernels=_told(kernel_changes(*works), least) if before.facts.activities else (),
        ops=_told(item_changes(*works, "op"), least),
        layers=_told(item_changes(*works, "layer"), least),
        findings=tuple(found),
        achieved=None if reason else achieved(found, before.diagnosis, step.before_ns, step.after_ns),
        scaling=None if reason else scaling(before.facts, after.facts, step, of),
        differences=tuple(_differences(before.facts, after.facts)),
    )


def _not_comparable(before: Facts, after: Facts) -> str | None:
    for which, facts in (("the first", before), ("the second", after)):
        if facts.device_lost:
            return f"device activity of {which} profile is lost: record it again"
        if len(facts.used) < COMPARED_STEPS:
            return (
                f"{which} profile has {format_count(len(facts.used))} complete steps, too few to know its noise: "
                f"record at least {COMPARED_STEPS}, better 20"
            )
        if facts.sampling.sampled:
            return f"{which} profile was sampled: record whole steps"
    if before.basis != after.basis:
        return "one profile has device activity and the other has not: record both alike"
    return None


def _parts(before: Facts, after: Facts, least: float) -> list[PartChange]:
    first, second = _parts_per_step(before), _parts_per_step(after)
    booked = np.flatnonzero(first.any(axis=0) | second.any(axis=0)).tolist()
    changes = [(CATEGORIES[c], difference(first[:, c], second[:, c])) for c in booked]
    made = [PartChange(category, change, _tells(change, least)) for category, change in changes]
    return sorted(made, key=lambda part: -abs(part.difference.ns))


def _parts_per_step(facts: Facts) -> I64:
    """Shape (used steps, categories): mean over the devices that are used, whole ns."""
    total = np.zeros((len(facts.used), len(CATEGORIES)), np.int64)
    for account in facts.working:
        for k, step in enumerate(facts.used):
            total[k] += account.parts[account.step_rows((step,))].sum(axis=0)
    return total // max(len(facts.working), 1)


def _told(changes: list[ItemChange], least: float) -> tuple[ItemChange, ...]:
    told = [change for change in changes if _tells(change.difference, least)]
    return tuple(sorted(told, key=lambda change: (-abs(change.difference.ns), change.name)))


def _tells(change: Difference, least: float) -> bool:
    return abs(change.ns) >= max(least, 1) and (change.beyond_noise or not change.determined)


def _differences(before: Facts, after: Facts) -> Iterator[str]:
    """What a reader must know before blaming the code."""
    pairs = (
        ("Devices", _devices(before), _devices(after)),
        ("World size", before.trace.info.world_size, after.trace.info.world_size),
        ("Frameworks", before.trace.info.framework, after.trace.info.framework),
        ("Formats", before.trace.info.format, after.trace.info.format),
        ("Step marks", before.markers.source, after.markers.source),
    )
    for what, one, two in pairs:
        if one != two:
            yield f"{what} differ: {one or 'not recorded'}, then {two or 'not recorded'}."


def _devices(facts: Facts) -> str:
    names = sorted(device.name or "unnamed" for device in facts.trace.info.devices)
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
