"""``stepscope diagnose``: why each step takes as long as it does."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.cli.budgets import budgets_of
from stepscope.cli.building import build_if_missed
from stepscope.cli.outputs import chosen_format, format_option
from stepscope.cli.progress import ProgressBar
from stepscope.cli.ranks import NO_JOB, AskedRanks, chosen, rank_options, ranks
from stepscope.cli.run_folders import last_runs
from stepscope.cli.streams import say, stdout_width, wants_color
from stepscope.cli.timings import now, timings_option, watched
from stepscope.errors import Exit, StepscopeError, UsageError
from stepscope.replacing import write_text

if TYPE_CHECKING:
    from stepscope.cluster.ranks import Ranks
    from stepscope.comparison.budgets import Budget, BudgetOutcome
    from stepscope.document.report import Report as Document
    from stepscope.inputs.folders import Skipped
    from stepscope.inputs.source import Source
    from stepscope.jobs import Job
    from stepscope.pipeline import Profile

    Opened = tuple["DiagnoseWanted", Profile | Job, Document]
    """What was wanted, what it is, and what is shown of it."""

_FILE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class DiagnoseWanted:
    """What is read and diagnosed on its own."""

    path: Path
    read: Callable[..., Profile | Job]
    named: bool = False
    """Whether its path stands above its report: a report begins with its file's name, which tells nothing where a
    folder has several of one name."""


def _parameters(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """A number of parameters as people write it: 7B, 350M, 124439808."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([kmbt]?)", text.strip().lower().replace("_", ""))
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is no number of parameters; write one like 7B, 350M or 124439808")
    return round(float(match[1]) * {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}[match[2]])


