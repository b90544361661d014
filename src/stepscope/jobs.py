"""Many ranks as one: their profiles read one by one in processes of their own, and put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from stepscope.cluster.findings import diagnose
from stepscope.cluster.intake import Intake
from stepscope.cluster.job import Failed, JobFacts, combine
from stepscope.cluster.partial import Partial
from stepscope.cluster.pool import Task, read_all
from stepscope.cluster.ranks import Ranks
from stepscope.diagnosed import Diagnosed
from stepscope.diagnosis.finding import Diagnosis, Notice
from stepscope.errors import InputError
from stepscope.inputs.source import Source

if TYPE_CHECKING:
    from stepscope.comparison.side import Side
    from stepscope.document.report import Report
    from stepscope.web.assemble import ShownRun

_NAMED = 3
Progress = Callable[[str, int, int], None]

_NO_TRACES = "This report was written without the traces of its ranks: open one rank's profile to see its trace."


class Job(Diagnosed):
    """The ranks of one job, read and diagnosed together.

    ``facts`` holds clocks, matched collectives and blame; ``findings`` say of which rank they are; ``document()`` is
    everything as one JSON-ready dict.
    """

    def __init__(self, ranks: Ranks, facts: JobFacts) -> None:
        self.sources = ranks.sources
        """Each rank's profile."""
        self.facts = facts
        self._by_order = ranks.by_order
        self._unranked = ranks.unranked
        self._left_out = ranks.left_out

    @property
    def ranks(self) -> list[int]:
        """The ranks that were read."""
        return self.facts.ranks

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Everything that is said of the job."""
        made = diagnose(self.facts)
        return replace(made, notices=(*self._of_files(), *made.notices))

    def _of_files(self) -> list[Notice]:
        notices = []
        if self._by_order:
            notices.append(
                Notice(
                    "ranks_by_order",
                    "Nothing in these profiles says which process is which: ranks are numbered in the order of the "
                    "files' names.",
                )
            )
        if self._unranked:
            notices.append(
                Notice(
                    "rank_unknown",
                    f"Left out, as nothing says which rank's they are: {_some(self._unranked)}. --rank-pattern can say "
                    "it.",
                    len(self._unranked),
                )
            )
        for one in self._left_out:
            count = len(one.paths)
            notices.append(
                Notice(
                    "other_run",
                    f"Left out, as {'it is' if count == 1 else 'they are'} {one.why}: {_some(one.paths)}. To read "
                    f"{'it' if count == 1 else 'them'}, name the file{'s' * (count > 1)}, or choose with "
                    "--rank-pattern.",
                    count,
                )
            )
        return notices

    def document(self) -> Report:
        """The report as one JSON-ready dict (schema ``stepscope.report/1``)."""
        return self._document

    @cached_property
    def _document(self) -> Report:
        from stepscope.report import document

        return document.of_job(self.facts, self.diagnosis, self._asked())

    def run(self, traces: Mapping[int, int] | None = None, no_traces: str = _NO_TRACES) -> ShownRun:
        """What pages show of this job; ``traces`` says which runs beside it hold the ranks' traces, ``no_traces`` why
        others' are not there."""
        from stepscope.report import phrases
        from stepscope.web.assemble import ShownRun
        from stepscope.web.links import links

        document = self.document()
        joined = links(self.facts, traces) if traces else None
        return ShownRun(phrases.header(document)[0], document, joined, no_traces, traces or {})

    @cached_property
    def side(self) -> Side:
        """This job as one of two that are compared."""
        from stepscope.comparison.side import of_job

        return of_job(self.facts, self.diagnosis)

    def _named(self) -> str:
        return f"Job of {len(self.ranks):,} ranks"

    @property
    def whole(self) -> bool:
        """Whether every rank could be read, and all of each."""
        return all(partial.complete for partial in self.facts.partials) and not self.facts.failed


def _some(paths: Sequence[str]) -> str:
    """The first few files, by their names."""
    return ", ".join(PurePath(path).name for path in paths[:_NAMED]) + (", …" if len(paths) > _NAMED else "")


def read_job(
    ranks: Ranks,
    entry: str,
    reduce: Callable[[Source], Partial | Failed],
    *,
    progress: Progress | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Job:
    """Read every rank of a job and put them together; ``entry`` (``module:function``) names ``reduce``.

    ``scheduler`` is the address of a Dask scheduler whose workers read them, or ``local``. Raises InputError where none
    of them can be read.
    """
    tasks = [Task(rank, source) for rank, source in ranks.sources.items()]
    partials, failed, reread = [], list(ranks.refused), []
    intake = Intake()
    if scheduler:
        from stepscope.cluster import dask

        reads = dask.read_all(tasks, reduce, scheduler, workers)
    else:
        reads = read_all(tasks, entry, reduce, workers)
    for task, partial, again in reads:
        if isinstance(partial, Failed):
            failed.append(replace(partial, rank=task.rank))
        else:
            partials.append(intake.take(partial, task.rank))
            if again:
                reread.append(task.rank)
        if progress is not None:
            progress("ranks", len(partials) + len(failed) - len(ranks.refused), len(tasks))
    if not partials:
        details = [f"{one.path}: {one.reason}" for one in failed[:8]]
        raise InputError(f"none of the job's {len(tasks)} ranks can be read", *details)
    return Job(ranks, combine(partials, sorted(failed, key=lambda one: one.rank or 0), ranks.duplicates, reread))
