"""Shared by the tests of capturing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capture.pretended import Job


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Job]:
    """Makes a job: with what fails, and options of the recording."""
    return lambda failing=None, **chosen: Job(tmp_path, monkeypatch, failing or {}, **chosen)
