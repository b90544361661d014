"""``stepscope formats``: what can be read and written."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence

import click

from stepscope.cli.streams import stdout_width


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to write the lists.",
)  # fmt: skip
def formats(form: str) -> int:
    """List the formats that can be read and written.

    What is read is recognised by its content, never by its name: in a file, a folder, a zip archive or what a
    pattern leads to.
    """
    from stepscope.formats.readers import READERS  # What reading needs is not loaded for --help and --version.
    from stepscope.formats.writers import WRITERS
    from stepscope.inputs.source import CONTAINERS

    if form == "json":
        read = [{"name": reader.name, "about": reader.about, "containers": CONTAINERS} for reader in READERS]
        written = [{"name": one.name, "suffixes": one.suffixes, "about": one.about} for one in WRITERS]
        sys.stdout.write(json.dumps({"read": read, "written": written}, indent=2) + "\n")
        return 0
    title = f"Read, as {', '.join(CONTAINERS[:-1])} or {CONTAINERS[-1]}"
    sys.stdout.write(_table(title, [(one.name, one.about) for one in READERS]) + "\n")
    sys.stdout.write(_table("Written", [(f"{one.name} ({_endings(one.suffixes)})", one.about) for one in WRITERS]))
    return 0


def _endings(suffixes: Sequence[str]) -> str:
    return " or ".join(suffix or "folder" for suffix in suffixes)


def _table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A title, and below it names beside what they are about."""
    width = max((len(name) for name, _ in rows), default=0) + 4
    lines = [title]
    for name, about in rows:
        lines += textwrap.wrap(
            about,
            max(stdout_width(), width + 30),
            initial_indent=f"  {name}".ljust(width),
            subsequent_indent=" " * width,
            break_long_words=False,
        )
    return "\n".join(lines) + "\n"
