"""Many ranks as one: their profiles read one by one in processes of their own, and put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from stepscope.analysis.exchange.asked import Asked
from stepscope.cluster.findings import diagnose
from stepscope.cluster.intake import Intake
from stepscope.cluster.job import Failed, JobFacts, combine
from stepscope.cluster.partial import Partial
from stepscope.cluster.pool import Task, read_all
from stepscope.cluster.ranks import Ranks
from stepscope.diagnosis.finding import Diagnosis, Notice
from stepscope.errors import Exit, InputError
from stepscope.inputs.source import Source
from stepscope.report.readable import Findings, job_line

if TYPE_CHECKING:
    import polars as pl

    from stepscope.comparison.side import Side
    from stepscope.web.assemble import Run

_NAMED = 3
Progress = Callable[[str, int, int], None]

_NO_TRACES = "This report was written without the traces of its ranks: open one rank's profile to see its trace."


class Job:
    """The ranks of one job, read and diagnosed together.

    ``facts`` holds clocks, matched collectives and blame; ``findings`` say of which rank they are; ``document()`` is
    everything as one JSON-ready dict.
    """

    def __init__(self, ranks: Ranks, facts: JobFacts) -> None:
        self.sources = ranks.sources
        """Each rank's profile."""
        self.facts = facts
        self.parameters: int | None = None
        """Parameters of the model, for the estimate of what reducing gradients takes; set before the report is made."""
        self.bandwidth: float | None = None
        """Bytes per second between devices in one direction, for that estimate; likewise."""
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
        found = []
        if self._by_order:
            found.append(
                Notice(
                    "ranks_by_order",
                    "Nothing in these profiles says which process is which: ranks are numbered in the order of the "
                    "files' names.",
                )
            )
        if self._unranked:
            found.append(
                Notice(
                    "rank_unknown",
                    f"Left out, as nothing says which rank's they are: {_some(self._unranked)}. --rank-pattern can say "
                    "it.",
                    len(self._unranked),
                )
            )
        for one in self._left_out:
            count = len(one.paths)
            found.append(
                Notice(
                    "other_run",
                    f"Left out, as {'it is' if count == 1 else 'they are'} {one.why}: {_some(one.paths)}. To read "
                    f"{'it' if count == 1 else 'them'}, name the file{'s' * (count > 1)}, or choose with "
                    "--rank-pattern.",
                    count,
                )
            )
        return found

    @property
    def findings(self) -> Findings:
        """What costs time, largest saving first: a tuple that shows as a table."""
        return Findings(self.diagnosis.findings)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What one must know of the job's profiles."""
        return self.diagnosis.notices

    @property
    def verdict(self) -> str:
        """The diagnosis in one sentence."""
        return self.diagnosis.verdict

    @cached_property
    def steps(self) -> pl.DataFrame:
        """One row per rank and step; times in ns."""
        from stepscope.report import frames

        return frames.steps(self.document())

    @cached_property
    def accounting(self) -> pl.DataFrame:
        """One row per rank, device and step (and the time around steps), one column of ns per category."""
        from stepscope.report import frames

        return frames.accounting(self.document())

    def __repr__(self) -> str:
        known = self.__dict__.get("diagnosis")  # Showing a job works nothing out.
        return job_line(self.ranks, *((known.verdict, known.findings) if known else (None, ())))

    def document(self) -> dict[str, Any]:
        """The report as one JSON-ready dict (schema ``stepscope.report/1``)."""
        return self._document

    def brief(self) -> dict[str, Any]:
        """What short texts show: of a job the whole document, as they say what its ranks do."""
        return self._document

    @cached_property
    def _document(self) -> dict[str, Any]:
        from stepscope.report import document

        return document.of_job(self.facts, self.diagnosis, Asked(self.parameters, self.bandwidth))

    def run(self, traces: Mapping[int, int] | None = None, no_traces: str = _NO_TRACES) -> Run:
        """What pages show of this job; ``traces`` says which runs beside it hold the ranks' traces, ``no_traces`` why
        others' are not there."""
        from stepscope.report import phrases
        from stepscope.web.assemble import Run
        from stepscope.web.links import links

        document = self.document()
        joined = links(self.facts, traces) if traces else None
        return Run(phrases.header(document)[0], document, joined, no_traces, traces or {})

    def html(self) -> str:
        """The report as one HTML page that needs nothing else; the ranks' traces are not in it."""
        from stepscope.web.assemble import html_file

        return html_file([self.run()])

    @property
    def side(self) -> Side:
        """This job as one of two that are compared."""
        from stepscope.comparison.side import of_job

        return of_job(self.facts, self.diagnosis)

    @property
    def exit_status(self) -> Exit:
        """``OK``, or ``PARTIAL`` where a rank, or a part of one, could not be read."""
        whole = all(partial.complete for partial in self.facts.partials) and not self.facts.failed
        return Exit.OK if whole else Exit.PARTIAL


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
    for task, found, again in reads:
        if isinstance(found, Failed):
            failed.append(replace(found, rank=task.rank))
        else:
            partials.append(intake.take(found, task.rank))
            if again:
                reread.append(task.rank)
        if progress is not None:
            progress("ranks", len(partials) + len(failed) - len(ranks.refused), len(tasks))
    if not partials:
        details = [f"{one.path}: {one.reason}" for one in failed[:8]]
        raise InputError(f"none of the job's {len(tasks)} ranks can be read", *details)
    return Job(ranks, combine(partials, sorted(failed, key=lambda one: one.rank or 0), ranks.duplicates, reread))
