"""What commands ask of a job's ranks: the options, and which profile is the rank that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from stepscope.errors import UsageError

if TYPE_CHECKING:
    from stepscope.cluster.ranks import Ranks
    from stepscope.inputs.folders import Skipped
    from stepscope.inputs.source import Source

NO_JOB = "--scheduler reads the ranks of a job: these are none"
_NAMED = 8

Command = Callable[..., int]


class AskedRanks(NamedTuple):
    """What ``rank_options`` say."""

    rank: int | None
    rank_pattern: str | None
    scheduler: str | None


def rank_options(command: Command) -> Command:
    """``--rank-pattern``, ``--scheduler`` and ``--rank``."""
    for option in (
        click.option(
            "--rank", type=click.IntRange(min=0), metavar="N", help="Read this rank of a job alone."
        ),
        click.option(
            "--scheduler", metavar="ADDRESS",
            help="Have a job's ranks read by the workers of a Dask scheduler (tcp://HOST:PORT), or of 'local', one "
            "made here.",
        ),
        click.option(
            "--rank-pattern", metavar="REGEX",
            help=r"What says a profile's rank in its path, with a group for the digits: 'node\d+_(\d+)\.json'.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def ranks(
    sources: list[Source], pattern: str | None, rank: int | None, skipped: Sequence[Skipped] = ()
) -> Ranks | None:
    """The job whose ranks these profiles are, if they are. Raises UsageError where that was asked for and is not so."""
    if len(sources) + len(skipped) < 2 and pattern is None and rank is None:
        return None
    from stepscope.cluster.ranks import ranks_of

    job = ranks_of(sources, pattern, skipped)
    if job is None and (pattern is not None or rank is not None) and len(sources) > 1:
        raise UsageError("nothing says which ranks these profiles are of: name them with --rank-pattern")
    return job


def chosen(sources: list[Source], job: Ranks | None, rank: int) -> Source:
    """The profile of one rank. Raises UsageError where there is none."""
    from stepscope.cluster.ranks import rank_of

    of = job.sources if job is not None else {rank_of(source): source for source in sources}
    if rank not in of:
        told = [str(one) for one in of if one is not None]
        known = ", ".join(told[:_NAMED]) + (", …" if len(told) > _NAMED else "")
        raise UsageError(f"--rank {rank}: there is no such rank here" + (f"; there are {known}" if known else ""))
    return of[rank]
