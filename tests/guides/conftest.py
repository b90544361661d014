"""Statements whose mend is not there yet."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

PENDING = (
    "a7", "a10", "a13", "a31", "a45", "a48", "a50", "a52", "a56", "a58", "a63", "a66", "b15",
    "c11", "c14", "d8", "d9", "d14", "d19",
)  # fmt: skip

kits = ("tests.kit.tf_pipelines", "tests.kit.keras_frames")
collect_ignore = [] if all(map(find_spec, kits)) else ["test_gpu_pipelines.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.startswith(tuple(f"test_{one}_" for one in PENDING)):
            item.add_marker(pytest.mark.xfail(strict=False, reason="the mend is not there yet"))
