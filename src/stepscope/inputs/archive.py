"""The directory of a zip archive: which members it has, and where their data begins.

Not the standard library's ``zipfile``: that reads a directory of any size into memory, gives nothing of an archive
whose end is cut off, and loses what precedes a fault. Layout: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 to 4.5.
Names are only names: nothing is ever written anywhere.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from stepscope.errors import InputError
from stepscope.inputs.inflate import reason
from stepscope.record import record

MAGIC = b"PK\x03\x04"
STORED, DEFLATED = 0, 8
MOST_MEMBERS = 100_000
DIRECTORY_BYTES = 16 << 20
"""A larger directory is not read."""

_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64_AT = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_COMMENT_BYTES = 65_535
_ABSENT = 0xFFFFFFFF
"""In a field of 32 bits: the value stands in the entry's zip64 field, or behind the data."""
_NAME_LENGTH = 200
_ENCRYPTED, _SIZES_BEHIND, _UTF8 = 1, 8, 0x800
_ZIP64 = 1
_METHODS = {9: "deflate64", 12: "bzip2", 14: "lzma", 93: "Zstandard", 95: "xz", 99: "AES encryption"}


@record
class Member:
    """A file in an archive."""

    name: str
    """With slashes; of a very long one the end."""
    method: int
    encrypted: bool
    offset: int
    """Of its local header."""
    packed: int
    """Compressed bytes, never more than the archive has."""
    crc: int | None
    """Of the content; None where not known."""
    modified: tuple[int, ...]
    """Year, month, day, hour, minute, second; local time."""


@record
class Archive:
    """The members that are files, in the directory's order; hidden ones (``__MACOSX/``, ``.name``) are left out."""

    members: tuple[Member, ...]
    cut: bool
    """The directory is missing; the members are those before the cut."""


