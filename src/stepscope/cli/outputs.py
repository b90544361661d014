"""Writing reports and profiles from the command line: the format a name means, what may be overwritten, what was
written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from stepscope.cli.streams import say
from stepscope.errors import UsageError
from stepscope.units import format_bytes, format_count

if TYPE_CHECKING:
    from stepscope.formats.writers import Writer
    from stepscope.trace.trace import Trace

_Command = TypeVar("_Command", bound=Callable[..., object])

to_option = click.option("--to", metavar="NAME", help="Format of OUT, whatever its name ends in.")
force_option = click.option("-f", "--force", is_flag=True, help="Overwrite OUT.")

_REPORTS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown", ".markdown": "markdown"}
"""Formats of reports by what a file's name ends in; others are text."""


def format_option(text: str) -> Callable[[_Command], _Command]:
    """The option ``--format`` of a report."""
    choice = click.Choice(["text", "json", "markdown", "html"])
    told = f"{text} Default: by FILE's ending (.html, .json, .md), else text."
    return click.option("--format", "form", type=choice, help=told)


def chosen_format(form: str | None, out: str | None, example: str) -> str:
    """The format of a report: what ``--format`` says, else the name of the file (``example`` is a page's).

    Raises UsageError for a page without a file.
    """
    if form == "html" and out is None:
        raise UsageError(f"--format html writes a file: name it with -o {example}")
    return form or _REPORTS.get(Path(out or "").suffix.lower(), "text")


def chosen_writer(out: str, to: str | None, without_ending: str | None = None) -> Writer:
    """The format that ``--to`` names, else that of the name's ending, else, where it has none, ``without_ending``.

    Raises UsageError, with all formats, where nothing names one.
    """
    from stepscope.formats.writers import WRITERS

    if out == "-":
        raise UsageError("profiles are written to files, not to standard output: name one")
    name = Path(out).name
    if to is None and "." not in name:
        to = without_ending
    if to is not None:
        for writer in WRITERS:
            if writer.name == to:
                return writer
        raise UsageError(f"--to {to} is no format; there are {', '.join(writer.name for writer in WRITERS)}")
    endings = {ending: writer for writer in WRITERS for ending in writer.suffixes if ending or "." not in name}
    matching = [ending for ending in endings if name.endswith(ending)]
    if not matching:
        known = ", ".join(f"{' or '.join(ending or 'none' for ending in w.suffixes)} ({w.name})" for w in WRITERS)
        raise UsageError(f"{out}: the ending says no format: use --to, or one of {known}")
    return endings[max(matching, key=len)]


def check_target(out: str, source: str, force: bool) -> None:
    """Raise UsageError where ``out`` is the input itself, or is there already and ``--force`` was not given."""
    if not os.path.lexists(out):
        return
    if os.path.exists(source) and os.path.exists(out) and os.path.samefile(out, source):
        raise UsageError(f"{out} is the profile that is read: write to another name")
    if not force:
        raise UsageError(f"{out} is there already: --force overwrites it")


def write(trace: Trace, out: str, writer: Writer) -> None:
    """Write a trace, and say on stderr what was written and what was left out."""
    # Asked first: what is written may take the place of what was recorded.
    missing = writer.left_out(trace)
    writer.write(trace, Path(out))
    size = sum(_sizes(Path(out)))
    say(f"wrote {out}: {writer.name}, {format_bytes(size)}, {format_count(len(trace.slices))} slices")
    if missing:
        told = ", ".join(f"{what} ({format_count(number)})" for number, what in missing)
        say(f"not in it, for which this format has no place: {told}")


def _sizes(path: Path) -> list[int]:
    files = path.rglob("*") if path.is_dir() else [path]
    return [file.stat().st_size for file in files if file.is_file()]
