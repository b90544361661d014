"""The comparison of two runs, or of several runs of two versions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.comparison.boxes import Box, boxes
from stepscope.comparison.found import Achieved, FindingChange, achieved, finding_changes
from stepscope.comparison.items import ItemChange, item_changes, kernel_changes
from stepscope.comparison.limits import COMPARED_ITEM_SHARE, UNCHANGED_SHARE
from stepscope.comparison.noise import Difference, difference
from stepscope.comparison.scaling import Scaling, scaling
from stepscope.comparison.side import Side
from stepscope.comparison.stacks import Call, calls
from stepscope.record import record
from stepscope.units import format_count, format_ns, format_share

_MOST_STEPS = 500
"""More steps than this are not asked for: several runs tell more."""
_NAMED = 3


@record
class PartChange:
    """A category of the accounting, ns per step as a mean over devices."""

    category: Category
    difference: Difference
    told: bool
    """Whether it changed by more than noise, and by enough to matter."""


@record
class Comparison:
    """What changed from one side to another. Lists are in order of the difference, and but for ``parts`` and
    ``findings`` hold only what changed; they are empty where costs of steps cannot be compared."""

    before: Side
    after: Side
    step: Difference
    changed: bool | None
    """Whether the step time did: False where the interval leaves out every change that matters; None where that cannot
    be told."""
    not_determined: str | None
    """Why it cannot, and what would tell it."""
    unfit: str | None
    """Why nothing at all can be told of the step times' difference."""
    parts: tuple[PartChange, ...]
    """Of every category booked in either."""
    kernels: tuple[ItemChange, ...]
    ops: tuple[ItemChange, ...]
    layers: tuple[ItemChange, ...]
    work: tuple[Box, ...]
    """All of both, changed or not; none of jobs."""
    calls: tuple[Call, ...]
    """The Python of both; none where one has none, nor of jobs."""
    findings: tuple[FindingChange, ...]
    achieved: Achieved | None
    scaling: Scaling | None
    """Where the second run has more devices."""
    differences: tuple[str, ...]
    """What else differs between the runs and may be the reason."""


def compare(before: Side, after: Side) -> Comparison:
    """Compare two runs by their used steps: ``profile.side`` and ``job.side`` give one, ``side.several`` joins runs."""
    apples_and_pears = _rank_and_job(before, after)
    unlike = apples_and_pears or _not_comparable(before, after)
    step = difference(before.by_run(before.step_ns), after.by_run(after.step_ns))
    if unlike:
        step = replace(step, noise_ns=None, measured_noise_ns=None)
    unfit = unlike or _said_of(before, after, "too_few")
    least = COMPARED_ITEM_SHARE * max(step.before_ns, step.after_ns)
    changes = [] if apples_and_pears else finding_changes(before, after)
    parts = [] if unlike else _parts(before, after, least)
    kernels, ops, layers = ((), (), ()) if unlike else _items(before, after, least)
    settled = step.beyond_noise or step.within(UNCHANGED_SHARE)
    return Comparison(
        before=before,
        after=after,
        step=step,
        changed=step.beyond_noise if settled and not unfit else None,
        not_determined=unfit or (None if settled else _too_noisy(step, before, after)),
        unfit=unfit,
        parts=tuple(parts),
        kernels=kernels,
        ops=ops,
        layers=layers,
        work=boxes(before.work, after.work) if before.work and after.work and not unlike else (),
        calls=calls(before.stacks, after.stacks) if before.stacks and after.stacks and not unlike else (),
        findings=tuple(changes),
        achieved=None if unfit else achieved(changes, before, after, step),
        scaling=None if unfit else scaling(before, after, step, {part.category: part.difference for part in parts}),
        differences=tuple(_differences(before, after)),
    )


def _rank_and_job(before: Side, after: Side) -> str | None:
    """Why a rank cannot be held against the job it is of: what it waits for, and whom, only the job tells."""
    for which, one, other in (("first", before, after), ("second", after, before)):
        if len(one.ranks) < 2 <= len(other.ranks) and one.world_size is not None and one.world_size > 1:
            rank = next(iter(one.ranks), None)
            alone = "one rank alone" if rank is None else f"rank {rank} alone"
            return (
                f"the {which} profile is {alone} of {one.world_size}, the other holds "
                f"{format_count(len(other.ranks))} ranks of a job: compare the same rank of both with --rank"
            )
    return None


