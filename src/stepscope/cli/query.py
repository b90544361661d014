"""``stepscope query``: the tables of a profile by SQL, and what happened in a range of time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from stepscope.cli import spans
from stepscope.cli.progress import ProgressBar
from stepscope.cli.streams import say, stdout_width
from stepscope.errors import UsageError
from stepscope.replacing import replacing
from stepscope.units import format_count

if TYPE_CHECKING:
    import polars as pl

_FILE_WIDTH = 160
_FORMS = ("table", "csv", "json")
_ROWS_SHOWN = 200
"""A table of more rows is for a file, not for eyes."""


@click.command()
@click.argument("path", metavar="PATH")
@click.argument("sql", metavar="[SELECT]", required=False)
@click.option(
    "--time", metavar="A:B",
    help="From A to B after the profile's start, as 1.2s:1.5s (ns, us, ms, s). Without SELECT: what each "
    "device and host thread did in it. With SELECT: the tables hold what overlaps it, uncut.",
)  # fmt: skip
@click.option("--tables", is_flag=True, help="List the tables and columns that SELECT finds.")
@click.option(
    "--format", "form", type=click.Choice(_FORMS), default=None,
    help="How to write the rows: as FILE's name ends (.csv, .json), else as a table. A table shows "
    f"{_ROWS_SHOWN} rows and shortens texts, csv and json hold everything.",
)  # fmt: skip
@click.option("-o", "--out", metavar="FILE", help="Write to FILE instead of standard output.")
def query(path: str, sql: str | None, time: str | None, tables: bool, form: str | None, out: str | None) -> int:
    """Ask the tables of a profile: by SQL, or for what happened in a range of time.

    SELECT is a query in polars' SQL over the tables of the profile and the views ops, host, steps, accounting and
    critical_path (--tables lists them). It can read nothing else, and change nothing. Times are integer nanoseconds
    from the profile's start; what was not recorded is null.

    Exit status: 0 done, 1 the profile could not be read, 2 wrong usage or a wrong query, 3 the profile was damaged.
    """
    from stepscope import pipeline
    from stepscope.report import frames

    if sql is None and time is None and not tables:
        raise UsageError("give a SELECT, --time, or --tables to see what there is")
    form = form or _form_of(out)
    wanted = None if time is None else spans.time(time)
    with ProgressBar() as progress:
        profile = pipeline.open_profile(path, progress=progress)
        if tables:
            frame = frames.columns()
        elif sql is not None:
            frame = profile.query(sql, time_ns=wanted)
        else:
            frame = profile.region(*(wanted or (None, None)))
            frame = frames.largest(frame) if form == "table" else frame
    with ExitStack() as stack:
        file = sys.stdout if out is None else stack.enter_context(_written(Path(out)))
        listing = tables and form == "table"
        file.writelines([frames.listing(frame)] if listing else _texts(frame, form, to_file=out is not None))
    return profile.exit_status


@contextmanager
def _written(path: Path) -> Iterator[TextIO]:
    """A file that appears whole or not at all, but for what is no file (a pipe)."""
    special = path.is_symlink() or (path.exists() and not path.is_file())
    whole = nullcontext(path) if special else replacing(path)
    try:
        with whole as part, part.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:  # A write that fails names no file: without one it would be standard output's.
        raise OSError(error.errno, error.strerror, error.filename or str(path)) from error


def _form_of(out: str | None) -> str:
    ending = "" if out is None else Path(out).suffix.lower().removeprefix(".")
    return ending if ending in _FORMS else "table"


def _texts(frame: pl.DataFrame, form: str, *, to_file: bool) -> Iterator[str]:
    from stepscope.report import grid

    if form == "json":
        return grid.jsons(frame)
    if form == "csv":
        return grid.csv(frame, escaped=not to_file and sys.stdout.isatty())
    if frame.height > _ROWS_SHOWN:
        say(
            f"{format_count(_ROWS_SHOWN)} of {format_count(frame.height)} rows are shown: LIMIT takes fewer, "
            "--format csv writes all"
        )
        frame = frame.head(_ROWS_SHOWN)
    return iter((grid.table(frame, _FILE_WIDTH if to_file else stdout_width()),))
