"""Which profile is which rank's: by a pattern, by what the file says of itself, by its name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.errors import InputError, UsageError
from stepscope.readers.find import natural
from stepscope.readers.remote import Shard
from stepscope.readers.source import Source

MOST_RANKS = 65_536
"""Profiles of one job."""
_HEAD_BYTES = 1 << 16
_RECORDED = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,9})\b')
_NAMED = re.compile(r"(?<![a-z])(?:rank|worker|process|proc)[ _.=-]?(\d{1,9})(?!\d)", re.I)
_PLANES = ".xplane.pb"


@dataclass(frozen=True, slots=True)
class Ranks:
    """The profiles of a job, by rank."""

    sources: dict[int, Source]
    duplicates: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Ranks with more than one profile, and those of them that are not read: the last by name is."""
    unranked: tuple[str, ...] = ()
    """Profiles that nothing says the rank of."""
    by_order: bool = False
    """Nothing says which is which: hosts of one capture, numbered in the order of their names."""


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        made = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--rank-pattern {pattern!r} is no regular expression: {error}") from error
    if not made.groups:
        example = r"'r(\d+)\.json'"
        raise UsageError(f"--rank-pattern {pattern!r} has no group: put the rank's digits in one, as in {example}")
    return made


def ranks_of(sources: Sequence[Source], rank_pattern: str | None = None) -> Ranks | None:
    """The ranks of some profiles; None where they are not those of one job: fewer than two ranks are told.

    ``rank_pattern`` is a regular expression with a group for the number. Raises UsageError where it is none.
    """
    pattern = None if rank_pattern is None else _compiled(rank_pattern)
    told: dict[int, list[Source]] = defaultdict(list)
    unranked = []
    for source in sources:
        rank = rank_of(source, pattern)
        if rank is None:
            unranked.append(source)
        else:
            told[rank].append(source)
    if len(told) < 2 and pattern is None:
        return _hosts(sources) if not told else None
    if not told:
        return None
    chosen, duplicates = {}, []
    for rank, found in sorted(told.items()):
        *others, chosen[rank] = sorted(found, key=lambda source: natural(source.path))
        if others:
            duplicates.append((rank, tuple(str(source.path) for source in others)))
    return Ranks(chosen, tuple(duplicates), tuple(str(source.path) for source in unranked))


def rank_of(source: Source, pattern: re.Pattern[str] | None = None) -> int | None:
    """The rank that a pattern finds in the path; without one, the rank the file names, else the file's name does."""
    if pattern is not None:
        found = pattern.search(str(source.path))
        digits = next((group for group in found.groups() if group is not None), "") if found else ""
        return int(digits) if digits.isdecimal() and len(digits) < 10 else None
    named = _NAMED.findall(source.path.name) or _NAMED.findall(source.path.parent.name)
    if named and isinstance(source, Shard):
        return int(named[-1])  # Ten thousand looks into an object store take long.
    try:
        recorded = _RECORDED.search(source.head(_HEAD_BYTES))
    except InputError:
        recorded = None
    if recorded:
        return int(recorded[1])
    return int(named[-1]) if named else None


def _hosts(sources: Sequence[Source]) -> Ranks | None:
    """The hosts of one run in TensorBoard's layout ``plugins/profile/RUN/HOST.xplane.pb``."""
    folders = {source.path.absolute().parent for source in sources}
    planes = all(source.path.name.endswith(_PLANES) for source in sources)
    if len(sources) < 2 or len(folders) != 1 or not planes:
        return None
    ordered = sorted(sources, key=lambda source: natural(source.path.name))
    return Ranks(dict(enumerate(ordered)), by_order=True)
