"""The one list of readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.errors import InputError
from stepscope.readers import kineto
from stepscope.readers.source import Source
from stepscope.trace.trace import Trace

Progress = Callable[[int, int], None]
HEAD_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Reader:
    """One format: does the beginning of a file look like it, and how to read it."""

    name: str
    recognise: Callable[[bytes], bool]
    read: Callable[[Source, Progress | None], Trace]


READERS: tuple[Reader, ...] = (Reader("Kineto JSON", kineto.recognise, kineto.read),)


def recognise(source: Source) -> Reader:
    """The reader for a file's content.

    Raises InputError with one sentence if there is none.
    """
    head = source.head(HEAD_BYTES)
    for reader in READERS:
        if reader.recognise(head):
            return reader
    raise InputError(f"{source.path} is not a profile stepscope can read ({', '.join(r.name for r in READERS)}).")
