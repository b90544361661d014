"""JSON text in columns: fragments per row, joined by polars, never one event at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.trace import tables as t
from stepscope.trace.codes import used_codes

_MICROSECOND = pl.Series([f"{ns:03d}" for ns in range(1000)])


def quoted(text: str) -> str:
    """A text as JSON."""
    return msgspec.json.encode(text).decode()


def recorded(text: str) -> str:
    """A recorded value as JSON: arrays, objects and numbers as they are, anything else as text."""
    if text[:1] in tuple("[{-0123456789"):
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return quoted(text)
        return text
    return quoted(text)


def texts(codes: t.I32, strings: Sequence[str], write: Callable[[str], str], *, before: str = "") -> pl.Series:
    """Dictionary codes as JSON, each behind ``before``; null for -1."""
    used = used_codes(codes, len(strings))
    place = np.zeros(len(strings) + 1, np.uint32)
    place[used] = np.arange(used.size, dtype=np.uint32)
    words = pl.Series([before + write(strings[code]) for code in used.tolist()], dtype=pl.String)
    return _gathered(words, place[codes], codes >= 0)


def labels(values: npt.NDArray[Any], words: Sequence[str | None]) -> pl.Series:
    """The word of each small number; null where the word is None."""
    return pl.Series(list(words), dtype=pl.String).gather(values.astype(np.uint32))


def numbers(values: npt.NDArray[Any], *, before: str = "") -> pl.Series | None:
    """Numbers as JSON, each behind ``before``; null where absent, None where all are."""
    absent = t.is_null(values)
    if values.dtype == np.float64:
        absent |= ~np.isfinite(values)
    if absent.all():
        return None
    written = pl.Series(values).cast(pl.String)
    if before:
        written = pl.select(pl.concat_str(pl.lit(before), written)).to_series()
    if absent.any():
        written = pl.select(pl.when(pl.Series(~absent)).then(written)).to_series()
    return written


def microseconds(ns: t.I64, *, before: str = "") -> pl.Series:
    """Nanoseconds as decimal microseconds, exactly."""
    whole, part = np.divmod(np.abs(ns), 1000)
    sign = labels(np.asarray(ns < 0), [before, before + "-"])
    return joined(sign, pl.Series(whole).cast(pl.String), ".", _MICROSECOND.gather(part.astype(np.uint32)))


def joined(*parts: pl.Series | str | None) -> pl.Series:
    """The parts of each row one behind the other; nulls are nothing."""
    kept = [pl.lit(part) if isinstance(part, str) else part for part in parts if part is not None]
    return pl.select(pl.concat_str(kept, ignore_nulls=True)).to_series()


def arguments(parts: Sequence[pl.Series | None]) -> pl.Series | None:
    """``,"args":{…}`` of members that each begin with a comma; null for none."""
    kept = [part for part in parts if part is not None]
    if not kept:
        return None
    members = joined(*kept)
    some = members != ""
    written = pl.concat_str(pl.lit(',"args":{'), members.str.slice(1), pl.lit("}"))
    return pl.select(pl.when(some).then(written)).to_series()


def write_lines(file: BinaryIO, lines: pl.Series) -> None:
    """Write a line per row."""
    lines.to_frame().write_csv(file, include_header=False, quote_style="never")


def _gathered(words: pl.Series, places: npt.NDArray[np.uint32], known: t.Bools) -> pl.Series:
    if len(words) == 0:
        return pl.Series([None] * len(places), dtype=pl.String)
    gathered = words.gather(places)
    return gathered if known.all() else pl.select(pl.when(pl.Series(known)).then(gathered)).to_series()
