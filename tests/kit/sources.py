"""Reading a source as readers of profiles do."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.inputs import inflate
from stepscope.inputs.source import Source, fill

_ROOM = 8 << 20
"""More than tests read."""


def chunks(source: Source, size: int) -> Iterator[bytes]:
    """The same in blocks of at most so many bytes."""
    buffer = bytearray(size)
    with source.stream() as stream:
        while got := stream.readinto(memoryview(buffer)):
            yield bytes(memoryview(buffer)[:got])


def read_all(source: Source) -> tuple[bytes, inflate.Fault | None]:
    """All that a source holds, and what was wrong with it."""
    buffer = bytearray(_ROOM)
    with source.stream() as stream:
        got = fill(stream, memoryview(buffer))
        assert stream.readinto(memoryview(buffer)[got:]) == 0
        return bytes(buffer[:got]), stream.fault
