"""PyTorch's memory on the CPU: a tensor of every step is kept."""

from __future__ import annotations

import pytest

from stepscope import Profile
from stepscope.analysis.blocks import Held
from stepscope.analysis.memory import MemoryUse
from tests.captures.checks import opened
from tests.captures.jobs import Capture, Captures

pytestmark = pytest.mark.slow


@pytest.fixture
def capture(captures: Captures) -> Capture:
    return captures["torch_memory"]


@pytest.fixture
def profile(capture: Capture) -> Profile:
    return opened(capture.file("trace.json.gz"))


@pytest.fixture
def use(profile: Profile) -> MemoryUse:
    (found,) = profile.facts.memory
    return found


def test_the_peak_is_that_of_pytorchs_own_export(capture: Capture, use: MemoryUse) -> None:
    assert use.peak.allocated == capture.truth["peak_bytes"]
    assert sum(use.peak.held.values()) == use.peak.allocated


def test_the_gradients_are_as_large_as_the_parameters(capture: Capture, use: MemoryUse) -> None:
    assert use.peak.held[Held.GRADIENT] == capture.truth["parameter_bytes"]


def test_the_leak_its_size_and_its_line(capture: Capture, profile: Profile, use: MemoryUse) -> None:
    assert use.growth is not None
    assert set(use.growth.per_step) == {capture.truth["kept_per_step"]}
    (place,) = use.growth.places
    assert (place.where.line, place.where.function) == (capture.truth["kept_line"], "keep")
    (notice,) = [notice for notice in profile.notices if notice.code == "memory_growth"]
    assert f"line {capture.truth['kept_line']}" in notice.text
