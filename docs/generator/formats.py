"""``docs/formats.md``: what is read, and what becomes of damaged and odd files."""

from __future__ import annotations

from generator.markdown import section, table
from generator.odd_inputs import GROUPS, REFUSED, Case
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

A file is read as a stream. A gzip file that expands more than {ratio} times and past {limit} is refused.
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
                ratio=BOMB_RATIO,
                limit=format_bytes(BOMB_BYTES),
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
                table(("input", "the sentence says"), ((refused.what, f"… {refused.words} …") for refused in REFUSED)),
            ),
        ]
    )


def outcomes(cases: tuple[Case, ...]) -> str:
    """A row per file."""
    rows = (
        (
            case.what + (f" ({case.met})" if case.met else ""),
            case.outcome,
            str(case.lost or ""),
            ", ".join(f"`{code}`" for code in case.notices),
            str(case.status),
        )
        for case in cases
    )
    return table(("input (met in)", "outcome", "events lost", "notices", "exit status"), rows)
