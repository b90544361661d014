"""Compressed bytes as streams: gzip, and the deflate data of a zip archive's member.

Damaged data is read as far as it decompresses; what went wrong is kept as a :class:`Fault` for the reader to report.
Everything is bounded: nothing here holds more than the caller's buffer, and what grows like a bomb is refused.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from stepscope.errors import InputError
from stepscope.record import record

igzip: Any
try:
    from isal import igzip, isal_zlib
except ImportError:  # a platform without isal wheels: zlib does the same work, slower
    igzip = None
    _FAST_ERRORS: tuple[Any, ...] = ()
else:
    _FAST_ERRORS = (EOFError, zlib.error, isal_zlib.error, gzip.BadGzipFile)

FaultCode = Literal["gzip_truncated", "gzip_corrupt", "gzip_trailing", "zip_truncated", "zip_corrupt"]

GZIP_MAGIC = b"\x1f\x8b"
GZIP, DEFLATE = zlib.MAX_WBITS | 16, -zlib.MAX_WBITS
"""The two forms of compressed data, as zlib's window bits name them."""
BOMB_RATIO = 200
"""Real traces shrink 17 to 100 times; a file that grows more than this, and past ``BOMB_BYTES``, is refused."""
BOMB_BYTES = 512 << 20
_BLOCK = 1 << 16


@record
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


def unreadable(path: object, error: Exception) -> InputError:
    """The error for a file that the disk does not give."""
    return InputError(f"{path}: cannot be read: {reason(error)}")


def reason(error: Exception) -> str:
    """The system's words for an error."""
    return str(getattr(error, "strerror", None) or error).lower()


class Packed(Protocol):
    """Compressed bytes as they lie on disk: a file, or a part of one."""

    def read(self, count: int, /) -> bytes:
        """At most ``count`` bytes; none at the end."""

    def seek(self, position: int, /) -> int:
        """Go to a position."""

    def tell(self) -> int:
        """The position."""


class FileWindow(io.RawIOBase):
    """A part of a file as a file of its own."""

    def __init__(self, file: io.RawIOBase, start: int, size: int) -> None:
        self._file, self._start, self._size = file, start, size
        self._at = 0

    def readable(self) -> bool:
        """As of every file that can be read."""
        return True

    def readinto(self, view: Any) -> int:
        """As of every file."""
        wanted = memoryview(view)[: max(self._size - self._at, 0)]
        self._file.seek(self._start + self._at)
        got = int(self._file.readinto(wanted) or 0)
        self._at += got
        return got

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position counted from the part's start."""
        self._at = position
        return position

    def tell(self) -> int:
        """The position, counted from the part's start."""
        return self._at


class Bomb:
    """Counts what a file of ``size`` bytes on disk expands to; too much is refused."""

    def __init__(self, path: object, size: int) -> None:
        self.path, self._size = path, size
        self.produced = 0

    def add(self, count: int) -> None:
        """Note some more bytes. Raises :class:`InputError` past the limit."""
        self.produced += count
        if self.produced > BOMB_BYTES and self.produced > BOMB_RATIO * self._size:
            raise InputError(
                f"{self.path}: expands more than {BOMB_RATIO} times, which no profile does; "
                "decompress it yourself if you trust it"
            )


class InflatedFile(io.RawIOBase):
    """Decompressed bytes as a stream, and as a file that can only be read from its start: it may hold gzip again."""

    def __init__(self, packed: Packed, open_stream: Callable[[], Stream], bomb: Bomb) -> None:
        self._packed, self._open, self._bomb = packed, open_stream, bomb
        self._stream = open_stream()

    @property
    def fault(self) -> Fault | None:
        """As :attr:`Stream.fault`."""
        return self._stream.fault

    @property
    def consumed(self) -> int:
        """As :attr:`Stream.consumed`."""
        return self._stream.consumed

    def readable(self) -> bool:
        """As of every file that can be read."""
        return True

    def readinto(self, view: Any) -> int:
        """As :meth:`Stream.readinto`. Raises :class:`InputError` for a bomb or a failing disk."""
        try:
            got = self._stream.readinto(memoryview(view))
        except OSError as error:
            raise unreadable(self._bomb.path, error) from error
        self._bomb.add(got)
        return got

    def seek(self, position: int, whence: int = 0) -> int:
        """Go back to the start, the only place there is."""
        assert position == 0
        self._packed.seek(0)
        self._stream, self._bomb.produced = self._open(), 0
        return 0

    def tell(self) -> int:
        """Compressed bytes used so far."""
        return self.consumed


