"""One input file as a stream of bytes: plain, gzip, or a member of a zip archive (gzip or not), told by first bytes.

A damaged file is read as far as it decompresses; what went wrong is kept as a :class:`Fault` for the reader to
report. Everything is bounded: nothing here holds more than the caller's buffer. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np
import numpy.typing as npt

from stepscope.errors import InputError
from stepscope.inputs import archive
from stepscope.inputs import mapped as mapping
from stepscope.inputs.inflate import (
    DEFLATE,
    GZIP_MAGIC,
    Bomb,
    CarefulInflate,
    Fault,
    FileWindow,
    GzipStream,
    InflatedFile,
    Stream,
    reason,
    unreadable,
)

Container = Literal["plain", "gzip", "zip"]
CONTAINERS: tuple[Container, ...] = get_args(Container)

_INFLATES = 14
"""Times that a profile is larger than as gzip: JSON usually 10 to 18."""
MAPPED_FROM = 64 << 20
"""Plain files of this many bytes are mapped, which is several times faster than reading them. Smaller ones are read:
a job that writes the same name again and again may cut a file at any time (``mapped``)."""


class CutOffError(InputError):
    """A saved profile was cut off while it was in use: its columns lie one behind the other, so none is whole."""

    def __init__(self) -> None:
        super().__init__("the profile was cut off or written anew while it was in use; run this again")


class Source:
    """A readable, regular, non-empty file, or such a member of a zip archive.

    Raises :class:`InputError` for what is neither, and for an archive of several files where no member is named.

    >>> Source("no such file")
    Traceback (most recent call last):
    stepscope.errors.InputError: no such file: there is no such file
    """

    def __init__(self, path: str | os.PathLike[str], member: archive.Member | None = None) -> None:
        self.path = Path(path)
        """What to call it: the file, or for a member ARCHIVE/NAME, which is no path that can be opened."""
        self._map: mapping.Map | None = None
        self.size = _regular_size(self.path)
        """Bytes on disk."""
        self._file = self.path.absolute()
        self.place = self._file
        """``path`` from the root: it leads there from wherever the process that reads it stands."""
        with self.open() as file:
            magic = file.read(len(archive.MAGIC))
        self.container: Container = "gzip" if magic.startswith(GZIP_MAGIC) else "plain"
        """``plain``: the bytes lie on disk as they are, so that ``open`` gives them."""
        self.member = member or (archive.only_member(self.path) if magic == archive.MAGIC else None)
        if self.member is not None:
            self.container, self.size = "zip", self.member.packed
            self.path = Path(f"{self.path}/{self.member.name}")
            self.place = Path(f"{self._file}/{self.member.name}")
            archive.check(self.path, self.member)

    def __repr__(self) -> str:
        return f"Source({str(self.path)!r})"

    @property
    def inflated(self) -> int:
        """About how many bytes the content has."""
        return self.size if self.container == "plain" else self.size * _INFLATES

    def open(self) -> BinaryIO:
        """The file (of a member: the archive) as it lies on disk, unbuffered."""
        try:
            return open(self._file, "rb", buffering=0)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be opened: {reason(error)}") from error

    @contextmanager
    def stream(self) -> Iterator[Stream]:
        """The decompressed bytes from the start. Raises :class:`InputError` for a bomb or a failing disk."""
        with self.open() as file:
            if self.container == "plain":
                yield _PlainStream(file, self.path)
                return
            if self.container == "zip":
                with self._member_stream(file) as stream:
                    yield stream
                return
            with GzipStream(file, self.size, Bomb(self.path, self.size)) as stream:
                yield stream

    @contextmanager
    def _member_stream(self, file: Any) -> Iterator[Stream]:
        """A member's bytes; one that is itself gzip is decompressed once more."""
        assert self.member is not None
        member = self.member
        packed = FileWindow(file, archive.data_start(file, self.path, member), member.packed)

        def inflate() -> Stream:
            if member.method == archive.STORED:
                return _PlainStream(packed, self.path)
            return CarefulInflate(packed, member.packed, form=DEFLATE, crc=member.crc)

        inner = InflatedFile(packed, inflate, Bomb(self.path, self.size))
        magic = inner.read(len(GZIP_MAGIC))
        inner.seek(0)
        if magic == GZIP_MAGIC:
            with GzipStream(inner, member.packed, Bomb(self.path, self.size)) as stream:
                yield stream
            return
        yield inner

    @contextmanager
    def here(self) -> Iterator[Source]:
        """The file on this machine, while it is read."""
        yield self

    def head(self, count: int) -> bytes:
        """At most the first ``count`` decompressed bytes, for recognisers."""
        buffer = bytearray(count)
        with self.stream() as stream:
            got = fill(stream, memoryview(buffer))
        return bytes(buffer[:got])

    def data(self, *, mapped: bool = False) -> tuple[npt.NDArray[np.uint8], Fault | None]:
        """The whole decompressed content, read-only, and why it ended early if it did.

        A large plain file, or with ``mapped`` any, is mapped and not read. Where somebody cuts it off meanwhile zeros
        stand for what is gone, which ``cut_off`` tells afterwards; with ``mapped``, :class:`CutOffError` is raised.
        Raises :class:`InputError` for a bomb or a failing disk.
        """
        if self.container == "plain" and (mapped or self.size >= MAPPED_FROM):
            try:
                with open(self._file, "rb", buffering=0) as file:
                    data = mapping.mapped(file, CutOffError if mapped else None)
                self._map = mapping.map_of(data)
                return data, None
            except OSError as error:
                raise unreadable(self.path, error) from error
            except ValueError as error:
                raise InputError(f"{self.path}: became empty while it was read; read it again") from error
        content = bytearray()
        with self.stream() as stream:
            block = bytearray(1 << 20)
            while got := stream.readinto(memoryview(block)):
                content += memoryview(block)[:got]
            fault = stream.fault
        array = np.frombuffer(content, np.uint8)
        array.flags.writeable = False
        return array, fault

    @property
    def cut_off(self) -> int | None:
        """Where a mapped file ended when bytes behind that were read; None where none were."""
        return None if self._map is None else self._map.cut


