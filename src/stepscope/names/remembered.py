"""What names mean, kept for the process: a job's ranks, and one profile's tables, ask for the same names again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

_NAMES_KEPT = 1 << 15
"""Each table asks for a profile's names from the first to the last: were there more than are kept, none would be kept
until it is asked for again. Large TensorFlow jobs have 10^4. No more, as names that hold addresses are new in each of a
thousand ranks, and one takes 80 bytes and its own for each function here."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def remembered(function: _Function) -> _Function:
    """Keep what a function says of the names it was asked for last."""
    return cast(_Function, lru_cache(_NAMES_KEPT)(function))
