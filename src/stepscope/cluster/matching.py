"""Which collective of one rank is which of another: by process group, step and place in the step.

Ranks may be missing, and windows may be shifted: where steps are numbered a collective is the k-th of its kind in its
group and numbered step, on every rank that has as many of them there; elsewhere sequences are laid over each other
where sizes agree and ends lie most evenly apart. What cannot be the same is never matched: an all-reduce, a
reduce-scatter and an all-gather take as many bytes of every rank, an all-to-all elements of one type; what its sizes
cannot tell apart is not matched at all where profiles are sampled, as the one that it belongs to may be left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.exchange.collectives import KINDS, Collectives
from stepscope.analysis.exchange.groups import Group, size_of
from stepscope.cluster.partial import Partial
from stepscope.names.collectives import SYNCHRONISING, Collective
from stepscope.record import record
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import I32, I64, NULL, Bools

_WIDEST_SHIFT = 512
_AGREES = 0.9
_NUMBER_LIMIT = 1 << 40
_MOST_CELLS = 1 << 22
"""In a table of so many, what few ranks have has a column too."""
_ELSEWHERE = np.iinfo(np.int64).min
EQUAL = [KINDS.index(kind) for kind in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER)]
"""Those into which every rank puts as much."""


@record
class Lane:
    """One participant: a device of one of the partial results (or its host)."""

    partial: int
    device: int


@record
class Matched:
    """The collectives of one group: a row per lane, a column per collective, in the order of the lane with most.

    ``start`` and ``end`` are on each process's own clock, in ns from ``Job.base_ns`` (unix time) where the profile
    tells it; NULL where the lane has no part in it.
    """

    group: Group
    lanes: tuple[Lane, ...]
    at: I32
    """Row of the partial result's collectives, -1 for none."""
    start: I64
    end: I64
    kind: I32
    bytes: I64
    """Bytes one rank puts in: the median over ranks."""
    element: I64
    """Bytes of an element, NULL where its type is not recorded."""
    step: I64
    """The step's number, or where none is numbered its index on the first lane; NULL for none."""
    members: int | None
    """Of the group; None where neither it nor the job's size tells that no other has part in it."""

    @property
    def present(self) -> Bools:
        """Which lanes take part in which collective."""
        return np.asarray(self.at >= 0)

    @property
    def whole(self) -> Bools:
        """Which collectives every member of the group is known of."""
        return np.asarray(self.present.sum(axis=0) >= (math.inf if self.members is None else max(self.members, 2)))

    @property
    def synchronises(self) -> Bools:
        """Which of them no member leaves before all have entered; a send and its receive are two such members."""
        kinds = [KINDS.index(kind) for kind in SYNCHRONISING]
        pair = len(self.lanes) == 2
        return among(self.kind, [*kinds, KINDS.index(Collective.SEND_RECV)] if pair else kinds)


def base_of(partials: Sequence[Partial]) -> int:
    """The unix time that all clocks are counted from, in ns: nanoseconds since 1970 are more than a float holds."""
    return min((p.epoch_ns for p in partials if p.epoch_ns is not None), default=0)


def match(partials: Sequence[Partial]) -> list[Matched]:
    """The collectives of every group, matched over ranks; groups of a single lane too."""
    base = base_of(partials)
    members: dict[Group, list[tuple[Lane, I64]]] = defaultdict(list)
    for number, partial in enumerate(partials):
        table = partial.collectives
        for device in partial.lanes:
            for group in distinct(table.group[table.device == device]):
                rows = np.flatnonzero((table.device == device) & (table.group == group) & (table.step >= 0))
                if rows.size:
                    members[table.groups[group]].append((Lane(number, device), rows))
    return [_matched(partials, base, group, lanes) for group, lanes in _by_size(members).items()]


def _by_size(members: dict[Group, list[tuple[Lane, I64]]]) -> dict[Group, list[tuple[Lane, I64]]]:
    """A group whose size some ranks know and others do not is one."""
    sizes: dict[Group, set[int]] = defaultdict(set)
    for group in members:
        if group.size is not None:
            sizes[replace(group, size=None)].add(group.size)
    members_of: dict[Group, list[tuple[Lane, I64]]] = defaultdict(list)
    for group, lanes in members.items():
        known = sizes.get(group, set())
        members_of[replace(group, size=next(iter(known))) if len(known) == 1 else group] += lanes
    return {
        group: sorted(lanes, key=lambda one: (one[0].partial, one[0].device)) for group, lanes in members_of.items()
    }