def is_archive(path: Path) -> bool:
    """Whether there is a file that begins like a zip archive."""
    try:
        with open(path if path.is_file() else os.devnull, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read(path: Path) -> Archive:
    """The members of an archive. Raises :class:`InputError` where its directory makes no sense or is too large."""
    size = path.stat().st_size
    try:
        with open(path, "rb") as file:
            place = _directory(file, path, size)
            members = _before_cut(file, size) if place is None else _entries(_slice(file, *place), size)
            listed = list(islice(members, MOST_MEMBERS + 1))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {reason(error)}") from error
    if len(listed) > MOST_MEMBERS:
        raise _too_many(path)
    if sum(_LOCAL.size + member.packed for member in listed) > size:
        raise InputError(
            f"{path}: is a zip archive whose members overlap, as only bombs do; zip it again if you trust it"
        )
    return Archive(tuple(member for member in listed if _visible(member.name)), place is None)


def only_member(path: Path) -> Member:
    """The one file in an archive. Raises :class:`InputError` where there are none or several."""
    held = read(path)
    if not held.members:
        raise InputError(
            f"{path}: is a zip archive cut off within its first file; get the whole archive"
            if held.cut
            else f"{path}: is a zip archive without files; zip it again"
        )
    if len(held.members) > 1:
        names = ", ".join(member.name for member in held.members[:3]) + (", …" if len(held.members) > 3 else "")
        raise InputError(f"{path}: is a zip archive of {len(held.members)} files; name one as ARCHIVE/NAME ({names})")
    return held.members[0]


def check(path: Path, member: Member) -> None:
    """Raise :class:`InputError` for a member that cannot be decompressed; ``path`` is what to call it."""
    if member.encrypted:
        raise InputError(f"{path}: is encrypted; unzip it with its password")
    if member.method not in (STORED, DEFLATED):
        method = _METHODS.get(member.method, f"method {member.method}")
        raise InputError(f"{path}: is packed with {method}, which is not read from zip archives; unzip it")
    if member.packed == 0:
        raise InputError(f"{path}: is empty")


def data_start(file: Any, path: Path, member: Member) -> int:
    """Where a member's data begins. Raises :class:`InputError` where there is no member."""
    header = _slice(file, member.offset, _LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(MAGIC):
        raise InputError(f"{path}: is not where the archive's directory says; get the whole archive")
    *_, name, extra = _LOCAL.unpack(header)
    return member.offset + _LOCAL.size + int(name) + int(extra)


def _too_many(path: Path) -> InputError:
    return InputError(f"{path}: is a zip archive of more than {MOST_MEMBERS:,} files; unzip it and name the profile")


def _visible(name: str) -> bool:
    hidden = any(part.startswith(".") and part.strip(".") for part in name.split("/"))
    return not (hidden or name.endswith("/") or name.startswith("__MACOSX/"))


def _slice(file: Any, start: int, count: int) -> bytes:
    file.seek(start)
    data: bytes = file.read(count)
    return data


def _directory(file: Any, path: Path, size: int) -> tuple[int, int] | None:
    """Offset and size of the directory; None where the archive's end is missing."""
    base = max(size - _END.size - _COMMENT_BYTES - _END64_AT.size, 0)
    tail = _slice(file, base, size - base)
    at = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
    if at < 0:
        return None
    *_, length, start, _ = _END.unpack_from(tail, at)
    if start == _ABSENT or length == _ABSENT:
        _, _, end64, _ = _END64_AT.unpack_from(tail, max(at - _END64_AT.size, 0))
        record = _slice(file, min(end64, size), _END64.size)
        if len(record) < _END64.size or not record.startswith(b"PK\x06\x06"):
            return None
        *_, length, start = _END64.unpack(record)
    if length > DIRECTORY_BYTES:
        raise _too_many(path)
    return (start, length) if start + length <= base + at else None


def _entries(directory: bytes, size: int) -> Iterator[Member]:
    at = 0
    while at + _ENTRY.size <= len(directory) and directory.startswith(b"PK\x01\x02", at):
        (_, _, _, flags, method, time, date, crc, packed, unpacked, named, extra, comment, *_, offset) = (
            _ENTRY.unpack_from(directory, at)
        )
        name = directory[at + _ENTRY.size : at + _ENTRY.size + named]
        at += _ENTRY.size + named
        packed, offset = _wide(directory[at : at + extra], unpacked, packed, offset)
        at += extra + comment
        encrypted = bool(flags & _ENCRYPTED)
        yield Member(_readable(name, flags), method, encrypted, offset, min(packed, size), crc, _time(date, time))


def _wide(extra: bytes, unpacked: int, packed: int, offset: int) -> tuple[int, int]:
    """Packed size and offset, from the zip64 field where they do not fit 32 bits; it holds only those that do not."""
    at = 0
    while at + 4 <= len(extra):
        tag, length = struct.unpack_from("<HH", extra, at)
        values = extra[at + 4 : at + 4 + length]
        at += 4 + length
        if tag == _ZIP64:
            numbers = iter(struct.unpack(f"<{len(values) // 8}Q", values[: len(values) // 8 * 8]))
            _, packed, offset = (
                next(numbers, _ABSENT) if number == _ABSENT else number for number in (unpacked, packed, offset)
            )
    return packed, offset


def _before_cut(file: Any, size: int) -> Iterator[Member]:
    """The members before the cut, by their local headers; what says its size only behind its data is the last."""
    at = 0
    while at + _LOCAL.size <= size:
        header = _slice(file, at, _LOCAL.size)
        magic, _, flags, method, time, date, crc, packed, unpacked, named, extra = _LOCAL.unpack(header)
        start = at + _LOCAL.size + named + extra
        if magic != MAGIC or start >= size:
            return
        name, more = _slice(file, at + _LOCAL.size, named), _slice(file, at + _LOCAL.size + named, extra)
        packed, _ = _wide(more, unpacked, packed, 0)
        behind, rest = bool(flags & _SIZES_BEHIND), size - start
        packed, known_crc = (rest, None) if behind else (min(packed, rest), crc)
        encrypted = bool(flags & _ENCRYPTED)
        yield Member(_readable(name, flags), method, encrypted, at, packed, known_crc, _time(date, time))
        at = size if behind else start + packed


def _time(date: int, time: int) -> tuple[int, ...]:
    """A time as DOS packs it (4.4.6)."""
    return 1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, time % 32 * 2


def _readable(name: bytes, flags: int) -> str:
    """A member's name, which is shown in sentences."""
    text = name.decode("utf-8" if flags & _UTF8 else "cp437", errors="replace")
    # What ends a line there, or a path, is a letter that is not known.
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in text.replace("\\", "/"))
    return text if len(text) <= _NAME_LENGTH else "…" + text[-_NAME_LENGTH:]