class GzipStream:
    """Decompresses with isal; on the first fault zlib goes over the file again, byte by byte near the fault."""

    def __init__(self, file: Packed, size: int, bomb: Bomb) -> None:
        self._file, self._size, self._bomb = file, size, bomb
        self._consumed = 0
        self._careful: CarefulInflate | None = None if igzip else CarefulInflate(file, size)
        self._fast = igzip.IGzipFile(fileobj=file, mode="rb") if igzip else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """As :meth:`Stream.readinto`. Raises :class:`InputError` for a bomb or a failing disk."""
        try:
            got = self._careful.readinto(view) if self._careful else self._read_fast(view)
        except OSError as error:
            raise unreadable(self._bomb.path, error) from error
        self._bomb.add(got)
        return got

    def _read_fast(self, view: memoryview) -> int:
        assert self._fast is not None
        try:
            return int(self._fast.readinto(view))
        except _FAST_ERRORS:
            # isal may have lost what it decompressed in this call; zlib yields every byte before the fault.
            self._file.seek(0)
            self._careful = CarefulInflate(self._file, self._size, skip=self._bomb.produced)
            return self._careful.readinto(view)


class CarefulInflate:
    """Decompresses through zlib alone, delivering what precedes a fault, all but perhaps the last byte.

    ``size`` is the number of compressed bytes. ``form`` GZIP takes several members as one text; DEFLATE is the data of
    a member of a zip archive, with its checksum where known.
    """

    def __init__(self, file: Packed, size: int, *, skip: int = 0, form: int = GZIP, crc: int | None = None) -> None:
        self.fault: Fault | None = None
        self._file, self._size, self._form = file, size, form
        self._members = _Members(file, form)
        self._position = 0
        self._crc, self._expected_crc = 0, crc
        self._discard(skip)

    @property
    def consumed(self) -> int:
        """Compressed bytes used so far."""
        return self._file.tell()

    def readinto(self, view: memoryview) -> int:
        """As :meth:`Stream.readinto`."""
        filled = 0
        while filled < len(view) and self.fault is None and not self._members.finished:
            data = self._next(min(_BLOCK, len(view) - filled))
            view[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _discard(self, count: int) -> None:
        while count > 0 and self.fault is None and not self._members.finished:
            count -= len(self._next(min(_BLOCK, count)))

    def _next(self, limit: int) -> bytes:
        """The next bytes, at most ``limit``; sets ``fault`` where the stream breaks."""
        corrupt = False
        try:
            data = self._members.read(limit)
        except zlib.error:
            data, corrupt = self._up_to_fault(), True
        self._position += len(data)
        if self._expected_crc is not None:
            self._crc = zlib.crc32(data, self._crc)
            corrupt = corrupt or (self._members.finished and self._crc != self._expected_crc)
        if self._members.truncated:
            self._break("gzip_truncated" if self._form == GZIP else "zip_truncated")
        elif self._members.trailing:
            self._break("gzip_trailing")
        elif corrupt:
            self._break("gzip_corrupt" if self._form == GZIP else "zip_corrupt")
        return data

    def _break(self, code: FaultCode) -> None:
        self.fault = Fault(code, self._position, max(self._size - self._members.consumed, 0))

    def _up_to_fault(self) -> bytes:
        """Decompress again up to here and go on byte by byte: a zlib call that fails returns nothing."""
        self._file.seek(0)
        again = _Members(self._file, self._form)
        left = self._position
        while left > 0 and not again.over:
            left -= len(again.read(min(_BLOCK, left)))
        data = bytearray()
        try:
            while not again.over:
                data += again.read(1)
        except zlib.error:
            pass  # the fault being approached
        self._members = again
        return bytes(data)


class _Members:
    """The members of a gzip file one after another; zero bytes behind one are padding, as for gzip itself."""

    def __init__(self, file: Packed, form: int) -> None:
        self._file, self._form = file, form
        self._input = b""
        self._inflate = zlib.decompressobj(form)
        self.finished = self.truncated = self.trailing = False
        self._taken = 0

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.finished or self.truncated or self.trailing

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
        if self._form != GZIP:
            self.finished = True
            return b""
        self._input = self._input.lstrip(b"\0")
        if len(self._input) == 1:
            self._input += (more := self._file.read(_BLOCK))
            self._taken += len(more)
        if self._input.startswith(GZIP_MAGIC):
            self._inflate = zlib.decompressobj(self._form)
        elif self._input:
            self.trailing = True
        return b""