def _members(partials: Sequence[Partial], group: Group, lanes: Sequence[Lane]) -> int | None:
    """How many take part in a group: all that were read, where its size is not known, only if they are all ranks."""
    world = max((partial.world_size or 0 for partial in partials), default=0)
    if size_of(group, world) is not None:
        return size_of(group, world)
    return len(lanes) if len(lanes) > 1 and len({lane.partial for lane in lanes}) >= world else None


def _matched(partials: Sequence[Partial], base: int, group: Group, members: list[tuple[Lane, I64]]) -> Matched:
    tables = [partials[lane.partial].collectives for lane, _ in members]
    numbers = [
        partials[lane.partial].steps.number[np.minimum(table.step[rows], len(partials[lane.partial].steps.number) - 1)]
        for (lane, rows), table in zip(members, tables, strict=True)
    ]
    signs = _signs(members, tables, any(partials[lane.partial].sampled for lane, _ in members))
    columns = _by_number(signs, numbers) if _numbered(numbers) else None
    if columns is None:
        columns = _by_shift(members, tables, signs)
        numbers = [table.step[rows].astype(np.int64) for (_, rows), table in zip(members, tables, strict=True)]
    columns, count = _with_own(columns)
    at = np.full((len(members), count), -1, np.int32)
    step = np.full(count, NULL, np.int64)
    for row, ((_, rows), column, number) in reversed(list(enumerate(zip(members, columns, numbers, strict=True)))):
        known = column >= 0
        at[row, column[known]] = rows[known]
        step[column[known]] = number[known]
    return _filled(partials, base, group, tuple(lane for lane, _ in members), at, step)


def _with_own(columns: list[I64]) -> tuple[list[I64], int]:
    """Columns without gaps, and how many: what is not matched has one of its own, as long as that is not too many."""
    every = np.concatenate(columns)
    alone = every < 0
    every[alone] = every.max(initial=-1) + 1 + np.arange(alone.sum())
    _, place, lanes = np.unique(every, return_inverse=True, return_counts=True)
    kept = np.full(lanes.size, lanes.size * len(columns) <= _MOST_CELLS) | (2 * lanes >= len(columns))
    made = np.where(kept[place], (np.cumsum(kept) - 1)[place], -1)
    return np.split(made, np.cumsum([column.size for column in columns])[:-1]), int(kept.sum())


def _filled(
    partials: Sequence[Partial], base: int, group: Group, lanes: tuple[Lane, ...], at: I32, step: I64
) -> Matched:
    start, end, bytes_ = (np.full(at.shape, NULL, np.int64) for _ in range(3))
    kind = np.full(at.shape[1], -1, np.int32)
    element = np.full(at.shape[1], NULL, np.int64)
    for row, one in enumerate(lanes):
        partial = partials[one.partial]
        table, known = partial.collectives, at[row] >= 0
        shift = 0 if partial.epoch_ns is None else partial.epoch_ns - base
        start[row, known] = table.start[at[row, known]] + shift
        end[row, known] = table.end[at[row, known]] + shift
        bytes_[row, known] = table.bytes[at[row, known]]
        kind[known] = table.kind[at[row, known]]
        element[known] = table.element[at[row, known]]
    used = kind >= 0
    # In the order of the lane that has most: clocks of others may be anywhere.
    lane = int((at >= 0).sum(axis=1).argmax())
    began = np.where(at[lane] >= 0, start[lane], np.iinfo(np.int64).max)
    order = np.flatnonzero(used)[np.argsort(began[used], kind="stable")]
    return Matched(
        group, lanes, at[:, order], start[:, order], end[:, order], kind[order], _median_known(bytes_[:, order]),
        element[order], step[order], _members(partials, group, lanes),
    )  # fmt: skip


def _median_known(values: I64) -> I64:
    """The median of each column's known values, NULL where there is none."""
    known = values != NULL
    filled = np.where(known, values, np.iinfo(np.int64).max)
    middle = np.maximum(known.sum(axis=0) - 1, 0) // 2
    median = np.sort(filled, axis=0)[middle, np.arange(values.shape[1])] if values.size else values.sum(axis=0)
    return np.where(known.any(axis=0), median, NULL)


def _numbered(numbers: list[I64]) -> bool:
    """Whether every rank numbers its steps, and some of them like another."""
    if any((of == NULL).any() or (np.abs(of) > _NUMBER_LIMIT).any() for of in numbers):
        return False
    distinct = np.concatenate([np.unique(of) for of in numbers])
    return len(numbers) < 2 or np.unique(distinct).size < distinct.size


