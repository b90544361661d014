"""Ways to damage a file: blindly, or knowing what its bytes mean, so that the damage gets past the first checks.

A mutation is a function of a random source, the bytes to damage and those of another seed to borrow from.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
import struct
import warnings
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz import messages, records

Mutation = Callable[[Random, bytes, bytes], bytes]

LARGEST = 1 << 20
"""A mutation may grow a file up to here."""

NUMBERS = (
    0, 1, -1, 2, 7, 127, 128, 255, 256, 999, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 32,
    1 << 40, 1 << 53, (1 << 61) + 1, 1 << 62, (1 << 63) - 1, 1 << 63, -(1 << 63), (1 << 64) - 1, 10**18,
)  # fmt: skip
_RAW = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "-0", "0.1", "1e18", "9" * 40, "-" + "9" * 25, "1E+2",
    "0x10", "01", "null", "true", "[]", "{}", '""', "[[[[[]]]]]", "12345678901234567890.5", "0.0000000001", "nul", "-",
)  # fmt: skip
_TEXTS = (
    "", "\x00", "\ud800", "é" * 9, "\U0001f600", "a" * 70_000, "\\", '"', "\x1b[2J", "%s%n", "/device:GPU:0", "-1", "1e9",
    "/job:x/replica:0/task:0/device:GPU:99999999999999999999", "stream 7", "ProfilerStep#99999999999999999999", "X", "\n",
    "²", "٣", "--5", "stream ²", "stream " + "9" * 30, f"train.py({'9' * 5000}): main", "x:²", "9" * 5000, "mul:9", "stream",
)  # fmt: skip


def anyhow(random: Random, data: bytes, other: bytes) -> bytes:
    """Bytes flipped, put in, taken out, moved, repeated, cut off, overwritten by a number, or taken from elsewhere."""
    at = random.randrange(len(data) + 1)
    size = min(random.choice((1, 1, 2, 4, 16, 64, 512)), len(data))
    to = random.randrange(len(data) + 1)
    block = data[at : at + size]
    match random.randrange(10):
        case 0:
            return _flipped(random, data)
        case 1:
            return data[:at] + random.randbytes(size) + data[at + size :]
        case 2:
            return data[:at] + random.randbytes(size) + data[at:]
        case 3:
            return data[:at] + data[at + size :]
        case 4:
            return data[:to] + block * random.choice((1, 1, 2, 100)) + data[to:]
        case 5:
            low, high = sorted((at, to))
            return data[:low] + data[high : high + size] + data[low + size : high] + data[low : low + size] + data[high + size :]
        case 6:
            return data[:at]
        case 7:
            return data[:at] + bytes(size) + data[at + size :]
        case 8:
            number = _number_bytes(random)
            return data[:at] + number + data[at + len(number) :]
        case _:
            begin = random.randrange(len(other) + 1)
            return data[:at] + other[begin:]


def _flipped(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _number_bytes(random: Random) -> bytes:
    width = random.choice((1, 2, 4, 8))
    return (random.choice(NUMBERS) % (1 << 8 * width)).to_bytes(width, random.choice(("little", "big")))


# --- text -------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[\[\]{},:]|[A-Za-z]+')
_OBJECT = re.compile(rb"\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}")


def tokens(random: Random, data: bytes, other: bytes) -> bytes:
    """Tokens of JSON replaced, dropped, repeated or swapped: the text is often no JSON any more."""
    found = list(_TOKEN.finditer(data))
    if not found:
        return anyhow(random, data, other)
    one, two = random.choice(found), random.choice(found)
    match random.randrange(6):
        case 0:
            return _with(data, one.span(), random.choice(_RAW).encode())
        case 1:
            return _with(data, one.span(), two.group())
        case 2:
            return _with(data, one.span(), b"")
        case 3:
            return _with(data, one.span(), one.group() * random.choice((2, 3, 500)))
        case 4:
            strings = [token for token in found if token.group().startswith(b'"')] or found
            text = json.dumps(random.choice(_TEXTS), ensure_ascii=random.random() < 0.5)
            return _with(data, random.choice(strings).span(), text.encode("utf-8", "surrogatepass"))
        case _:
            objects = [token.span() for token in _OBJECT.finditer(data)] or [one.span()]
            source, target = random.choice(objects), random.choice(objects)
            block = data[slice(*source)] + b","
            return data[: target[0]] + block * random.choice((1, 2, 50)) + data[target[0] :]


def _with(data: bytes, span: tuple[int, int], replacement: bytes) -> bytes:
    return data[: span[0]] + replacement + data[span[1] :]


def tree(random: Random, data: bytes, other: bytes) -> bytes:
    """Values of a JSON document replaced, moved, repeated or left out: the text stays JSON, or nearly so."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return tokens(random, data, other)
    for _ in range(random.choice((1, 1, 2, 4))):
        _change(random, document)
    text = json.dumps(document, indent=random.choice((None, None, 1)), ensure_ascii=random.random() < 0.5)
    return re.sub(r'"raw:([^"]*)"', r"\1", text).encode("utf-8", "surrogatepass")


