"""Captures: each job runs once per session."""

from __future__ import annotations

import pytest

from tests.captures.jobs import Captures


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Captures:
    """Captures by the name of their job; skips where the framework cannot be had."""
    return Captures(tmp_path_factory.mktemp("captures"))