def _not_comparable(before: Side, after: Side) -> str | None:
    if before.basis != after.basis:
        return "one profile has device activity and the other has not: record both alike"
    return _said_of(before, after, "not_comparable")


def _said_of(before: Side, after: Side, what: str) -> str | None:
    said = ((which, getattr(side, what)) for which, side in (("first", before), ("second", after)))
    return next((f"the {which} profile {reason}" for which, reason in said if reason), None)


def _too_noisy(step: Difference, before: Side, after: Side) -> str:
    assert step.noise_ns is not None
    shown = format_share(step.noise_ns / step.before_ns) if step.before_ns else "any"
    how = advice(step, before, after, UNCHANGED_SHARE / 2 * step.before_ns)
    return f"these steps could show a change of more than ±{shown} only; {how}"


def advice(change: Difference, before: Side, after: Side, wanted_ns: float) -> str:
    """What to record so that the steps (the runs) of both sides leave no more doubt than that."""
    if len(before.runs) + len(after.runs) > 2:
        return "record more runs of each, or on a quieter machine"
    fewest = min(*before.runs, *after.runs)
    needed = math.ceil(fewest * ((change.measured_noise_ns or 0.0) / wanted_ns) ** 2) if wanted_ns else _MOST_STEPS
    runs = "several runs of each (--before, --after)"
    if needed <= fewest:
        return f"record {runs}"
    if needed > _MOST_STEPS:
        return f"record on a quieter machine, or {runs}"
    return f"record about {needed} steps of each, or {runs}"


def _parts(before: Side, after: Side, least: float) -> list[PartChange]:
    booked = np.flatnonzero(before.parts.any(axis=0) | after.parts.any(axis=0)).tolist()
    changes = [
        (CATEGORIES[c], difference(before.by_run(before.parts[:, c]), after.by_run(after.parts[:, c]))) for c in booked
    ]
    made = [PartChange(category, change, _tells(change, least)) for category, change in changes]
    return sorted(made, key=lambda part: -abs(part.difference.ns))


Items = tuple[ItemChange, ...]


def _items(before: Side, after: Side, least: float) -> tuple[Items, Items, Items]:
    """Kernels, ops and layers; none of jobs."""
    if before.work is None or after.work is None:
        return (), (), ()
    works = before.work, after.work
    kernels = kernel_changes(*works) if before.basis == "device" else []
    tables = (kernels, item_changes(*works, "op"), item_changes(*works, "layer"))
    one, two, three = (_told(changes, least) for changes in tables)
    return one, two, three


def _told(changes: list[ItemChange], least: float) -> Items:
    told = [change for change in changes if _tells(change.difference, least)]
    return tuple(sorted(told, key=lambda change: (-abs(change.difference.ns), change.name)))


def _tells(change: Difference, least: float) -> bool:
    return abs(change.ns) >= max(least, 1) and (change.beyond_noise or not change.determined)


def _differences(before: Side, after: Side) -> Iterator[str]:
    """What a reader must know before blaming the code."""
    for which, side in (("first", before), ("second", after)):
        if side.damaged:
            yield f"The {which} profile {side.damaged}."
    for which, side in (("first", before), ("second", after)):
        if side.apart_ns:
            longest = [format_ns(ns) for ns in sorted(side.apart_ns, reverse=True)]
            more = ", …" if len(longest) > _NAMED else ""
            yield (
                f"Left out of the {which} profile as far slower than its other steps: {len(longest)} of "
                f"{len(longest) + len(side.step_ns)} steps ({', '.join(longest[:_NAMED])}{more})."
            )
    for what, one in before.setting.items():
        two = after.setting.get(what)
        if one != two:
            yield f"Different {what}: {one or 'not recorded'}, then {two or 'not recorded'}."
