"""Which of a folder's profiles belong together: those of one job's one run, told by their first bytes and their names.

Profiles of another form or of a job of another size are of another job. Where a rank has several profiles, there were
several runs (or several windows of one): they are told apart by when they began, and one is taken whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from stepscope.cluster.limits import RUN_RANKS_SHARE
from stepscope.formats import readers
from stepscope.formats.find import natural
from stepscope.inputs.source import Source
from stepscope.record import record
from stepscope.regex import regex

HEAD_BYTES = readers.HEAD_BYTES
_WORLD = regex(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"world_size"\s*:\s*(\d{1,9})\b')
_BASE = regex(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_FIRST = regex(rb'"ts"\s*:\s*"?(\d{1,16})\b')
_IN_NAME = regex(r"(?<!\d)(1\d{18}|1\d{15}|1\d{12})(?!\d)")
_DIGITS = regex(r"\d+")
_NS_DIGITS = 19
_ANY_READER = "stepscope's saved form"
"""Made of a profile of any form."""


@record
class Told:
    """A profile of a rank, and what its beginning and its name tell of the job and the run."""

    source: Source
    rank: int
    form: str | None = None
    world: int | None = None
    start_ns: int | None = None
    """When recording began, since 1970."""


@record
class LeftOut:
    """Profiles that are not read, as they are of another job or run: "are of …"."""

    paths: tuple[str, ...]
    why: str


def told(source: Source, rank: int, head: bytes) -> Told:
    """What a profile's first bytes (none where nobody looked) and its name tell."""
    form = next((reader.name for reader in readers.READERS if reader.recognise(head)), None) if head else None
    world, base, first = (pattern.search(head) for pattern in (_WORLD, _BASE, _FIRST))
    named = _IN_NAME.findall(source.path.name)
    start = int(named[-1]) * 10 ** (_NS_DIGITS - len(named[-1])) if named else None
    if base and first:
        start = int(base[1]) + 1000 * int(first[1])
    return Told(source, rank, None if form == _ANY_READER else form, int(world[1]) if world else None, start)


def one_run(profiles: Sequence[Told]) -> tuple[list[Told], list[LeftOut]]:
    """The profiles of one run: of several jobs the one with most ranks, of its runs the newest that is no mere rest.

    A rank may be there several times yet: copies, and profiles that nothing tells apart.
    """
    jobs = sorted(_jobs(profiles), key=lambda job: (-_ranks(job), -max(one.start_ns or 0 for one in job)))
    chosen, left = jobs[0], [LeftOut(_paths(job), _other_job(job, jobs[0])) for job in jobs[1:]]
    runs = _runs(chosen)
    whole = RUN_RANKS_SHARE * max(map(_ranks, runs))
    newest = next(run for run in reversed(runs) if _ranks(run) >= whole)
    at = runs.index(newest)
    for others, word in ((runs[:at], "an earlier"), (runs[at + 1 :], "a later")):
        if others:
            fewer = ", which has fewer ranks" if word == "a later" else ""
            left.append(LeftOut(tuple(path for run in others for path in _paths(run)), f"of {word} run{fewer}"))
    return newest, left


def _ranks(profiles: Sequence[Told]) -> int:
    return len({one.rank for one in profiles})


def _paths(profiles: Sequence[Told]) -> tuple[str, ...]:
    return tuple(sorted((str(one.source.path) for one in profiles), key=natural))


def _jobs(profiles: Sequence[Told]) -> list[list[Told]]:
    """Profiles of one form and one size of the job; what does not tell belongs to the most that it may belong to."""
    counted = Counter((one.form, one.world) for one in profiles)
    order = sorted(counted, key=lambda kind: (sum(part is None for part in kind), -counted[kind]))
    kinds: list[tuple[str | None, int | None]] = []
    for kind in order:
        if not any(_fits(kind, other) for other in kinds):
            kinds.append(kind)
    jobs: dict[tuple[str | None, int | None], list[Told]] = defaultdict(list)
    for one in profiles:
        jobs[next(kind for kind in kinds if _fits((one.form, one.world), kind))].append(one)
    return list(jobs.values())


def _fits(kind: tuple[str | None, int | None], other: tuple[str | None, int | None]) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(kind, other, strict=True))


def _other_job(job: Sequence[Told], chosen: Sequence[Told]) -> str:
    worlds = [next((one.world for one in of if one.world is not None), None) for of in (job, chosen)]
    forms = [next((one.form for one in of if one.form is not None), None) for of in (job, chosen)]
    if None not in worlds and worlds[0] != worlds[1]:
        return f"of another job, of {worlds[0]} ranks instead of {worlds[1]}"
    return f"of another job ({forms[0]}, not {forms[1]})"


def _runs(profiles: Sequence[Told]) -> list[list[Told]]:
    """Runs in the order of time."""
    if all(one.start_ns is not None for one in profiles):
        return _apart(profiles)
    if _ranks(profiles) == len(profiles):
        return [list(profiles)]
    named: dict[str, list[Told]] = defaultdict(list)
    for one in profiles:
        named[_without_rank(one)].append(one)
    if max(map(_ranks, named.values())) < min(2, _ranks(profiles)):  # Names hold more that differs: process ids.
        return [list(profiles)]
    return [named[name] for name in sorted(named, key=natural)]


def _apart(profiles: Sequence[Told]) -> list[list[Told]]:
    """Those with least time between their starts belong together, as long as no rank began twice."""
    began = [(one.start_ns or 0, one.rank) for one in profiles]
    starts = sorted(set(began))
    run, ranks = list(range(len(starts))), [{rank} for _, rank in starts]

    def of(at: int) -> int:
        while run[at] != at:
            run[at] = at = run[run[at]]
        return at

    for at in sorted(range(len(starts) - 1), key=lambda at: starts[at + 1][0] - starts[at][0]):
        small, large = sorted((of(at), of(at + 1)), key=lambda one: len(ranks[one]))
        if ranks[small].isdisjoint(ranks[large]):
            run[small] = large
            ranks[large] |= ranks[small]
    place = {start: of(at) for at, start in enumerate(starts)}
    runs: dict[int, list[Told]] = defaultdict(list)
    for start, one in sorted(zip(began, profiles, strict=True), key=lambda pair: pair[0]):
        runs[place[start]].append(one)
    return list(runs.values())


def _without_rank(one: Told) -> str:
    """A profile's path with the rank's number, wherever it stands, left out."""
    return _DIGITS.sub(lambda digits: "" if int(digits[0]) == one.rank else digits[0], str(one.source.path))