def _signs(members: list[tuple[Lane, I64]], tables: list[Collectives], sampled: bool) -> list[I64]:
    """Per lane, a code for what must be alike in its collectives wherever they are the same; -1 where nothing tells
    them apart from others that the profiles may lack."""
    kind = _joined([table.kind[rows] for (_, rows), table in zip(members, tables, strict=True)])
    size = _joined([table.bytes[rows] for (_, rows), table in zip(members, tables, strict=True)])
    element = _joined([table.element[rows] for (_, rows), table in zip(members, tables, strict=True)])
    # What some do not record cannot tell them apart.
    equal = among(kind, EQUAL) & ~among(kind, kind[size == NULL])
    codes = kind
    for told in (np.where(among(kind, kind[element == NULL]), 0, element), np.where(equal, size, 0)):
        values, inverse = np.unique(told, return_inverse=True)
        codes = np.unique(codes * values.size + inverse, return_inverse=True)[1]
    if sampled:
        codes = np.where(equal, codes, -1)
    return np.split(codes, np.cumsum([rows.size for _, rows in members])[:-1])


def _joined(columns: Sequence[I32 | I64]) -> I64:
    return np.concatenate(columns).astype(np.int64)


def _by_number(signs: list[I64], numbers: list[I64]) -> list[I64]:
    """Per lane, the column of each of its collectives; -1 where it has more or fewer of a kind than most, or nothing
    tells them apart."""
    width = max((int(sign.max(initial=0)) for sign in signs), default=0) + 1
    keys = [number * width + np.maximum(sign, 0) for number, sign in zip(numbers, signs, strict=True)]
    codes, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    code_of = np.split(inverse, np.cumsum([len(key) for key in keys])[:-1])
    counts = np.stack([np.bincount(code, minlength=codes.size) for code in code_of])
    usual = np.array([_most_common(counts[:, c][counts[:, c] > 0]) for c in range(codes.size)], np.int64)
    offset = np.concatenate(([0], np.cumsum(usual)))[:-1]
    return [
        np.where((counts[lane] == usual)[code] & (sign >= 0), offset[code] + _ordinal(code), -1)
        for lane, (code, sign) in enumerate(zip(code_of, signs, strict=True))
    ]


def _most_common(values: I64) -> int:
    different, counts = np.unique(values, return_counts=True)
    return int(different[counts == counts.max()].max())


def _ordinal(codes: I64) -> I64:
    """The how-manieth of its code each one is, from 0."""
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    first = np.concatenate(([0], np.flatnonzero(np.diff(ranked)) + 1))
    place = np.arange(codes.size) - np.repeat(first, np.diff(np.append(first, codes.size)))
    made = np.empty(codes.size, np.int64)
    made[order] = place
    return made


def _by_shift(members: list[tuple[Lane, I64]], tables: list[Collectives], signs: list[I64]) -> list[I64]:
    """Per lane, its collectives' places in the longest sequence of the group; -1 for all where none fits, and for those
    that another stands at the place of."""
    longest = max(range(len(members)), key=lambda lane: len(members[lane][1]))
    ends = [table.end[rows] for (_, rows), table in zip(members, tables, strict=True)]
    columns = []
    for lane in range(len(members)):
        shift = 0 if lane == longest else _shift((signs[longest], ends[longest]), (signs[lane], ends[lane]))
        place = np.arange(len(signs[lane]))
        if shift is None:
            columns.append(np.full(place.size, -1))
            continue
        there = np.clip(place + shift, 0, len(signs[longest]) - 1)
        other = ((there == place + shift) & (signs[longest][there] != signs[lane])) | (signs[lane] < 0)
        columns.append(np.where(other, _ELSEWHERE, place + shift))
    used = [column[column != _ELSEWHERE] for column in columns]
    lowest = min((int(column.min()) for column in used if column.size and column.max() >= 0), default=0)
    return [
        np.where(column >= lowest, column - lowest, -1) if column.max(initial=-1) >= 0 else np.full(column.size, -1)
        for column in columns
    ]


def _shift(reference: tuple[I64, I64], other: tuple[I64, I64]) -> int | None:
    """How many places later a sequence begins in another: where all sizes agree, ends lie most evenly apart there."""
    (signs, ends), (own, own_ends) = reference, other
    need = max(1, min(len(signs), len(own)) // 2)
    best: tuple[float, int] | None = None
    for shift in range(-min(_WIDEST_SHIFT, len(own) - 1), min(_WIDEST_SHIFT, len(signs) - 1) + 1):
        low, high = max(0, shift), min(len(signs), len(own) + shift)
        if high - low < need:
            continue
        agreeing = float((signs[low:high] == own[low - shift : high - shift]).mean())
        if agreeing < _AGREES:
            continue
        apart = ends[low:high] - own_ends[low - shift : high - shift]
        spread = float(np.median(np.abs(apart - np.median(apart)))) / (high - low)
        if best is None or spread < best[0]:
            best = spread, shift
    return None if best is None else best[1]