def fill(stream: Stream, view: memoryview) -> int:
    """Read until the view is full or the stream ends; the number of bytes read."""
    filled = 0
    while filled < len(view) and (got := stream.readinto(view[filled:])):
        filled += got
    return filled


def pread_into(file: BinaryIO, view: memoryview, offset: int, path: Path) -> int:
    """Fill ``view`` from ``offset`` of a plain file; shorter only at the end. Safe from several threads.

    Raises :class:`InputError` where the disk fails.
    """
    filled = 0
    try:
        while filled < len(view) and (got := _read_at(file, view[filled:], offset + filled)):
            filled += got
    except OSError as error:
        raise unreadable(path, error) from error
    return filled


if hasattr(os, "preadv"):

    def _read_at(file: BinaryIO, view: memoryview, offset: int) -> int:
        return os.preadv(file.fileno(), [view], offset)

else:  # Windows
    _SEEKING = threading.Lock()

    def _read_at(file: BinaryIO, view: memoryview, offset: int) -> int:
        with _SEEKING:
            file.seek(offset)
            return file.readinto(view)  # type: ignore[attr-defined, no-any-return]


class _PlainStream:
    fault: Fault | None = None

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path = file, path
        self.consumed = 0

    def readinto(self, view: memoryview) -> int:
        try:
            got = int(self._file.readinto(view))
        except OSError as error:
            raise unreadable(self._path, error) from error
        self.consumed += got
        return got


def _regular_size(path: Path) -> int:
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be opened: {reason(error)}") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a directory, not a profile")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is not a regular file")
    if status.st_size == 0:
        raise InputError(f"{path}: is empty")
    return status.st_size
