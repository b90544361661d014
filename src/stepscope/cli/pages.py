"""What goes into one HTML file: profiles, and jobs with the pages of some of their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.cli.limits import RANK_PAGES, RANK_PAGES_BYTES
from stepscope.cli.progress import ProgressBar
from stepscope.cli.streams import say
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.jobs import Job
    from stepscope.pipeline import Profile
    from stepscope.web.assemble import ShownRun


def runs_of(opened: Profile | Job, first: int = 0) -> list[ShownRun]:
    """The pages of a profile, or of a job and some of its ranks: those that its findings name, then those that others
    wait for.

    ``first`` is the position of the first of them in the file.
    """
    from stepscope.pipeline import Profile

    return [opened.run()] if isinstance(opened, Profile) else _job(opened, first)


def _job(job: Job, first: int) -> list[ShownRun]:
    runs: list[ShownRun] = []
    traces: dict[int, int] = {}
    wanted, held = _named_first(job), 0
    for rank in wanted[:RANK_PAGES]:
        made = _rank(job, rank)
        size = len(made.pack or b"") if made else 0
        if made is None or held + size > RANK_PAGES_BYTES:
            continue
        held += size
        runs.append(made)
        traces[rank] = first + len(runs)
    left = [rank for rank in wanted if rank not in traces]
    why = ""
    if left:
        why = (
            f"This file holds the pages of {len(traces)} of {len(wanted)} ranks, those that findings name and others "
            "wait for first: write those of another with --rank N."
        )
        say(why)
    return [job.run(traces, why), *runs]


def _rank(job: Job, rank: int) -> ShownRun | None:
    """The pages of one rank; None, which is said, where it can no longer be read."""
    from dataclasses import replace

    from stepscope import pipeline

    try:
        with ProgressBar() as progress:
            made = pipeline.read(job.sources[rank], progress=progress).run()
    except StepscopeError as error:
        say(error.sentence, *error.details)
        return None
    return replace(made, title=f"rank {rank}: {made.title}")


def _named_first(job: Job) -> list[int]:
    document = job.document()
    named = [finding["rank"] for finding in document["findings"]]
    named += [one["rank"] for one in document["analyses"]["ranks"]["stragglers"]]
    waited: dict[int, int] = {}
    for row in document["analyses"]["ranks"]["per_rank"]:
        rank = row["rank"]
        waited[rank] = max(waited.get(rank, 0), row["made_wait_ns_per_step"] or 0)
    place = {rank: at for at, rank in reversed(list(enumerate(named)))}
    return sorted(job.ranks, key=lambda rank: (place.get(rank, len(named)), -waited.get(rank, 0), rank))
