"""``stepscope doctor``: why capturing or reading a profile would fail here, and the cure."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from stepscope.cli.streams import stdout_width, wants_color
from stepscope.errors import Exit


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--python", metavar="PATH", help="The Python the job runs in; its packages are looked at.")
@click.option("--deep", is_flag=True, help="Import the frameworks there, and ask them for their devices.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to write what was found.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show also what does not apply here.")
def doctor(paths: tuple[str, ...], python: str | None, deep: bool, form: str, verbose: bool) -> int:
    """Say why capturing or reading a profile would fail here, and what to do about it.

    Looks at this machine: versions, devices, permissions, tracing libraries, other profilers, combinations that are
    known to fail. PATH is a profile, or leads to some: each is read, to say what it lacks. Nothing is changed, and no
    device is used without --deep.

    Exit status: 0 nothing prevents it, 1 something does, 2 wrong usage.
    """
    from stepscope.doctor import Case, Host, examine, profiles  # Not loaded for --help and --version.
    from stepscope.doctor.document import document

    examined = examine(Case(Host(), python, deep=deep))
    made = document(examined, [one for path in paths for one in profiles.examine(path)])
    sys.stdout.write(json.dumps(made, indent=2) + "\n" if form == "json" else _text(made, verbose))
    return Exit.UNREADABLE if made["problems"] else Exit.OK


def _text(made: dict[str, Any], verbose: bool) -> str:
    try:
        from stepscope.doctor.terminal import render
    except ImportError:  # A package is missing: the examination says which.
        return json.dumps(made, indent=2) + "\n"
    return render(made, width=stdout_width(), color=wants_color(), verbose=verbose)