def _bandwidth(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """Bytes per second as people write it: 25GB/s, 200Gbit/s."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([KMGT])(B|bit|b)(?:/s|ps)", text.strip())
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is no bandwidth; write one like 25GB/s or 200Gbit/s")
    scale = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[match[2]]
    return float(match[1]) * scale / (1 if match[3] == "B" else 8)


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@format_option("How to write it; json always holds everything, html shows it, with the trace, in one file.")
@click.option("-o", "--out", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Show the evidence and every table behind the diagnosis.")
@click.option(
    "--fail-if", "conditions", metavar="CONDITION", multiple=True,
    help="Exit with status 4 where it holds: 'device_busy < 80%', 'step_time > 20ms', 'input > 5%'. May be given "
    "several times. Default: those in pyproject.toml's [tool.stepscope] that are no changes.",
)  # fmt: skip
@rank_options
@click.option(
    "--params", "parameters", callback=_parameters, metavar="N",
    help="Parameters of the model (7B, 350M, 124439808): what reducing their gradients would take at the link's peak.",
)  # fmt: skip
@click.option(
    "--bandwidth", callback=_bandwidth, metavar="B/S",
    help="What a device sends to another in one direction (25GB/s, 200Gbit/s), for that estimate between hosts or "
    "unknown devices.",
)  # fmt: skip
@click.option(
    "--separately", is_flag=True, help="Diagnose each profile on its own, also where they are ranks of one job."
)
@timings_option
def diagnose(  # noqa: PLR0913  One per option.
    paths: tuple[str, ...],
    form: str | None,
    out: str | None,
    verbose: bool,
    conditions: tuple[str, ...],
    parameters: int | None,
    bandwidth: float | None,
    separately: bool,
    **of_ranks: Any,
) -> int:
    """Say why each step takes as long as it does, what to change, and how much that saves.

    PATH is a profile in any format, recognised by its content, or a folder, a zip archive or a pattern
    ("runs/*.json") that leads to some, also of an object store ("s3://bucket/run7"); without it, it is the last run
    in stepscope-run. Ranks of one job are diagnosed together, other profiles each on its own; of TensorBoard's runs
    the newest is read.

    Exit status: 0 done, 1 a profile could not be read, 2 wrong usage, 3 a profile was damaged and the report
    covers what was left of it, 4 a --fail-if fired.
    """
    form = chosen_format(form, out, "report.html")
    paths = paths or tuple(last_runs(1))
    ended = _Ended(budgets_of(conditions, Path.cwd(), changes=False))
    now("finding")
    wanted, whole = _wanted(paths, ended, AskedRanks(**of_ranks), verbose=verbose, separately=separately)
    if form == "json" and (len(wanted) > 1 or (len(paths) > 1 and not whole)):
        raise UsageError("--format json is one document of one profile or of one job's ranks: these are neither")
    writes = _html if form == "html" else partial(_text, form=form, verbose=verbose)
    sole = len(wanted) == len(paths) == 1
    asked = (parameters, bandwidth)
    short = form == "text" and not verbose and asked == (None, None)  # It shows no table, and no estimate unasked.
    writes(_opened(wanted, ended, sole=sole, short=short, asked=asked), out)
    build_if_missed(wanted[0].path)
    return ended.status()


@dataclass
class _Ended:
    """How reading went, and whether conditions hold: what the exit status says."""

    budgets: list[Budget]
    statuses: list[Exit] = field(default_factory=list)
    outcomes: list[BudgetOutcome] = field(default_factory=list)

    def read(self, run: Profile | Job) -> None:
        """Take what one is like."""
        self.statuses.append(run.exit_status)
        if self.budgets:
            from stepscope.comparison.budgets import check

            self.outcomes += [check(budget, run.side) for budget in self.budgets]

    def status(self) -> Exit:
        """The exit status; conditions that fired are said."""
        fired = [outcome for outcome in self.outcomes if outcome.fired]
        for outcome in fired:
            say(f"--fail-if {outcome.sentence}")
        if fired and Exit.UNREADABLE not in self.statuses:
            return Exit.FAIL_IF
        return min((status for status in self.statuses if status), default=Exit.OK)


def _wanted(
    paths: tuple[str, ...], ended: _Ended, asked: AskedRanks, *, verbose: bool, separately: bool
) -> tuple[list[DiagnoseWanted], bool]:
    """What is diagnosed on its own, a job or each profile; and whether the paths together are one of these."""
    from stepscope.formats.find import joined
    from stepscope.inputs.joined import parts_of

    sources, skipped, statuses = _sources(paths, verbose=verbose)
    ended.statuses += statuses
    sources = [part for one in sources for part in parts_of(one)] if separately else joined(sources)
    job = None if separately else ranks(sources, asked.rank_pattern, asked.rank, skipped)
    if asked.rank is not None:
        sources, job = [chosen(sources, job, asked.rank)], None
    if asked.scheduler is not None and job is None:
        raise UsageError(NO_JOB)
    whole = job is not None or (len(sources) == 1 and len(parts_of(sources[0])) == len(paths))
    return _each(sources, job, paths, asked.scheduler), whole


def _each(
    sources: list[Source], job: Ranks | None, paths: tuple[str, ...], scheduler: str | None
) -> list[DiagnoseWanted]:
    from stepscope import pipeline

    if job is not None:
        return [DiagnoseWanted(Path(paths[0]), partial(pipeline.read_ranks, job, scheduler=scheduler))]
    sources = _first(sources, paths)
    names = Counter(source.path.name for source in sources)
    return [DiagnoseWanted(s.path, partial(pipeline.read, s), named=names[s.path.name] > 1) for s in sources]


def _opened(
    wanted: list[DiagnoseWanted],
    ended: _Ended,
    *,
    sole: bool,
    short: bool,
    asked: tuple[int | None, float | None],
) -> Iterator[Opened]:
    """Read one after another; what cannot be read is said where it is not the ``sole`` one. Of a ``short`` report only
    what it shows is worked out."""
    for each in wanted:
        try:
            with ProgressBar() as progress:
                now("reading")
                run = each.read(progress=watched(progress))
                run.parameters, run.bandwidth = asked
                document = _work_out(run, short=short)
        except StepscopeError as error:
            if sole:
                raise
            say(error.sentence, *error.details)  # The other profiles are still worth their reports.
            ended.statuses.append(error.status)
            continue
        ended.read(run)
        yield each, run, document


def _work_out(run: Profile | Job, *, short: bool) -> Document:
    """What the report shows, worked out stage by stage."""
    now("analysis")
    _ = run.facts
    now("diagnosis")
    _ = run.findings
    now("document")
    document = run.brief() if short else run.document()
    now("writing")
    return document


def _text(runs: Iterator[Opened], out: str | None, *, form: str, verbose: bool) -> None:
    """Write a report each, one after another."""
    render = _renderer(form, verbose=verbose, to_file=out is not None)
    reports: list[str] = []
    for each, _, document in runs:
        reports.append((_line(each.path, form) if each.named else "") + render(document))
        if out is None:
            # Not click.echo: it writes UTF-8 where the user asked for ASCII.
            sys.stdout.write(("\n" if len(reports) > 1 else "") + reports[-1])
    if out is not None and reports:
        write_text(Path(out), "\n".join(reports))


def _html(runs: Iterator[Opened], out: str | None) -> None:
    """Write one page of all profiles."""
    from stepscope.cli.pages import runs_of
    from stepscope.web.assemble import ShownRun, html_file

    pages: list[ShownRun] = []
    for _, run, _ in runs:
        pages += runs_of(run, len(pages))
    if pages:
        write_text(Path(str(out)), html_file(pages))


def _sources(paths: tuple[str, ...], *, verbose: bool) -> tuple[list[Source], list[Skipped], list[Exit]]:
    """What the paths lead to, what else lies there, and a status for each that leads nowhere; says what a user should
    know of either."""
    from stepscope.formats.find import MOST_RANKS, find, grouped  # Not loaded for --help and --version.

    sources: list[Source] = []
    beside: list[Skipped] = []
    statuses: list[Exit] = []
    for path in paths:
        try:
            inputs = find(path, most=MOST_RANKS)
        except StepscopeError as error:
            if len(paths) == 1:
                raise
            say(error.sentence, *error.details)
            statuses.append(error.status)
            continue
        sources += inputs.sources
        beside += inputs.skipped
        for note in inputs.notes:
            say(note)
        skipped = [one for one in inputs.skipped if not one.ours and (verbose or not one.expected)]
        if skipped:
            say(f"{path}: not read:", *grouped(skipped, path))
    return sources, beside, statuses


def _first(sources: list[Source], paths: tuple[str, ...]) -> list[Source]:
    """No more profiles than are diagnosed each on its own, where a path leads to very many."""
    from stepscope.formats.find import MOST_PROFILES

    most = max(MOST_PROFILES, len(paths))
    if len(sources) > most:
        say(f"{paths[0]}: the first {most} of {len(sources):,} profiles are read; name others to read them")
    return sources[:most]


def _line(path: Path, form: str) -> str:
    """A path above its report."""
    from stepscope.report import markdown
    from stepscope.report.names import visible

    return f"{markdown.code(str(path))}\n\n" if form == "markdown" else f"{visible(str(path))}\n"


def _renderer(form: str, *, verbose: bool, to_file: bool) -> Callable[[Document], str]:
    if form == "json":
        from stepscope.report import json_

        return json_.render
    if form == "markdown":
        from stepscope.report import markdown

        return partial(markdown.render, verbose=verbose)
    from stepscope.report import terminal

    width, color = (_FILE_WIDTH, False) if to_file else (stdout_width(), wants_color())
    return partial(terminal.render, width=width, color=color, verbose=verbose)
