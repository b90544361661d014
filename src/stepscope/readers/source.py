"""One input file as a stream of text: plain, or gzip recognised by its first bytes.

A damaged gzip file is read as far as it decompresses; what went wrong is kept as a :class:`Fault` for the reader to
report. Everything is bounded: nothing here holds more than the caller's buffer.
"""

from __future__ import annotations

import gzip
import os
import stat
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from stepscope.errors import InputError

igzip: Any
try:
    from isal import igzip, isal_zlib
except ImportError:  # a platform without isal wheels: zlib does the same work, slower
    igzip = None
    _FAST_ERRORS: tuple[Any, ...] = ()
else:
    _FAST_ERRORS = (EOFError, zlib.error, isal_zlib.error, gzip.BadGzipFile)

Container = Literal["plain", "gzip"]
FaultCode = Literal["gzip_truncated", "gzip_corrupt", "gzip_trailing"]

GZIP_MAGIC = b"\x1f\x8b"
BOMB_RATIO = 200
"""Real traces shrink 17 to 100 times; a file that grows more than this, and past ``BOMB_BYTES``, is refused."""
BOMB_BYTES = 512 << 20
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Fault:
    """Where and why a compressed stream ended early; ``offset`` counts decompressed bytes."""

    code: FaultCode
    offset: int
    lost_bytes: int = 0
    """Compressed bytes that were not read."""


class Stream(Protocol):
    """Bytes in order; ``readinto`` returns 0 at the end."""

    @property
    def fault(self) -> Fault | None:
        """Why the end came early, once it has come."""

    @property
    def consumed(self) -> int:
        """Bytes of the file used so far."""

    def readinto(self, view: memoryview) -> int:
        """Fill the view as far as possible and return the number of bytes written."""


