"""The error tree: one boundary (``cli.main``) turns these into a sentence and an exit status.

Exit statuses: 0 done; 1 the input could not be read; 2 wrong usage; 3 the input was damaged and the report is
partial; 4 a ``--fail-if`` fired.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses of the command line."""

    OK = 0
    UNREADABLE = 1
    USAGE = 2
    PARTIAL = 3
    FAIL_IF = 4


class StepscopeError(Exception):
    """Base of every error meant for a person: one clear sentence that says what to do, and perhaps lines below it."""

    status: Exit = Exit.UNREADABLE

    def __init__(self, sentence: str, *details: str) -> None:
        super().__init__(sentence, *details)
        self.sentence, self.details = sentence, details

    def __str__(self) -> str:
        """Sentence and details, each on a line."""
        return "\n  ".join((self.sentence, *self.details))


class InputError(StepscopeError):
    """A path does not exist, cannot be opened, or is not a profile stepscope can read."""


class UsageError(StepscopeError):
    """The request itself makes no sense."""

    status = Exit.USAGE


class TraceInvariantError(StepscopeError):
    """A trace failed its self-check: a defect of stepscope, never of the user's file."""


class OutputError(StepscopeError):
    """A trace has nothing that the asked-for format can hold, or the file cannot be written."""

    status = Exit.USAGE