def _change(random: Random, document: Any) -> None:
    """Change one value somewhere in a JSON document."""
    places = list(_places(document))
    if not places:
        return
    holder, key = random.choice(places)
    match random.randrange(8):
        case 0:
            holder[key] = random.choice(NUMBERS)
        case 1:
            holder[key] = "raw:" + random.choice([word for word in _RAW if '"' not in word])
        case 2:
            holder[key] = random.choice(_TEXTS)
        case 3:
            source, name = random.choice(places)
            holder[key] = json.loads(json.dumps(source[name]))
        case 4:
            del holder[key]
        case 5 if isinstance(holder, list):
            holder[key:key] = [holder[key]] * random.choice((1, 3, 50))
        case 6 if isinstance(holder[key], int | float):
            holder[key] += random.choice((-1, 1, 1000, -1000, 1e-3, 1 << 40))
        case _:
            if isinstance(holder, dict):
                holder[random.choice([name for at, name in places if isinstance(at, dict)])] = holder.pop(key)
            else:
                holder[key] = random.choice((None, True, False, 0.5, [], {}, [[]], str(holder[key])))


def _places(value: Any) -> Any:
    """Every (holder, key) of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


# --- databases --------------------------------------------------------------------------------------------------------

_SQL_VALUES = (*[n for n in NUMBERS if -(1 << 63) <= n < 1 << 63], None, 0.5, 1e300, "", "text", "7", b"\xff\x00", "n" * 9000)


def rows(random: Random, data: bytes, other: bytes) -> bytes:
    """Rows and tables changed by SQLite itself: the file stays sound, what it says does not."""
    try:
        with sqlite3.connect(":memory:") as connection:
            connection.deserialize(data)
            _sql(random, connection)
            connection.commit()
            return connection.serialize()
    except (sqlite3.Error, UnicodeDecodeError, IndexError):  # an earlier mutation got there first
        return pages(random, data, other)


def _sql(random: Random, connection: sqlite3.Connection) -> None:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = random.choice(tables)
    columns = [name for _, name, *_ in connection.execute(f'PRAGMA table_info("{table}")')]
    column, value = random.choice(columns), random.choice(_SQL_VALUES)
    row = f'rowid = (SELECT rowid FROM "{table}" ORDER BY random() LIMIT 1)'
    match random.randrange(9):
        case 0 | 1 | 2:
            (row,) = random.choice(connection.execute(f'SELECT rowid FROM "{table}"').fetchall())
            connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, row))
        case 3:
            connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ?', (value,))
        case 4:
            connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = "{random.choice(columns)}"')
        case 5:
            connection.execute(f'DROP TABLE "{table}"')
        case 6:
            connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{random.choice(("x", "start", "id"))}"')
        case 7:
            connection.execute(f'DELETE FROM "{table}" WHERE rowid % ? = 0', (random.choice((1, 2, 3)),))
        case _:
            for _ in range(random.choice((1, 6))):
                connection.execute(f'INSERT OR IGNORE INTO "{table}" SELECT * FROM "{table}"')


def pages(random: Random, data: bytes, other: bytes) -> bytes:
    """Pages of an SQLite file swapped, or numbers in their headers, pointers and cells changed."""
    size = int.from_bytes(data[16:18]) or 512
    count = len(data) // size
    if size < 512 or count < 2:
        return anyhow(random, data, other)
    changed = bytearray(data)
    one, two = random.randrange(count) * size, random.randrange(count) * size
    match random.randrange(4):
        case 0:
            changed[one : one + size], changed[two : two + size] = data[two : two + size], data[one : one + size]
        case 1:
            changed[one : one + size] = data[two : two + size]
        case 2:  # what comes first in a page: its kind, its number of cells and where they lie
            at = one + (100 if one == 0 else 0) + random.randrange(24)
            changed[at] = random.choice((0, 1, 2, 5, 10, 13, 127, 255, random.randrange(256)))
        case _:
            at = random.choice((16, 18, 20, 24, 28, 56, 92, one + random.randrange(size)))
            number = _number_bytes(random)
            changed[at : at + len(number)] = number
    return bytes(changed)


# --- the saved form ---------------------------------------------------------------------------------------------------

_SAVED = struct.Struct("<14sHQQ")
_ALIGNED = 64


def saved(random: Random, data: bytes, other: bytes) -> bytes:
    """The header of a saved form changed and everything around it put right, or numbers in its columns changed."""
    try:
        magic, version, header_bytes, column_bytes = _SAVED.unpack_from(data)
        header = json.loads(data[_SAVED.size : _SAVED.size + header_bytes])
        columns = bytearray(data[_SAVED.size + header_bytes + -(_SAVED.size + header_bytes) % _ALIGNED :])
        tables = [table for table in header["tables"].values() if table["rows"]]
        places = [(t["rows"], column) for t in tables for column in t["columns"].values()]
        if random.random() < 0.5:
            rows, column = random.choice([place for place in places if isinstance(place[0], int)])
            width = int(column["type"][-1])
            value = (random.choice((*NUMBERS, rows, rows - 1, random.randrange(rows))) % (1 << 8 * width)).to_bytes(width, "little")
            at = column["at"] + width * random.randrange(rows)
            columns[at : at + width] = value
        else:
            _change(random, header)
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, RecursionError, struct.error):
        return anyhow(random, data, other)  # an earlier mutation got there first
    text = re.sub(r'"raw:([^"]*)"', r"\1", json.dumps(header)).encode()
    padding = bytes(-(_SAVED.size + len(text)) % _ALIGNED)
    return _SAVED.pack(magic, version, len(text), column_bytes) + text + padding + bytes(columns)


# --- containers -------------------------------------------------------------------------------------------------------


def gzipped(inner: Mutation) -> Mutation:
    """What is inside changed and compressed again, in one member or two, sound or not."""

    def mutation(random: Random, data: bytes, other: bytes) -> bytes:
        try:
            text = gzip.decompress(data)
        except (OSError, EOFError, ValueError):
            return anyhow(random, data, other)
        except Exception as error:  # zlib.error is no subclass of anything
            if type(error).__module__ != "zlib":
                raise
            return anyhow(random, data, other)
        changed = inner(random, text, text)[:LARGEST]
        cut = random.randrange(len(changed) + 1)
        parts = (changed,) if random.random() < 0.7 else (changed[:cut], changed[cut:])
        return b"".join(gzip.compress(part, random.choice((0, 1, 9)), mtime=0) for part in parts)

    return mutation


_SIGNATURE = re.compile(rb"PK(?:\x01\x02|\x03\x04|\x05\x06|\x06\x06|\x06\x07|\x07\x08)")


def directory(random: Random, data: bytes, other: bytes) -> bytes:
    """Numbers in the records of a zip archive changed."""
    found = [match.start() for match in _SIGNATURE.finditer(data)]
    if not found:
        return anyhow(random, data, other)
    at = random.choice(found) + random.choice((0, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 38, 42))
    width = random.choice((2, 4, 8))
    number = random.choice((*NUMBERS, len(data), random.choice(found), random.randrange(len(data)))) % (1 << 8 * width)
    return data[:at] + number.to_bytes(width, "little") + data[at + width :]


def zipped(inner: Mutation) -> Mutation:
    """The members of a zip archive changed, and zipped again in some way."""

    def mutation(random: Random, data: bytes, other: bytes) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [(name, archive.read(name)) for name in archive.namelist()]
        except Exception:  # noqa: BLE001 - zipfile raises anything for a damaged archive
            return directory(random, data, other)
        buffer = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
            warnings.simplefilter("ignore")  # two members of one name
            for name, content in members:
                changed = inner(random, content, content)[:LARGEST] if random.random() < 0.7 else content
                called = random.choice((name, name, "../../etc/x", "/x", "a\\b", ".hidden", "é", "x" * 999, "d/"))
                info = zipfile.ZipInfo(called)
                info.compress_type = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
                archive.writestr(info, changed)
        return buffer.getvalue()

    return mutation


# --- protocol buffers, and the records of event files -----------------------------------------------------------------


def message(random: Random, data: bytes, other: bytes) -> bytes:
    """Fields of a protocol-buffer message changed at any depth; lengths are put right, or lie."""
    fields = messages.parse(data)
    if not fields:
        return anyhow(random, data, other)
    for _ in range(random.choice((1, 1, 2, 4))):
        messages.change(random, fields, messages.parse(other) or fields) if fields else None
    return messages.write(fields)


def event_files(random: Random, data: bytes, other: bytes) -> bytes:
    """A record of an event file changed, its checksums put right."""
    found = records.split(data)
    if not found:
        return anyhow(random, data, other)
    at = random.randrange(len(found))
    found[at] = message(random, found[at], found[at])
    return b"".join(map(records.record, found))
