"""Profiles that have very many of one thing take time in proportion to their size, whatever the thing is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stepscope import pipeline
from tests.kit.kineto_writer import write_kineto
from tests.kit.shapes import SHAPES
from tests.kit.traces import real_trace

pytestmark = [pytest.mark.slow, pytest.mark.timed]
SMALL, TIMES = 150, 4
MOST = TIMES**1.5
"""What is in proportion to n log n grows by 5 here, what is in proportion to the square by 16."""
LITTLE_S = 0.5
"""Less is not looked at: there the time is that of what happens once."""


def seconds(path: Path) -> float:
    """Processor time of everything that a report, a comparison and the pages need."""
    begun = time.process_time()
    profile = pipeline.open_profile(path)
    profile.document()
    profile.compare(profile)
    profile.run()
    return time.process_time() - begun


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_as_the_profile_does(shape: str, tmp_path: Path) -> None:
    taken = {}
    for size in (SMALL // 10, SMALL, SMALL * TIMES):  # the first compiles and imports
        path = tmp_path / f"{size}.json"
        path.write_bytes(write_kineto(SHAPES[shape](size)))
        taken[size] = seconds(path)
    small, large = taken[SMALL], taken[SMALL * TIMES]
    assert large < LITTLE_S or large < MOST * small, f"{small:.2f} s, {TIMES} times the size {large:.2f} s"


@pytest.mark.real
@pytest.mark.parametrize("name", ["many_devices_hang", "many_streams_slow"])
def test_many_devices_and_streams_cost_what_as_many_rows_cost(name: str, tmp_path: Path) -> None:
    """Real profiles whose ids were scattered: no more than generated ones of as many rows and devices."""
    seconds(real_trace("kineto/a100_event_sync.json.gz"))
    path = real_trace(f"hostile/{name}.json.gz")
    devices = len(pipeline.open_profile(path).facts.activities)
    like = tmp_path / "like.json"
    like.write_bytes(write_kineto(SHAPES["many_devices"](devices)))
    assert seconds(path) < 10 * seconds(like)
