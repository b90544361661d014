"""open -> analyse -> diagnose -> report: the public API."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.recording import run_of
from stepscope.capture.results import manifest_of
from stepscope.diagnosed import Diagnosed
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.errors import InputError, StepscopeError, UsageError
from stepscope.formats import readers, recorded
from stepscope.formats.completed import completed
from stepscope.formats.find import MOST_RANKS, find
from stepscope.inputs.source import Source
from stepscope.trace.tables import TABLES
from stepscope.trace.trace import Trace
from stepscope.units import format_ns

if TYPE_CHECKING:
    import polars as pl

    from stepscope.cluster.job import Failed
    from stepscope.cluster.partial import Partial
    from stepscope.cluster.ranks import Ranks
    from stepscope.comparison.side import Side
    from stepscope.diagnosis.what_if import LargerBatch, Prediction
    from stepscope.document.report import Report
    from stepscope.jobs import Job
    from stepscope.web.assemble import ShownRun

Progress = Callable[[str, int, int], None]
Span = tuple[int | None, int | None]
"""Start and end; None is an open end."""

_NAMED = 5
"""Profiles named where one was wanted."""


class Profile(Diagnosed):
    """One process's profile, read and diagnosed.

    ``trace`` holds the declared tables; ``steps`` and ``accounting`` are polars frames; ``findings`` are ranked by
    what their fix saves; ``document()`` is everything as one JSON-ready dict.
    What a profile can do beside being diagnosed is imported by the method that does it.
    """

    def __init__(self, source: Source, trace: Trace, progress: Progress | None = None) -> None:
        self.source = source
        self.trace = trace
        self._progress = progress

    @cached_property
    def facts(self) -> Facts:
        """Everything the analyses found."""
        return replace(analyse(self.trace, self._progress), run=run_of(self._manifest))

    @cached_property
    def _manifest(self) -> dict[str, Any] | None:
        return manifest_of(self.source.place)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Everything the rules say."""
        return diagnose(self.facts, self._manifest)

    def arguments(self, slice_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Everything the recorded file says about some slices (``args``), read again from it.

        Raises InputError where the file is gone, has changed, or says no more than the tables hold, UsageError where
        there is no such slice.
        """
        if not all(0 <= s < len(self.trace.slices) for s in slice_ids):
            raise UsageError(f"no such slice: this profile has {len(self.trace.slices):,}, numbered from 0")
        return recorded.arguments_of(self.trace, [int(self.trace.slices.offset[s]) for s in slice_ids])

    def table(self, name: str) -> pl.DataFrame:
        """A declared table (``docs/tables.md``) as a frame, the same that ``query`` reads: tables that others refer to
        begin with the column ``id``. Raises KeyError for another name."""
        if name not in TABLES:
            raise KeyError(f"no table {name!r}; there are {', '.join(TABLES)}")
        from stepscope.trace.views import numbered

        return numbered(self.trace, name)

    def query(self, sql: str, *, time_ns: Span | None = None) -> pl.DataFrame:
        """The rows that a SELECT from the declared tables, ``ops``, ``host``, ``steps`` and ``accounting`` yields.

        With ``time_ns``, ``(start, end)``, the tables hold what overlaps that time. Raises UsageError where the query
        is wrong, or is more than a SELECT.
        """
        from stepscope.report import frames
        from stepscope.sql import query
        from stepscope.whatif.critical import columns

        return query(sql, frames.by_name(self.trace, self.brief, time_ns, lambda: columns(self.facts)))

    def region(self, start_ns: int | None, end_ns: int | None) -> pl.DataFrame:
        """Where a stretch of time went on each device and host thread (columns: ``analysis.region.REGION``).

        None is the profile's own start or end. Raises UsageError where the stretch is empty or lies outside.
        """
        from stepscope.analysis.region import region
        from stepscope.trace import select

        begin, end = select.bounds(self.trace, start_ns, end_ns)
        first, last = select.extent(self.trace)
        if begin >= last or end <= first:
            raise UsageError(
                f"this profile holds nothing of that time: it lasts from {format_ns(first)} to {format_ns(last)}"
            )
        return region(self.facts, begin, end)

    def what_if(self, *names: str, every: int = 1) -> Prediction:
        """The step time without some findings (ids), parts of their fix sets (``sync_bound.1/2``) or categories.

        With ``every``, what is named still happens in each so many steps. Raises UsageError where nothing can be
        replayed, or this profile has nothing of that name.
        """
        from stepscope.diagnosis.what_if import what_if

        return what_if(self.facts, self.diagnosis, names, every)

    def larger_batch(self, factor: float) -> LargerBatch:
        """The step time of a batch so many times as large. Raises UsageError where nothing can be replayed."""
        from stepscope.diagnosis.what_if import larger_batch

        return larger_batch(self.facts, self.diagnosis, factor)

    @cached_property
    def side(self) -> Side:
        """This profile as one of two that are compared."""
        from stepscope.comparison.side import of_profile

        return of_profile(self.facts, self.diagnosis)

    def slice(
        self, *, steps: Span | None = None, time_ns: Span | None = None, min_dur_ns: int | None = None
    ) -> Profile:
        """A smaller profile: steps ``(first, one behind the last)``, a stretch of time, slices no shorter than this.

        Steps that were inferred stay what they were. Raises UsageError where nothing is left.
        """
        from stepscope.analysis.excerpt import by_steps, with_inferred_steps
        from stepscope.trace import select

        parts = [
            *([by_steps(self.facts, *steps)] if steps else []),
            *([select.by_time(self.trace, *time_ns)] if time_ns else []),
            *([select.by_duration(self.trace, min_dur_ns)] if min_dur_ns is not None else []),
        ]
        if not parts:
            return self
        windows = [part.window for part in parts if part.window is not None]
        part = with_inferred_steps(select.select(self.trace, *parts), self.trace, windows)
        return Profile(self.source, part, self._progress)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write stepscope's own saved form, which opens at once; a file of that name is replaced.

        Raises OSError where the disk does.
        """
        from stepscope.formats import saved

        saved.write(self.trace, Path(path))

    def document(self) -> Report:
        """The report as one JSON-ready dict (schema ``stepscope.report/1``)."""
        return self._document

    def brief(self) -> Report:
        """The document without the tables of ``analyses`` that short texts do not show, which take time to work out."""
        return self._brief

    @cached_property
    def _document(self) -> Report:
        from stepscope.report import document

        return document.whole(self.brief(), self.facts, self.diagnosis, self._asked())

    @cached_property
    def _brief(self) -> Report:
        from stepscope.report import document

        file = document.InputFile(str(self.source.path), self.source.size, self.trace.completeness.events)
        return document.brief(self.facts, self.diagnosis, [file])

    def run(self) -> ShownRun:
        """What pages show of this profile: the report and the trace, packed for a browser."""
        from stepscope.web.assemble import ShownRun
        from stepscope.web.pack import pack

        return ShownRun(self.source.path.name, self.document(), pack(self))

    def _named(self) -> str:
        return f"Profile {self.source.path.name}, {self.trace.completeness.events:,} events"

    @property
    def whole(self) -> bool:
        """Whether all bytes and events of the input became rows."""
        return self.trace.completeness.complete


def open(
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    rank_pattern: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Profile | Job:
    """Read a profile, or the profiles of a job's ranks, in any format stepscope knows.

    ``path`` is a file, or a folder, zip archive or pattern that leads to one profile or to several of one job: ranks
    are told by what the files say, by their names, or by ``rank_pattern``, a regular expression with a group for the
    number. ``workers`` processes read ranks at once (one per core), or a Dask ``scheduler``'s: its address, or
    ``local``. ``path`` may be a URL of fsspec (``s3://…``), of a file, a folder or a pattern.

    Raises InputError where nothing can be read, or where there are several profiles that are no ranks of one job
    (``open_all`` reads those).
    """
    inputs = find(os.fspath(path), MOST_RANKS)
    if len(inputs.sources) + len(inputs.skipped) > 1 or rank_pattern is not None:
        from stepscope.cluster.ranks import ranks_of

        ranks = ranks_of(inputs.sources, rank_pattern, inputs.skipped)
    else:
        ranks = None
    if ranks is not None:
        return read_ranks(ranks, progress=progress, workers=workers, scheduler=scheduler)
    return read(only(path, inputs.sources), progress=progress)


def open_profile(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Profile:
    """Read one profile; analyses run when their results are first asked for.

    ``path`` is a file, or a folder, zip archive or pattern that leads to one profile. Raises InputError where it
    cannot be read, leads to no profile, or to several.
    """
    return read(only(path, find(os.fspath(path)).sources), progress=progress)


def only(path: str | os.PathLike[str], sources: Sequence[Source]) -> Source:
    """The one profile that a path leads to. Raises InputError where it leads to several."""
    if len(sources) > 1:
        names = (str(source.path) for source in sources[:_NAMED])
        more = ("…",) if len(sources) > _NAMED else ()
        raise InputError(f"{path}: holds {len(sources)} profiles; name one of them", *names, *more)
    return sources[0]


def read_ranks(
    ranks: Ranks, *, progress: Progress | None = None, workers: int | None = None, scheduler: str | None = None
) -> Job:
    """Read the ranks of a job and diagnose them together, in processes of this machine or by a Dask ``scheduler``'s
    workers (its address, or ``local``). Raises InputError where none can be read."""
    from stepscope.jobs import read_job

    entry = "stepscope.pipeline:reduce_rank"
    return read_job(ranks, entry, reduce_rank, progress=progress, workers=workers, scheduler=scheduler)


def reduce_rank(source: Source) -> Partial | Failed:
    """Read one rank and keep what is compared between ranks."""
    from stepscope.cluster.job import Failed
    from stepscope.cluster.partial import reduce

    try:
        profile = read(source)
        return reduce(profile.facts, profile.diagnosis, str(source.path), source.size)
    except StepscopeError as error:
        return Failed(str(source.path), error.sentence.removeprefix(f"{source.path}: "))


def open_all(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Iterator[Profile]:
    """Read the profiles that a path leads to, one after another, each when it is asked for.

    Raises InputError where there are none, and at the first that cannot be read.
    """
    for source in find(os.fspath(path)).sources:
        yield read(source, progress=progress)


def read(source: Source, *, progress: Progress | None = None) -> Profile:
    """Read one file. Raises InputError where it cannot be read or holds no profile."""
    reading = (lambda done, total: progress("reading", done, total)) if progress else None
    with source.here() as here:
        reader = readers.recognise(here)
        if progress and reader.must_compile(here.inflated):
            progress("compile", 0, 0)
        manifest = manifest_of(source.place)
        trace = completed(readers.read(reader, here, reading), here.place, source.path.name, manifest)
        profile = Profile(source, recorded.remembering(trace, here), progress)
        profile._manifest = manifest  # It is asked for again.
        return profile
