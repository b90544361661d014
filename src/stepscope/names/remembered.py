"""What names mean, kept for the process: a job's ranks, and one profile's tables, ask for the same names again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

_NAMES_KEPT = 1 << 12
"""A profile has some thousands of names at most but where they hold numbers, and then none is worth keeping."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def remembered(function: _Function) -> _Function:
    """Keep what a function says of the names it was asked for last."""
    return cast(_Function, lru_cache(_NAMES_KEPT)(function))
