"""``stepscope compare``: what changed between two profiles, with noise taken into account."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.cli.budgets import budgets_of
from stepscope.cli.outputs import chosen_format, format_option
from stepscope.cli.progress import ProgressBar
from stepscope.cli.ranks import NO_JOB, AskedRanks, chosen, rank_options, ranks
from stepscope.cli.run_folders import last_runs
from stepscope.cli.streams import say
from stepscope.errors import Exit, UsageError
from stepscope.replacing import write_text

if TYPE_CHECKING:
    from stepscope.document.comparison import ComparisonDocument as Document
    from stepscope.jobs import Job
    from stepscope.pipeline import Profile


@click.command()
@click.argument("before", metavar="[BEFORE", required=False)
@click.argument("after", metavar="AFTER]", required=False)
@format_option("How to write it; html shows it with both runs and their traces, in one file.")
@click.option("-o", "--out", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option(
    "--fail-if", "conditions", metavar="CONDITION", multiple=True,
    help="Exit with status 4 where it holds: 'step_time > +3%' (a change), 'device_busy < 80%', 'input > 2ms'. May be "
    "given several times. Default: those in pyproject.toml's [tool.stepscope].",
)  # fmt: skip
@click.option(
    "--before", "more_before", metavar="PATH", multiple=True,
    help="A further run of the same code as BEFORE. May be given several times.",
)  # fmt: skip
@click.option(
    "--after", "more_after", metavar="PATH", multiple=True,
    help="A further run of the same code as AFTER. May be given several times.",
)  # fmt: skip
@rank_options
def compare(  # noqa: PLR0913  One per option.
    before: str | None,
    after: str | None,
    form: str | None,
    out: str | None,
    conditions: tuple[str, ...],
    more_before: tuple[str, ...],
    more_after: tuple[str, ...],
    **of_ranks: Any,
) -> int:
    """Say what changed from one profile to another, and whether that is more than noise.

    BEFORE and AFTER are profiles, or folders of a job's ranks; without them, the last two runs in stepscope-run.
    Several runs of each side (--before, --after) say more than one: what they differ by is then the noise. A
    difference is told where its interval of 95 % leaves out zero.

    Exit status: 0 done, 1 a profile could not be read, 2 wrong usage, 3 a profile was damaged, 4 a --fail-if fired.
    """
    form = chosen_format(form, out, "compare.html")
    if before is None:
        before, after = last_runs(2)
    if after is None:
        raise UsageError("name two profiles, or none for the last two runs")
    from stepscope.comparison.budgets import check
    from stepscope.comparison.compare import compare as compare_sides
    from stepscope.comparison.side import several
    from stepscope.report import comparison as report

    held = budgets_of(conditions, Path.cwd())
    with ProgressBar() as progress:
        opened = [
            [_opened(path, progress, AskedRanks(**of_ranks)) for path in paths]
            for paths in ((before, *more_before), (after, *more_after))
        ]
        compared = compare_sides(*(several([run.side for run in runs]) for runs in opened))
    outcomes = [check(budget, compared.after, compared) for budget in held]
    _write(report.make(compared, (before, after), outcomes), form, out, [runs[0] for runs in opened])
    fired = [one for one in outcomes if one.fired]
    for one in fired:
        say(f"--fail-if {one.sentence}")
    return Exit.FAIL_IF if fired else max(run.exit_status for runs in opened for run in runs)


def _write(document: Document, form: str, out: str | None, runs: list[Profile | Job]) -> None:
    from stepscope.report import comparison as report

    if form == "html":
        made = _html(document, runs)
    else:
        made = {"text": report.text, "markdown": report.markdown, "json": report.json_}[form](document)
    if out is not None:
        write_text(Path(out), made)
    else:
        sys.stdout.write(made)


def _opened(path: str, progress: ProgressBar, asked: AskedRanks) -> Profile | Job:
    """A run: a profile, a job, or of a job one rank."""
    from stepscope import pipeline
    from stepscope.formats.find import MOST_RANKS, find

    inputs = find(path, MOST_RANKS)
    sources = list(inputs.sources)
    job = ranks(sources, asked.rank_pattern, asked.rank, inputs.skipped)
    if asked.rank is not None:
        return pipeline.read(chosen(sources, job, asked.rank), progress=progress)
    if job is not None:
        return pipeline.read_ranks(job, progress=progress, scheduler=asked.scheduler)
    if asked.scheduler is not None:
        raise UsageError(NO_JOB)
    return pipeline.read(pipeline.only(path, sources), progress=progress)


def _html(document: Document, opened: list[Profile | Job]) -> str:
    """Pages of the comparison and of both runs."""
    from stepscope.web.assemble import html_file

    titled = [(which, run.run()) for which, run in zip(("before", "after"), opened, strict=True)]
    return html_file([replace(run, title=f"{which}: {run.title}", side=which) for which, run in titled], document)
