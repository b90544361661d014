"""``stepscope compare``: what changed between two profiles, with noise taken into account."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.progress import ProgressBar
from stepscope.cli.streams import say
from stepscope.errors import Exit, UsageError

if TYPE_CHECKING:
    from stepscope.pipeline import Job, Profile
    from stepscope.report.phrases import Document


@click.command()
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown", "html"]), default="text", show_default=True,
    help="How to write it; html shows it with both runs and their traces, in one file.",
)  # fmt: skip
@click.option("-o", "--out", metavar="FILE", help="Write to FILE instead of standard output.")
@click.option(
    "--fail-if", "conditions", metavar="CONDITION", multiple=True,
    help="Exit with status 4 where it holds: 'step_time > +3%' (a change), 'device_busy < 80%', 'input > 2ms'. May be "
    "given several times; without it those of [tool.stepscope] in pyproject.toml hold.",
)  # fmt: skip
def compare(before: str, after: str, form: str, out: str | None, conditions: tuple[str, ...]) -> int:
    """Say what changed from one profile to another, and whether that is more than noise.

    BEFORE and AFTER are profiles, or folders of a job's ranks. The noise is that of the steps themselves: a
    difference is one where the interval that holds it with 95 % certainty leaves out zero, and it is more than
    runs of the same code differ by.

    Exit status: 0 done, 1 a profile could not be read, 2 wrong usage, 3 a profile was damaged, 4 a --fail-if fired.
    """
    if form == "html" and out is None:
        raise UsageError("--format html writes a file: name it with -o compare.html")
    from stepscope import pipeline
    from stepscope.comparison import budgets
    from stepscope.comparison.compare import compare as compare_sides
    from stepscope.report import comparison as report

    chosen = [budgets.parse(text) for text in conditions] or budgets.of_project(Path.cwd())
    with ProgressBar() as progress:
        runs = [pipeline.open(path, progress=progress) for path in (before, after)]
        sides = [run.side for run in runs]
    found = compare_sides(*sides)
    outcomes = [budgets.check(budget, sides[1], found) for budget in chosen]
    document = report.make(found, sides, (before, after), outcomes)
    if form == "html":
        made = _html(document, runs)
    else:
        made = {"text": report.text, "markdown": report.markdown, "json": report.json_}[form](document)
    if out is not None:
        Path(out).write_text(made, encoding="utf-8", errors="backslashreplace")
    else:
        sys.stdout.write(made)
    for one in outcomes:
        if one.fired:
            say(f"--fail-if {one.sentence}")
    if any(one.fired for one in outcomes):
        return Exit.FAIL_IF
    return max(run.exit_status for run in runs)


def _html(document: Document, opened: list[Profile | Job]) -> str:
    """Pages of the comparison and of both runs."""
    from stepscope.web.assemble import html_file

    titled = [(which, run.run()) for which, run in zip(("before", "after"), opened, strict=True)]
    return html_file([replace(run, title=f"{which}: {run.title}") for which, run in titled], document)
