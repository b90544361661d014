"""``docs/formats.md``: what is read, and what becomes of damaged and odd files."""

from __future__ import annotations

from html import escape

from generator import read_formats
from generator.markdown import section, table
from generator.odd_case import Case, Folder, Refusal
from generator.odd_containers import FOLDERS, REFUSED
from generator.odd_inputs import GROUPS
from stepscope.formats.writers import WRITERS, Writer
from stepscope.inputs import archive, folders
from stepscope.inputs.inflate import BOMB_BYTES, BOMB_RATIO
from stepscope.units import format_bytes

INTRO = """\
# What can be read, and what becomes of damaged files

Every row about a damaged, odd or refused file or a folder is one that a test makes and diagnoses
(`tests/guards/test_generated_docs.py`); all of them stand in `docs/generator/odd_*.py`. Made by `make docs`.
"""

READ = """\
A file is recognised by its content, never by its name. `stepscope formats` prints this list.
"""

WRITTEN = """\
`stepscope convert` writes, and `stepscope slice` writes a part of a profile. What was recorded as XPlane is carried to
XPlane as it was recorded, and in parts event by event. The saved form holds all tables and programs, the folder of
Parquet files all tables. What else is written, stepscope reads again with the same steps, devices, launches and
accounting; what a format has no place for is left out, and said in numbers when the file is written.
"""

COMPRESSED = """\
A file may be gzip, or lie in a zip archive, as it is or as gzip. Both are told by their content and decompressed in
memory, never to disk. What expands more than {ratio} times and past {limit} is refused, as are archives that are
encrypted, whose members overlap, or that use another method than deflate, more than {members:,} files or more than
{directory} of names. Names in archives are only names.
"""

PLACES = """\
A path may lead to several profiles: those of one job's ranks are diagnosed together
([many ranks](guides/many-ranks.md)), others each on its own.

* **A folder** is walked: at most {depth} folders down and {entries:,} entries; links are followed once, hidden files
  passed over. Each file is recognised by its first bytes. Where nothing is a profile, the error says how many files
  were seen and, reason by reason, why none is read.
* **A zip archive** of several files is such a folder; `ARCHIVE.zip/NAME` is one file in it.
* **A pattern** (`runs/*/rank?.json`) is expanded by stepscope where no shell does it.
* Of TensorBoard's layout `plugins/profile/RUN/HOST.*` the newest run is read, of a capture in several forms the XPlane.

`stepscope.open` wants a path that leads to one profile or to one job's ranks, `stepscope.open_all` reads all profiles.
"""

DAMAGE = """\
What can be read is read. What is repaired or lost is counted in a notice and makes the exit status 3; `damaged_*`
notices also say at which byte of the (decompressed) file it was first met. A file that is merely unusual gives exit
status 0. Arguments that no table takes, lists and objects above all, are stepped over: damage in them that does not
hide where the event ends is met, and then mended, when somebody asks for them, and is not counted.
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
                    ("folder (met in)", "outcome", "profiles read"),
                    ((met(one), one.outcome, str(len(one.read))) for one in FOLDERS),
                ),
            ),
            section(
                "What is written",
                WRITTEN,
                table(("`--to`", "endings", "opened by"), map(_written, WRITERS)),
                table(
                    ("`--to`", "does not hold", "tells otherwise"),
                    ((f"`{one.name}`", *_lacks(one)) for one in WRITERS if one.lacks),
                ),
            ),
            section(
                "Damaged and odd files",
                DAMAGE,
                *(f"### {title}\n\n{outcomes(cases)}" for title, cases in GROUPS.items()),
            ),
            section(
                "Refused",
                "No profile at all: one sentence on standard error, exit status 1. So are a path that is not there, "
                "cannot be opened, or is no regular file.",
                table(("input (met in)", "the sentence says"), ((met(one), f"… {one.words} …") for one in REFUSED)),
            ),
        ]
    )


def outcomes(cases: tuple[Case, ...]) -> str:
    """A row per file of which something is said; how many are read without a word."""
    told = [case for case in cases if case.notices or case.lost or case.status]
    rows = ((met(case), case.outcome, ", ".join(f"`{code}`" for code in case.notices)) for case in told)
    titles = ("input (met in)", "outcome", "notices")
    rest = len(cases) - len(told)
    return table(titles, rows) + (f"\nRead without a word: {rest} more.\n" if rest else "")


def _written(writer: Writer) -> tuple[str, str, str]:
    endings = ", ".join(f"`{suffix}`" if suffix else "a folder" for suffix in writer.suffixes)
    return f"`{writer.name}`", endings, escape(writer.about)


def _lacks(writer: Writer) -> tuple[str, str]:
    lost = [lack.what for lack in writer.lacks if lack.count is not None]
    return "; ".join(lost), "; ".join(lack.what for lack in writer.lacks if lack.count is None)


def met(case: Case | Folder | Refusal) -> str:
    """What the input is, and the public issue it was met in."""
    return case.what + (f" ({case.met})" if case.met else "")
