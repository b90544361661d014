"""Settings of hypothesis (HYPOTHESIS_PROFILE: quick by default, usual in .ci/run, or thorough) and of every test."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from stepscope import compiled

settings.register_profile("quick", max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("usual", parent=settings.get_profile("quick"), max_examples=60)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Loops run as they do of large profiles; that small ones take another road is tested by processes of their own.
for _work in (compiled.LOOPS, compiled.JSON):
    _work.most = _work.most_uncompiled = -1
os.environ["STEPSCOPE_BACKGROUND"] = "0"


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: who looks for garbage need not go through them each time."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed must not depend on the width of whoever runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)
