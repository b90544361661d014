"""``docs/formats.md``: what is read, and what becomes of damaged and odd files."""

from __future__ import annotations

from generator.markdown import section, table
from generator.odd_case import Case, Folder, Refusal
from generator.odd_containers import FOLDERS, REFUSED
from generator.odd_inputs import GROUPS
from stepscope.readers import archive, folders
from stepscope.readers.inflate import BOMB_BYTES, BOMB_RATIO
from stepscope.readers.kineto_schema import CATEGORIES
from stepscope.readers.registry import READERS
from stepscope.units import format_bytes

INTRO = """\
# What can be read, and what becomes of damaged files

Made from `docs/generator/formats.py` and `docs/generator/odd_inputs.py` by `make docs`. Every row about a damaged, odd
or refused file is a file that a test makes and diagnoses (`tests/guards/test_generated_docs.py`).

## What is read

{readers}

A file is recognised by its content, never by its name.

### Chrome-trace JSON

Plain or gzip; the root an object with `traceEvents` or the bare list of events. Events of phases `X`, `B`/`E`,
`b`/`n`/`e`, `S`/`T`/`F`, `C`, `i`/`I`/`R`, `s`/`t`/`f` and `M` are read. What the events hold tells who wrote them:

| dialect | told by | what is read |
| --- | --- | --- |
| Kineto JSON | a category of PyTorch's profiler | NVIDIA, AMD, Intel and MTIA devices, or none. [How to record one](guides/record-a-profile.md) |
| XLA trace JSON | a process called `/host:…` or `/device:…` | what `jax.profiler` writes beside the XPlane: threads, Python frames, steps, ops of XLA on the CPU, GPU streams, TPU ops |
| Chrome trace JSON | anything else | ranges, counters, instants and arrows as they are drawn; Python functions recorded by VizTracer. No device is known |

Kineto JSON is read as `torch.profiler` has written it since 2021 (`export_chrome_trace`, `tensorboard_trace_handler`,
dynolog):

| written in | categories | times |
| --- | --- | --- |
| 2021 | `Operator`, `Runtime`, `Kernel`, `Memcpy`, …; threads as text (`"stream 7"`) | whole microseconds, Unix time |
| 2022 | `cpu_op`, `cuda_runtime`, `kernel`, `gpu_memcpy`, `user_annotation`, `python_function`, … | the same |
| 2023 | also `cuda_sync`, … | also with three decimals |
| since 2024 | also `cuda_driver`, `mtia_*`, `xpu_*`, … | three decimals, from `baseTimeNanoseconds` |

All spellings are read in any mixture, in upper or lower case. Times are read from the decimal text into integer
nanoseconds, exactly. Known categories: {categories}.

Chrome-trace JSON is read as a stream.
"""

COMPRESSED = """\
A file may be gzip, or lie in a zip archive, as it is or as gzip. Both are told by their content and decompressed in
memory, never to disk. What expands more than {ratio} times and past {limit} is refused, as are archives that are
encrypted, whose members overlap, or that use another method than deflate, more than {members:,} files or more than
{directory} of names. Names in archives are only names.
"""

PLACES = """\
A path may lead to several profiles; each is diagnosed on its own.

* **A folder** is walked: at most {depth} folders down and {entries:,} entries; links are followed once, hidden files
  passed over. Each file is recognised by its first bytes. Where nothing is a profile, the error says how many files
  were seen and, reason by reason, why none is read.
* **A zip archive** of several files is such a folder; `ARCHIVE.zip/NAME` is one file in it.
* **A pattern** (`runs/*/rank?.json`) is expanded by stepscope where no shell does it.
* Of TensorBoard's layout `plugins/profile/RUN/HOST.*` the newest run is read, of a capture in several forms the XPlane.

`stepscope.open` wants a path that leads to one profile, `stepscope.open_all` reads all.
"""

DAMAGE = """\
What can be read is read. What is repaired or lost is counted in a notice and makes the exit status 3; `damaged_*`
notices also say at which byte of the (decompressed) file it was first met. A file that is merely unusual gives exit
status 0.
"""


def page() -> str:
    """What is read, a table per kind of damage, and what is refused."""
    known = ", ".join(f"`{name}`" for name in CATEGORIES)
    return "\n".join(
        [
            INTRO.format(
                readers="\n".join(f"* {reader.name}: {reader.about}." for reader in READERS),
                categories=known,
            ),
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
    """A row per file."""
    rows = (
        (
            met(case),
            case.outcome,
            str(case.lost or ""),
            ", ".join(f"`{code}`" for code in case.notices),
            str(case.status),
        )
        for case in cases
    )
    return table(("input (met in)", "outcome", "events lost", "notices", "exit status"), rows)


def met(case: Case | Folder | Refusal) -> str:
    """What the input is, and the public issue it was met in."""
    return case.what + (f" ({case.met})" if case.met else "")
