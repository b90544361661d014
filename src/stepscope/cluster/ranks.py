"""Which profile is which rank's: by a pattern, by what the file says of itself, by its name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from stepscope.cluster.job import Failed
from stepscope.cluster.runs import HEAD_BYTES, LeftOut, one_run, told
from stepscope.errors import InputError, UsageError
from stepscope.formats.find import natural
from stepscope.inputs.folders import Skipped
from stepscope.inputs.remote import Shard
from stepscope.inputs.source import Source
from stepscope.record import record

_RECORDED = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,9})\b')
_NAMED = re.compile(r"(?<![a-z])(?:rank|worker|process|proc)[ _.=-]?(\d{1,9})(?!\d)", re.I)
_PLANES = ".xplane.pb"


@record
class Ranks:
    """The profiles of a job, by rank."""

    sources: dict[int, Source]
    duplicates: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Ranks with more than one profile, and those of them that are not read: the last by name is."""
    unranked: tuple[str, ...] = ()
    """Profiles that nothing says the rank of."""
    by_order: bool = False
    """Nothing says which is which: hosts of one capture, numbered in the order of their names."""
    left_out: tuple[LeftOut, ...] = ()
    """Profiles of other jobs and runs."""
    refused: tuple[Failed, ...] = ()
    """Files that are named like a rank's profile and are none."""


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        made = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--rank-pattern {pattern!r} is no regular expression: {error}") from error
    if not made.groups:
        example = r"'r(\d+)\.json'"
        raise UsageError(f"--rank-pattern {pattern!r} has no group: put the rank's digits in one, as in {example}")
    return made


def ranks_of(
    sources: Sequence[Source], rank_pattern: str | None = None, skipped: Sequence[Skipped] = ()
) -> Ranks | None:
    """The ranks of some profiles; None where they are not those of one job: fewer than two ranks are told.

    ``rank_pattern`` is a regular expression with a group for the number; ``skipped`` are files beside them that are no
    profiles. Raises UsageError where the pattern is none.
    """
    pattern = None if rank_pattern is None else _compiled(rank_pattern)
    ranked, unranked = [], []
    for source in sources:
        head = _head(source, pattern)
        rank = _rank(source, pattern, head)
        if rank is None:
            unranked.append(source)
        else:
            ranked.append(told(source, rank, head))
    refused = _refused(skipped, sources, pattern)
    if len({one.rank for one in ranked} | {one.rank for one in refused}) < 2 and pattern is None:
        return _hosts(sources) if not ranked else None
    if not ranked:
        return None
    run, left_out = one_run(ranked)
    ranks: dict[int, list[Source]] = defaultdict(list)
    for one in run:
        ranks[one.rank].append(one.source)
    chosen, duplicates = {}, []
    for rank, of in sorted(ranks.items()):
        *others, chosen[rank] = sorted(of, key=lambda source: natural(source.path))
        if others:
            duplicates.append((rank, tuple(str(source.path) for source in others)))
    return Ranks(
        chosen,
        tuple(duplicates),
        tuple(str(source.path) for source in unranked),
        left_out=tuple(left_out),
        refused=tuple(one for one in refused if one.rank not in chosen),
    )


def rank_of(source: Source, pattern: re.Pattern[str] | None = None) -> int | None:
    """The rank that a pattern finds in the path; without one, the rank the file names, else the file's name does."""
    return _rank(source, pattern, _head(source, pattern))


def _rank(source: Source, pattern: re.Pattern[str] | None, head: bytes) -> int | None:
    recorded = _RECORDED.search(head) if pattern is None else None
    return int(recorded[1]) if recorded else _named(source.path, pattern)


def _head(source: Source, pattern: re.Pattern[str] | None) -> bytes:
    """The first bytes; none of an object store's where a name tells the rank: ten thousand looks take long."""
    if isinstance(source, Shard) and _named(source.path, pattern) is not None:
        return b""
    try:
        return source.head(HEAD_BYTES)
    except InputError:
        return b""


def _named(path: Path, pattern: re.Pattern[str] | None) -> int | None:
    """The rank that a path names."""
    if pattern is not None:
        match = pattern.search(str(path))
        digits = next((group for group in match.groups() if group is not None), "") if match else ""
        return int(digits) if digits.isdecimal() and len(digits) < 10 else None
    named = _NAMED.findall(path.name) or _NAMED.findall(path.parent.name)
    return int(named[-1]) if named else None


def _refused(skipped: Sequence[Skipped], sources: Sequence[Source], pattern: re.Pattern[str] | None) -> list[Failed]:
    """Of the files that are no profiles those that are named as a rank's, with the ending of one that is read."""
    endings = {_ending(source.path) for source in sources}
    return [
        Failed(str(one.path), one.reason, rank)
        for one in skipped
        if not one.ours and _ending(one.path) in endings and (rank := _named(one.path, pattern)) is not None
    ]


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def _hosts(sources: Sequence[Source]) -> Ranks | None:
    """The hosts of one run in TensorBoard's layout ``plugins/profile/RUN/HOST.xplane.pb``."""
    folders = {source.path.absolute().parent for source in sources}
    planes = all(source.path.name.endswith(_PLANES) for source in sources)
    if len(sources) < 2 or len(folders) != 1 or not planes:
        return None
    ordered = sorted(sources, key=lambda source: natural(source.path.name))
    return Ranks(dict(enumerate(ordered)), by_order=True)
