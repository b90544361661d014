"""A number on the job's own command line that is tried: its batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.errors import UsageError

FACTORS = (0.5, 2, 4, 8)
"""Sizes that are tried, in parts of the one given: each doubles, as what fits into memory is found by doubling."""


@dataclass(frozen=True, slots=True)
class ChangedArgument:
    """The argument ``name`` with another number; steps then hold ``value / given`` times the samples."""

    name: str
    at: int
    """Which word of the command holds the number."""
    before: str
    """What stands before it in that word: ``--batch-size=``."""
    given: int
    value: int

    @property
    def spec(self) -> str:
        """As it would be typed."""
        return f"{self.name}={self.value}"

    def put_into(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command with it."""
        return (*words[: self.at], f"{self.before}{self.value}", *words[self.at + 1 :])


def batch_sizes(words: Sequence[str], name: str) -> list[ChangedArgument]:
    """What is tried of the argument ``name`` of a command, ``--batch-size 32``, ``--batch-size=32`` or
    ``data.batch=32``. Raises UsageError where the command has no such number."""
    for at, word in enumerate(words):
        before, equals, text = word.partition("=")
        if word == name and at + 1 < len(words):
            at, before, text = at + 1, "", words[at + 1]
        elif before == name and equals:
            before = f"{name}="
        else:
            continue
        if text.isdecimal() and int(text) > 0:
            given = int(text)
            sizes = sorted({size for factor in FACTORS if (size := int(given * factor)) > 0} - {given})
            return [ChangedArgument(name, at, before, given, size) for size in sizes]
    raise UsageError(
        f"the command does not give {name} a number: name the batch size on it, as in: "
        f"stepscope try --batch-arg {name} train.py {name} 32"
    )
