"""Ways to damage databases, saved forms, gzip and zip files, knowing what their bytes mean."""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
import struct
import warnings
import zipfile
from random import Random

from tests.fuzz.mutations import LARGEST, NUMBERS, Mutation, anyhow, change, number_bytes, written

# --- databases --------------------------------------------------------------------------------------------------------

_INTEGERS = tuple(number for number in NUMBERS if -(1 << 63) <= number < 1 << 63)
_VALUES = (*_INTEGERS, None, 0.5, 1e300, "", "text", "7", b"\xff\x00", "n" * 9000)


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
    column, value = random.choice(columns), random.choice(_VALUES)
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
            connection.execute(
                f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{random.choice(("x", "start", "id"))}"'
            )
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
            number = number_bytes(random)
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
            value = (random.choice((*NUMBERS, rows, rows - 1, random.randrange(rows))) % (1 << 8 * width)).to_bytes(
                width, "little"
            )
            at = column["at"] + width * random.randrange(rows)
            columns[at : at + width] = value
        else:
            change(random, header)
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, RecursionError, struct.error):
        return anyhow(random, data, other)  # an earlier mutation got there first
    text = written(header)
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
                info.compress_type = random.choice(
                    (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
                )
                archive.writestr(info, changed)
        return buffer.getvalue()

    return mutation