class Source:
    """A readable, regular, non-empty file.

    >>> Source("no such file")
    Traceback (most recent call last):
    stepscope.errors.InputError: no such file: there is no such file
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.size = _regular_size(self.path)
        """Bytes on disk."""
        with self.open() as file:
            self.container: Container = "gzip" if file.read(2) == GZIP_MAGIC else "plain"

    def __repr__(self) -> str:
        return f"Source({str(self.path)!r})"

    def open(self) -> BinaryIO:
        """The file as it lies on disk, unbuffered."""
        try:
            return open(self.path, "rb", buffering=0)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be opened: {_reason(error)}") from error

    @contextmanager
    def stream(self) -> Iterator[Stream]:
        """The decompressed bytes from the start. Raises :class:`InputError` for a gzip bomb or a failing disk."""
        with self.open() as file:
            if self.container == "plain":
                yield _PlainStream(file, self.path)
                return
            with _GzipStream(file, self.path, self.size) as stream:
                yield stream

    def head(self, count: int) -> bytes:
        """At most the first ``count`` decompressed bytes, for recognisers."""
        buffer = bytearray(count)
        with self.stream() as stream:
            got = fill(stream, memoryview(buffer))
        return bytes(buffer[:got])

    def data(self) -> tuple[npt.NDArray[np.uint8], Fault | None]:
        """The whole decompressed content, read-only, and why it ended early if it did.

        A plain file is mapped, not read. Raises :class:`InputError` for a gzip bomb or a failing disk.
        """
        if self.container == "plain":
            return np.memmap(self.path, np.uint8, mode="r"), None
        content = bytearray()
        with self.stream() as stream:
            block = bytearray(1 << 20)
            while got := stream.readinto(memoryview(block)):
                content += memoryview(block)[:got]
            return np.frombuffer(bytes(content), np.uint8), stream.fault

    def chunks(self, size: int = 1 << 20) -> Iterator[bytes]:
        """The decompressed bytes in blocks of at most ``size``."""
        buffer = bytearray(size)
        with self.stream() as stream:
            while got := stream.readinto(memoryview(buffer)):
                yield bytes(memoryview(buffer)[:got])


def fill(stream: Stream, view: memoryview) -> int:
    """Read until the view is full or the stream ends; the number of bytes read."""
    filled = 0
    while filled < len(view) and (got := stream.readinto(view[filled:])):
        filled += got
    return filled


def pread_into(file: BinaryIO, view: memoryview, offset: int) -> int:
    """Fill ``view`` from ``offset`` of a plain file; shorter only at the end. Safe from several threads.

    Raises :class:`InputError` where the disk fails.
    """
    filled = 0
    try:
        while filled < len(view) and (got := _read_at(file, view[filled:], offset + filled)):
            filled += got
    except OSError as error:
        raise InputError(f"{file.name}: cannot be read: {_reason(error)}") from error
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

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path = file, path
        self.consumed = 0

    def readinto(self, view: memoryview) -> int:
        try:
            got = int(self._file.readinto(view))  # type: ignore[attr-defined]
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {_reason(error)}") from error
        self.consumed += got
        return got


class _GzipStream:
    """Decompresses with isal; on the first fault zlib goes over the file again, byte by byte near the fault."""

    def __init__(self, file: BinaryIO, path: Path, size: int) -> None:
        self._file, self._path, self._size = file, path, size
        self._produced = self._consumed = 0
        self._careful: CarefulGzip | None = None if igzip else CarefulGzip(file)
        self._fast = igzip.IGzipFile(fileobj=file, mode="rb") if igzip else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._fast is not None:
            self._fast.close()

    @property
    def fault(self) -> Fault | None:
        """Why the stream ended early, once it has ended."""
        return self._careful.fault if self._careful else None

    @property
    def consumed(self) -> int:
        """Compressed bytes used so far."""
        self._consumed = max(self._consumed, self._file.tell())  # reading again from the start is no step back
        return self._consumed

    def readinto(self, view: memoryview) -> int:
        try:
            got = self._careful.readinto(view) if self._careful else self._read_fast(view)
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {_reason(error)}") from error
        self._produced += got
        if self._produced > BOMB_BYTES and self._produced > BOMB_RATIO * self._size:
            raise InputError(f"{self._path} expands more than {BOMB_RATIO} times, which no profile does; "
                             "decompress it yourself if you trust it")
        return got

    def _read_fast(self, view: memoryview) -> int:
        assert self._fast is not None
        try:
            return int(self._fast.readinto(view))
        except _FAST_ERRORS:
            # isal may have lost what it decompressed in this call; zlib yields every byte before the fault.
            self._file.seek(0)
            self._careful = CarefulGzip(self._file, skip=self._produced)
            return self._careful.readinto(view)


class CarefulGzip:
    """Multi-member gzip through zlib alone, delivering what precedes a fault, all but perhaps the last byte."""

    def __init__(self, file: BinaryIO, skip: int = 0) -> None:
        self.fault: Fault | None = None
        self._file = file
        self._members = _Members(file)
        self._position = 0
        self._discard(skip)

    def readinto(self, view: memoryview) -> int:
        """As :meth:`Stream.readinto`."""
        filled = 0
        while filled < len(view) and self.fault is None and not self._members.finished:
            data = self._next(min(_BLOCK, len(view) - filled))
            view[filled:filled + len(data)] = data
            filled += len(data)
        return filled

    def _discard(self, count: int) -> None:
        while count > 0 and self.fault is None and not self._members.finished:
            count -= len(self._next(min(_BLOCK, count)))

    def _next(self, limit: int) -> bytes:
        """The next bytes, at most ``limit``; sets ``fault`` where the stream breaks."""
        code: FaultCode | None = None
        try:
            data = self._members.read(limit)
        except zlib.error:
            data, code = self._up_to_fault(), "gzip_corrupt"
        self._position += len(data)
        if self._members.truncated:
            code = "gzip_truncated"
        elif self._members.trailing:
            code = "gzip_trailing"
        if code is not None:
            left = os.fstat(self._file.fileno()).st_size - self._members.consumed
            self.fault = Fault(code, self._position, max(left, 0))
        return data

    def _up_to_fault(self) -> bytes:
        """Decompress again up to here and go on byte by byte: a zlib call that fails returns nothing."""
        self._file.seek(0)
        again = _Members(self._file)
        left = self._position
        while left > 0 and not (again.finished or again.truncated or again.trailing):
            left -= len(again.read(min(_BLOCK, left)))
        data = bytearray()
        try:
            while not (again.finished or again.truncated or again.trailing):
                data += again.read(1)
        except zlib.error:
            pass  # the fault being approached
        self._members = again
        return bytes(data)


class _Members:
    """The members of a gzip file one after another; zero bytes behind one are padding, as for gzip itself."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._input = b""
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.finished = self.truncated = self.trailing = False
        self._taken = 0

    @property
    def consumed(self) -> int:
        """Compressed bytes used so far."""
        return self._taken - len(self._input)

    def read(self, limit: int) -> bytes:
        """At most ``limit`` bytes; empty only where the state changed. Raises ``zlib.error``."""
        if not self._input and not self._refill():
            data = b"" if self._inflate.eof else self._inflate.decompress(b"", limit)  # a match half copied
            self.truncated = not data and not self._inflate.eof
            self.finished = not data and self._inflate.eof
            return data
        if self._inflate.eof:
            return self._next_member()
        data = self._inflate.decompress(self._input, limit)
        self._input = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
        return data

    def _refill(self) -> bool:
        self._input = self._file.read(_BLOCK)
        self._taken += len(self._input)
        return bool(self._input)

    def _next_member(self) -> bytes:
        self._input = self._input.lstrip(b"\0")
        if len(self._input) == 1:
            self._input += (more := self._file.read(_BLOCK))
            self._taken += len(more)
        if self._input.startswith(GZIP_MAGIC):
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        elif self._input:
            self.trailing = True
        return b""


def _regular_size(path: Path) -> int:
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be opened: {_reason(error)}") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a directory, not a profile")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file")
    if status.st_size == 0:
        raise InputError(f"{path} is empty")
    return status.st_size


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()
