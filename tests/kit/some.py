"""A few of many alike each time, all of them where slow tests run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], first: int, *, several: bool = False) -> list[Any]:
    """Values for ``pytest.mark.parametrize``, of which those behind the first few are slow; ``several`` where each is
    a tuple of arguments."""
    return [
        value if at < first else pytest.param(*(value if several else (value,)), marks=pytest.mark.slow)
        for at, value in enumerate(values)
    ]
