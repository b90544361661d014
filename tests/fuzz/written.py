"""Writers: a trace of which tables were changed is written in every format, and what is read again is the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from stepscope import pipeline
from stepscope.errors import OutputError
from stepscope.formats.recorded import proven
from stepscope.formats.writers import WRITERS
from stepscope.trace import saved
from stepscope.trace import tables as t
from stepscope.trace.check import fault_of
from stepscope.trace.trace import Trace
from tests.formats.xplane.carried import check
from tests.fuzz.mutations import NUMBERS, anyhow
from tests.fuzz.oracle import assert_same, assert_sentence, check_trace, depth_of

_NAMES = (
    "", " ", "\x00", "\x1b[2J", "é\U0001f600", '"', "\\", "x" * 70_000, "ProfilerStep#7", "stream 7", "0", "null",
    "true", "/device:GPU:0", "Memcpy HtoD (Pageable -> Device)", "ncclDevKernel_AllReduce", "train.py(12): main",
    "a:b, c = d(e)", "[1, 2]", "{}", "</script>", "\n", "\u2028", "nan", "Iteration 3",
    "%fusion.1 = f32[8]{0} fusion(%p)",
)  # fmt: skip


def tables(random: Random, data: bytes, other: bytes) -> bytes:
    """Values of one table's columns, texts or facts of the run changed: what comes out is a trace, or it is left."""
    try:
        trace = saved.unpack(np.frombuffer(data, np.uint8))
    except saved.SavedError:
        return anyhow(random, data, other)
    for _ in range(random.choice((1, 1, 3))):
        changed = random.choice((_texts, _values, _values, _values, _facts))(random, trace)
        trace = trace if fault_of(changed) else changed
    return b"".join(saved.pack(trace))


def _texts(random: Random, trace: Trace) -> Trace:
    strings = list(trace.strings)
    if strings:
        at = random.randrange(len(strings))
        strings[at] = random.choice((*_NAMES, strings[at] * 2, strings[at] + "1"))
    return dataclasses.replace(trace, strings=tuple(strings))


def _values(random: Random, trace: Trace) -> Trace:
    """Some rows of a column."""
    name = random.choice([name for name in t.TABLES if len(getattr(trace, name))])
    table = getattr(trace, name)
    declared = random.choice(dataclasses.fields(table))
    values = np.array(getattr(table, declared.name))
    rows = random.choice((slice(None), slice(random.randrange(len(values)), None), [random.randrange(len(values))]))
    values[rows] = _value(random, declared, values)
    values.setflags(write=False)
    return dataclasses.replace(trace, **{name: dataclasses.replace(table, **{declared.name: values})})


def _value(random: Random, declared: dataclasses.Field[Any], values: Any) -> Any:
    """Another value for a column: one it has already, one nearby, none, or any."""
    taken = values[random.randrange(len(values))].item()
    match random.randrange(4):
        case 0:
            return taken
        case 1:
            return _within(values.dtype, taken + random.choice((-1, 1, 1000)))
        case 2 if declared.metadata["nullable"]:
            return np.nan if values.dtype.kind == "f" else t.NULL if values.dtype == np.int64 else -1
        case _:
            return _within(values.dtype, random.choice(NUMBERS))


def _within(kind: np.dtype[Any], number: float) -> float:
    if kind.kind not in "iu":
        return number
    limits = np.iinfo(kind)
    return min(max(number, int(limits.min)), int(limits.max))


def _facts(random: Random, trace: Trace) -> Trace:
    known: dict[str, tuple[object, ...]] = {
        "rank": (None, 0, 1, 5),
        "world_size": (None, 1, 8, 1 << 20),
        "origin_epoch_ns": (None, 0, 1, 1_700_000_000_000_000_000),
        "resolution_ns": (1, 100, 1000),
        "host": (None, *_NAMES),
        "framework_oldest": (None, (1, 8), (2, 4)),
    }
    fact = random.choice(list(known))
    return dataclasses.replace(trace, info=dataclasses.replace(trace.info, **{fact: random.choice(known[fact])}))


def answer(folder: Path, data: bytes, number: int) -> str:
    """A saved form in one of the other formats (every sixteenth in each), read again.

    Tables that no reader would make may be told in another way, but only once: what was written and read is the same
    when it is written and read again. Where nothing is left that the format holds, writing it again may be refused.
    """
    path = folder / "profile"
    path.write_bytes(data)
    try:
        saved.unpack(np.frombuffer(data, np.uint8))
    except saved.SavedError:
        return "refused: no trace"
    made = []
    for writer in _BACK if depth_of(number) > 1 else (_BACK[number % len(_BACK)],):
        once = folder / f"once{writer.suffixes[0]}"
        trace = pipeline.open_profile(path).trace
        try:
            writer.write(trace, once)
        except OutputError as error:
            assert_sentence(error)
            continue
        read = pipeline.open_profile(once).trace
        check_trace(read)
        if writer.name == "stepscope":
            assert_same(read, proven(trace))
        try:
            check(once, writer, folder)
        except OutputError as error:
            assert_sentence(error)
            assert len(read.nodes) == 0, f"a trace that came of {writer.name} cannot be written so again"
        made.append(writer.name)
    return f"read: {' '.join(made)}"


_BACK = tuple(writer for writer in WRITERS if writer.name != "parquet")
"""A folder of Parquet files is for other tools."""
