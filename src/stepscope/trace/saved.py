"""stepscope's own saved form of a trace: a header, then the columns as they lie in memory, so opening copies nothing.

Layout, little-endian::

    14 bytes   MAGIC
    uint16     VERSION
    uint64     bytes of the header
    uint64     bytes of the columns
    header     JSON: info, completeness, strings, and per table its rows and where each column lies; compiled programs
               are a table of their own, where there are any
    columns    from the next multiple of ALIGNMENT on, each at a multiple of ALIGNMENT; nothing behind them

A file may come from anywhere: whatever it declares is checked against its size before it is used, and the trace
against every promise of ``trace.check``. A table, or a column that may be absent, which an older stepscope did not
know is empty; anything this one does not know is refused.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from stepscope._version import __version__
from stepscope.errors import OutputError
from stepscope.trace import tables as t
from stepscope.trace.check import fault_of
from stepscope.trace.plausible import plausible
from stepscope.trace.trace import Completeness, Info, Trace

MAGIC = b"\x93stepscope\r\n\x1a\n"
VERSION = 1
"""Changes with anything that a file of another version would get wrong: the layout, a column's type or meaning."""

ALIGNMENT = 64
HEADER_LIMIT = 256 << 20
"""JSON takes some twenty times its size in memory; what readers keep of a file's own header is far smaller."""

_AGAIN = "save the original profile again"
_PREFIX = struct.Struct(f"<{len(MAGIC)}sHQQ")


class SavedError(Exception):
    """What is wrong with a saved trace, as it stands behind its path in a sentence."""


class _Column(msgspec.Struct):
    """Where a column lies: ``at`` counts bytes from the first column."""

    at: int
    type: str
    labels: list[str] | None = None


class _Table(msgspec.Struct):
    rows: int
    columns: dict[str, _Column]


class _Header(msgspec.Struct):
    tool: str
    info: Info
    completeness: Completeness
    strings: _Table
    tables: dict[str, _Table]
    hlo: _Table | None = None


# --- writing ----------------------------------------------------------------------------------------------------------


def is_saved(head: bytes) -> bool:
    """Whether a file begins like a saved trace of any version."""
    return head.startswith(MAGIC)


def pack(trace: Trace) -> Iterator[memoryview]:
    """The bytes of a saved trace, piece by piece; columns are not copied.

    Raises OutputError where the trace knows more of its run than the header can hold.
    """
    layout = _Layout()
    tables = {name: _packed_table(layout, getattr(trace, name)) for name in t.TABLES}
    strings, hlo = layout.strings(trace.strings), layout.blobs(trace.hlo) if trace.hlo else None
    header = _Header(f"stepscope {__version__}", trace.info, trace.completeness, strings, tables, hlo)
    # Not msgspec's own JSON: profiles hold lone surrogates, NaN and integers of any size.
    text = json.dumps(msgspec.to_builtins(header), separators=(",", ":")).encode()
    if len(text) > HEADER_LIMIT:
        raise OutputError(f"what this profile says of its run takes {len(text):,} bytes, too much for the saved form")
    yield memoryview(_PREFIX.pack(MAGIC, VERSION, len(text), layout.size))
    yield memoryview(text)
    yield memoryview(bytes(_padding(_PREFIX.size + len(text))))
    yield from layout.pieces


class _Layout:
    """Columns one behind another."""

    def __init__(self) -> None:
        self.size = 0
        self.pieces: list[memoryview] = []

    def add(self, values: npt.NDArray[Any], labels: list[str] | None = None) -> _Column:
        """Place a column."""
        little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        column = _Column(self.size, little.dtype.str, labels)
        self.pieces += [little.view(np.uint8).data, memoryview(bytes(_padding(little.nbytes)))]
        self.size += little.nbytes + _padding(little.nbytes)
        return column

    def strings(self, strings: tuple[str, ...]) -> _Table:
        """Place the dictionary: one text of all, and the length of each in characters."""
        text = np.frombuffer("".join(strings).encode(), np.uint8)
        lengths = np.fromiter(map(len, strings), np.int64, len(strings))
        size = self.add(np.array([text.size], np.int64))
        return _Table(len(strings), {"bytes": size, "text": self.add(text), "lengths": self.add(lengths)})

    def blobs(self, blobs: tuple[bytes, ...]) -> _Table:
        """Place some bytes, one behind the other, and the length of each."""
        data, lengths = np.frombuffer(b"".join(blobs), np.uint8), np.fromiter(map(len, blobs), np.int64, len(blobs))
        size = self.add(np.array([data.size], np.int64))
        return _Table(len(blobs), {"bytes": size, "data": self.add(data), "lengths": self.add(lengths)})


