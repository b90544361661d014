"""Statements whose mend is not there yet."""

from __future__ import annotations

import pytest

PENDING = (
    "a10", "a31", "a36", "a45", "a50", "a52", "a56", "a63", "a66", "a68", "c11", "c14", "d8", "d9", "d14", "d19",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.startswith(tuple(f"test_{one}_" for one in PENDING)):
            item.add_marker(pytest.mark.xfail(strict=False, reason="the mend is not there yet"))
