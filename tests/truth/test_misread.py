"""What is said of profiles that are plausible but wrong: the table still holds, and good profiles are left alone."""

from __future__ import annotations

import json

import pytest

from stepscope.analysis.contradictions import contradictions
from tests.kit.some import some
from tests.kit.traces import KINETO_TRACES, real_trace
from tests.support import real_facts
from tests.truth import misread

ROWS = {row.pop("way"): row for row in json.loads(misread.FILE.read_text(encoding="utf-8"))}


def test_every_way_is_on_the_page_and_none_is_wrong():
    assert list(ROWS) == list(misread.WAYS)
    assert not [(way, name) for way, row in ROWS.items() for name in row if row[name] == "wrong"]


@pytest.mark.parametrize("way", ["shifted", "first_op_lost", "last_launch_lost"])
def test_clocks_that_are_as_exact_as_any_are_not_blamed(way: str):
    root = json.loads(misread.profile("launch_bound"))
    events = root["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    launches = [event for event in events if event.get("cat") == "cuda_runtime"]
    for event in kernels:
        event["ts"] -= 20  # Each begins 12 us before its call, as ops do that have the number of the next.
    if way == "first_op_lost":
        events.remove(kernels[0])
    elif way == "last_launch_lost":
        last = kernels[-1]["args"]["correlation"]
        events.remove(next(event for event in launches if event["args"].get("correlation") == last))
    assert not {notice.code for notice in misread.told(json.dumps(root).encode())[0].notices} & {*misread.SAYS}


@pytest.mark.parametrize("name", some(misread.SIMULATED, 1))
@pytest.mark.parametrize("way", misread.WAYS)
def test_simulated(way: str, name: str):
    assert misread.outcome(name, way) == ROWS[way][name]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", misread.REAL)
@pytest.mark.parametrize("way", misread.WAYS)
def test_real(way: str, name: str):
    real_trace(f"kineto/{name}.json.gz")
    assert misread.outcome(name, way) == ROWS[way][name]


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_good_profiles_are_left_alone(name: str):
    found = contradictions(real_facts(name))
    assert not found.any
    assert not found.ends_early