def _packed_table(layout: _Layout, table: t.Table) -> _Table:
    columns = {f.name: layout.add(getattr(table, f.name), _labels(f)) for f in dataclasses.fields(table)}
    return _Table(len(table), columns)


def _labels(declared: dataclasses.Field[Any]) -> list[str] | None:
    labels = declared.metadata["labels"]
    return None if labels is None else [label.name for label in labels]


def _padding(size: int) -> int:
    return -size % ALIGNMENT


# --- reading ----------------------------------------------------------------------------------------------------------


def unpack(data: npt.NDArray[np.uint8]) -> Trace:
    """The trace in a saved file's bytes; its columns are views of them.

    Raises SavedError where the bytes are not a whole saved trace of this version.
    """
    header, columns = _split(data)
    unknown = sorted(header.tables.keys() - t.TABLES.keys())
    if unknown:
        raise SavedError(f"is of a newer version, with the table {_short(unknown[0])}; {_AGAIN}")
    made: dict[str, Any] = {
        name: _unpacked_table(name, kind, columns, header.tables[name]) if name in header.tables else kind.empty()
        for name, kind in t.TABLES.items()
    }
    strings = _unpacked_strings(columns, header.strings)
    hlo = _unpacked_blobs(columns, header.hlo) if header.hlo else ()
    info, completeness = plausible(header.info, header.completeness, {})
    trace = Trace(info=info, completeness=completeness, strings=strings, hlo=hlo, **made)
    fault = _miscount(header.completeness) or fault_of(trace)
    if fault:
        raise SavedError(f"is damaged: {fault}; {_AGAIN}")
    return trace


def _miscount(completeness: Completeness) -> str:
    """What cannot be in a record of where every event went, empty where nothing is wrong."""
    losses = completeness.losses
    counts = [completeness.events, *completeness.rows.values(), *(loss.first_offset or 0 for loss in losses)]
    counts += [count for loss in losses for count in (loss.count, loss.lost_events, loss.lost_bytes)]
    if min(counts) < 0:
        return "it counts events below zero"
    if sum(completeness.rows.values()) > completeness.events:
        return "it counts more rows than events"
    return ""


def _split(data: npt.NDArray[np.uint8]) -> tuple[_Header, npt.NDArray[np.uint8]]:
    """The header, checked for its form, and the bytes of the columns."""
    if data.size < _PREFIX.size:
        raise SavedError(f"is cut short within its first bytes; {_AGAIN}")
    magic, version, header_bytes, column_bytes = _PREFIX.unpack(data[: _PREFIX.size].tobytes())
    if magic != MAGIC:
        raise SavedError("is not a saved trace; name one that stepscope wrote")
    if version != VERSION:
        raise SavedError(f"is of version {version} of the saved form, this stepscope reads version {VERSION}; {_AGAIN}")
    if header_bytes > HEADER_LIMIT:
        raise SavedError(f"is damaged: its header would have {header_bytes:,} bytes; {_AGAIN}")
    begin = _PREFIX.size + header_bytes + _padding(_PREFIX.size + header_bytes)
    whole = begin + column_bytes
    if data.size < whole:
        raise SavedError(f"is cut short: {data.size:,} of {whole:,} bytes are there; {_AGAIN}")
    if data.size > whole:
        raise SavedError(f"is damaged: {data.size - whole:,} bytes lie behind its end; {_AGAIN}")
    try:
        raw = json.loads(data[_PREFIX.size : _PREFIX.size + header_bytes].tobytes())
        return msgspec.convert(raw, _Header), data[begin:]
    except (ValueError, RecursionError) as error:  # msgspec's and JSON's errors are ValueErrors
        raise SavedError(f"is damaged: its header cannot be read ({_short(error)}); {_AGAIN}") from error


