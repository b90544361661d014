"""Several files that are one profile: a TensorFlow 1 job leaves a RunMetadata for each run that it traces.

They are told by their names, which differ in one number alone (a step, a time), and by what they begin with. Numbers
that tell ranks apart, or processes, are no steps.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from stepscope.inputs.inflate import Fault, Stream
from stepscope.inputs.source import Source
from stepscope.regex import regex

_DIGITS = regex(r"(\d+)")
_TELLS_RANKS = regex(r"(?<![a-z])(?:rank|worker|process|proc|pid|task|replica|host|node|ps|gpu|device)[ _.:=-]?$",
                          re.I)  # fmt: skip
"""What stands before numbers that tell files of the same steps apart."""
_HEAD_BYTES = 64


class Joined(Source):
    """Files that are read as one profile, in the order of the number in their names.

    ``path`` is a pattern that leads to them again; what is asked of one file is answered by the first.
    """

    def __init__(self, parts: Sequence[Source]) -> None:
        first, names = parts[0], [part.path.name for part in parts]
        self.parts = tuple(parts)
        self.path, self.place = (path.with_name(_pattern(names)) for path in (first.path, first.place))
        self.size = sum(part.size for part in parts)
        self.container, self.member = first.container, first.member

    def open(self) -> BinaryIO:
        """The first file."""
        return self.parts[0].open()

    @contextmanager
    def stream(self) -> Iterator[Stream]:
        """The first file's bytes."""
        with self.parts[0].stream() as stream:
            yield stream

    def data(self, *, mapped: bool = False) -> tuple[Any, Fault | None]:
        """The first file's content: a reader that knows of several asks each."""
        return self.parts[0].data(mapped=mapped)

    @property
    def cut_off(self) -> int | None:
        """Where the first that was cut off while it was read ended."""
        return next((part.cut_off for part in self.parts if part.cut_off is not None), None)

    @contextmanager
    def here(self) -> Iterator[Source]:
        """All of them on this machine."""
        with ExitStack() as stack:
            yield Joined([stack.enter_context(part.here()) for part in self.parts])


def join(sources: Sequence[Source], recognise: Callable[[bytes], bool]) -> list[Source]:
    """The sources, of which those that are steps of one job are one, at the place of the first of them."""
    groups: dict[tuple[object, ...], list[Source]] = defaultdict(list)
    for source in sources:
        groups[_key(source)].append(source)
    return [one for key, group in groups.items() for one in _of_group(key, group, recognise)]


def parts_of(source: Source) -> tuple[Source, ...]:
    """The files that a source is made of."""
    return source.parts if isinstance(source, Joined) else (source,)


def _of_group(key: tuple[object, ...], group: list[Source], recognise: Callable[[bytes], bool]) -> list[Source]:
    if len(group) < 2 or not all(recognise(source.head(_HEAD_BYTES)) for source in group):
        return group
    return [Joined(sorted(group, key=lambda source: _number(source.path.name)))]


def _key(source: Source) -> tuple[object, ...]:
    """Equal for files whose names differ in the number of the step alone; of a kind of its own for all others."""
    name = source.path.name
    pieces, at = _DIGITS.split(name), _at(name)
    if at is None or isinstance(source, Joined):
        return (id(source),)
    return (source.path.parent, at, *pieces[:at], *pieces[at + 1 :])


def _at(name: str) -> int | None:
    """Where, among the pieces of a name, the number of its step stands: the last that does not tell ranks apart."""
    pieces = _DIGITS.split(name)
    numbers = [at for at in range(1, len(pieces), 2) if not _TELLS_RANKS.search(pieces[at - 1])]
    return numbers[-1] if numbers else None


def _number(name: str) -> int:
    at = _at(name)
    return int(_DIGITS.split(name)[at]) if at is not None else 0


def _pattern(names: Sequence[str]) -> str:
    at = _at(names[0])
    pieces = _DIGITS.split(names[0])
    return "".join("*" if place == at else piece for place, piece in enumerate(pieces)) if at is not None else names[0]


def beside(path: Path, ending: str) -> Path:
    """A file beside a profile, named after it; a pattern's star is no part of a name."""
    return path.with_name(path.name.replace("*", "runs") + ending)
