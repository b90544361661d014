"""``docs/formats.md``: what is read, and what becomes of damaged and odd files."""

from __future__ import annotations

from html import escape

from generator import read_formats
from generator.markdown import section, table
from generator.odd_case import Case
from generator.odd_containers import FOLDERS, REFUSED
from generator.odd_inputs import GROUPS
from stepscope.formats.writers import WRITERS, Writer
from stepscope.inputs import archive, folders
from stepscope.inputs.inflate import BOMB_BYTES, BOMB_RATIO
from stepscope.units import format_bytes

INTRO = """\
# What can be read, and what becomes of damaged files

Profiles of PyTorch, JAX, TensorFlow and Nsight Systems, and Chrome traces of anything; of a damaged file what is whole.
Of each row about a damaged, odd or refused file or a folder a test makes one (`docs/generator/odd_*.py`). Made by
`make docs`.
"""

READ = """\
A file is recognised by its content, never by its name. `stepscope formats` lists what is read and written.
"""

WRITTEN = """\
By `stepscope convert`, and of a part of a profile by `stepscope slice`. XPlane is carried to XPlane as it was recorded;
the saved form holds all tables and programs. What else is written, stepscope reads again with the same steps, devices,
launches and accounting; what a format has no place for is left out, and said in numbers when the file is written.
"""

COMPRESSED = """\
A file may be gzip, or lie in a zip archive, as it is or as gzip; it is decompressed in memory, never to disk. What
expands more than {ratio} times and past {limit} is refused, as are archives that are encrypted, whose members overlap,
or that use another method than deflate, more than {members:,} files or more than {directory} of names.
"""

PLACES = """\
A path may lead to several profiles: those of [one job's ranks](guides/many-ranks.md) are diagnosed together, others
each on its own.

* **A folder** is walked: at most {depth} folders down and {entries:,} entries; links are followed once, hidden files
  passed over.
* **A zip archive** of several files is such a folder; `ARCHIVE.zip/NAME` is one file in it.
* **A pattern** (`runs/*/rank?.json`) is expanded by stepscope where no shell does it.
"""

DAMAGE = """\
What is repaired or lost is counted in a notice and makes the exit status 3; `damaged_*` notices also say at which byte
of the (decompressed) file it was first met. A file that is merely unusual gives exit status 0; what is read without a
word has no row.
"""


def page() -> str:
    """What is read, a table per kind of damage, and what is refused."""
    return "\n".join(
        [
            INTRO,
            section("What is read", READ, read_formats.sections()),
            section(
                "Compressed files",
                COMPRESSED.format(
                    ratio=BOMB_RATIO,
                    limit=format_bytes(BOMB_BYTES),
                    members=archive.MOST_MEMBERS,
                    directory=format_bytes(archive.DIRECTORY_BYTES),
                ),
            ),
            section(
                "Folders, archives, patterns",
                PLACES.format(depth=folders.DEPTH, entries=folders.MOST_ENTRIES),
                table(
                    ("folder", "outcome"),
                    ((one.what, one.outcome) for one in FOLDERS),
                ),
            ),
            section(
                "What is written",
                WRITTEN,
                table(("`--to`", "endings", "opened by"), map(_written, WRITERS)),
                f"`xplane`, `timeline` and `chrome` hold no {', no '.join(_of_all())}.",
                table(("`--to`", "does not hold"), ((f"`{one.name}`", _lacks(one)) for one in WRITERS if one.lacks)),
            ),
            section(
                "Damaged and odd files",
                DAMAGE,
                *(f"### {title}\n\n{outcomes(cases)}" for title, cases in GROUPS.items()),
            ),
            section(
                "Refused",
                "No profile at all: one sentence on standard error that says what it is and what to do, exit status 1. "
                "So are a path that is not there, cannot be opened, or is no regular file, and:",
                "\n".join(f"* {one.what}" for one in REFUSED),
            ),
        ]
    )


def outcomes(cases: tuple[Case, ...]) -> str:
    """A row per file of which something is said."""
    told = [case for case in cases if (case.notices and not case.what.endswith(", whole")) or case.lost or case.status]
    rows = ((case.what, case.outcome, ", ".join(f"`{code}`" for code in case.notices)) for case in told)
    titles = ("input", "outcome", "notices")
    return table(titles, rows)


def _written(writer: Writer) -> tuple[str, str, str]:
    endings = ", ".join(f"`{suffix}`" if suffix else "a folder" for suffix in writer.suffixes)
    return f"`{writer.name}`", endings, escape(writer.about)


def _of_all() -> list[str]:
    """What none of the formats that lack several things holds."""
    first, *others = ({lack.what: None for lack in one.lacks} for one in WRITERS if len(one.lacks) > 1)
    return [what for what in first if all(what in other for other in others)]


def _lacks(writer: Writer) -> str:
    """What is left out, without what the format only spells in its own way."""
    return "; ".join(lack.what for lack in writer.lacks if lack.count is not None and lack.what not in _of_all())