def _unpacked_table(name: str, kind: type[t.Table], data: npt.NDArray[np.uint8], declared: _Table) -> t.Table:
    unknown = sorted(declared.columns.keys() - {f.name for f in dataclasses.fields(kind)})
    if unknown:
        raise SavedError(f"is of a newer version, with the column {name}.{_short(unknown[0])}; {_AGAIN}")
    columns: dict[str, npt.NDArray[Any]] = {}
    absent: list[dataclasses.Field[Any]] = []
    for f in dataclasses.fields(kind):
        if f.name in declared.columns:
            column = declared.columns[f.name]
            if column.labels is not None and column.labels != (_labels(f) or [])[: len(column.labels)]:
                raise SavedError(f"is of another version, with other values of {name}.{f.name}; {_AGAIN}")
            columns[f.name] = _values(f"{name}.{f.name}", data, column, t.dtype_of(f), declared.rows)
        elif f.metadata["nullable"]:
            absent.append(f)
        else:
            raise SavedError(f"is damaged: column {name}.{f.name} is missing; {_AGAIN}")
    for f in absent:  # Only now is the number of rows known to fit the file.
        columns[f.name] = _nulls(t.dtype_of(f), declared.rows)
    return kind(**columns)


def _values(
    where: str, data: npt.NDArray[np.uint8], column: _Column, dtype: np.dtype[Any], rows: int
) -> npt.NDArray[Any]:
    """A view of a column's bytes, in the machine's own byte order."""
    little = dtype.newbyteorder("<")
    if column.type != little.str:
        raise SavedError(f"is damaged: {where} has type {_short(column.type)}; {_AGAIN}")
    end = column.at + rows * dtype.itemsize
    if rows < 0 or column.at < 0 or column.at % ALIGNMENT or end > data.size:
        raise SavedError(f"is damaged: {where} lies outside of the file; {_AGAIN}")
    values = data[column.at : end].view(little).astype(dtype, copy=False)
    values.setflags(write=False)
    return values


def _nulls(dtype: np.dtype[Any], rows: int) -> npt.NDArray[Any]:
    values = np.full(rows, np.nan if dtype.kind == "f" else t.NULL if dtype == np.int64 else -1, dtype)
    values.setflags(write=False)
    return values


def _unpacked_strings(data: npt.NDArray[np.uint8], declared: _Table) -> tuple[str, ...]:
    try:
        size = _values("strings.bytes", data, declared.columns["bytes"], np.dtype(np.int64), 1)
        blob = _values("strings.text", data, declared.columns["text"], np.dtype(np.uint8), int(size[0]))
        lengths = _values("strings.lengths", data, declared.columns["lengths"], np.dtype(np.int64), declared.rows)
        text = blob.tobytes().decode()
    except (KeyError, UnicodeDecodeError) as error:
        raise SavedError(f"is damaged: its texts cannot be read; {_AGAIN}") from error
    if (lengths.size and (int(lengths.min()) < 0 or int(lengths.max()) > len(text))) or int(lengths.sum()) != len(text):
        raise SavedError(f"is damaged: the lengths of its texts do not add up; {_AGAIN}")
    return tuple(text[begin:end] for begin, end in pairwise([0, *np.cumsum(lengths).tolist()]))


def _unpacked_blobs(data: npt.NDArray[np.uint8], declared: _Table) -> tuple[bytes, ...]:
    try:
        size = _values("hlo.bytes", data, declared.columns["bytes"], np.dtype(np.int64), 1)
        blob = _values("hlo.data", data, declared.columns["data"], np.dtype(np.uint8), int(size[0]))
        lengths = _values("hlo.lengths", data, declared.columns["lengths"], np.dtype(np.int64), declared.rows)
    except KeyError as error:
        raise SavedError(f"is damaged: its programs cannot be read; {_AGAIN}") from error
    ends = np.cumsum(lengths)
    if (lengths.size and (int(lengths.min()) < 0 or int(lengths.max()) > blob.size)) or int(lengths.sum()) != blob.size:
        raise SavedError(f"is damaged: the lengths of its programs do not add up; {_AGAIN}")
    return tuple(blob[begin:end].tobytes() for begin, end in pairwise([0, *ends.tolist()]))


def _short(text: object) -> str:
    """What the file or a library says, fit for a sentence."""
    return str(text).split("\n", 1)[0][:100]
