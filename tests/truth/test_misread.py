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
KNOWN_WRONG = {("correlations_off", "launch_bound")}
"""Its verdict is right, and so are its costs; the first finding is missing. The calls are so close to each other that
the clocks' own error is larger."""


def test_every_way_is_on_the_page_and_no_more_are_wrong():
    assert list(ROWS) == list(misread.WAYS)
    assert {(way, name) for way, row in ROWS.items() for name in row if row[name] == "wrong"} == KNOWN_WRONG


@pytest.mark.parametrize("name", some(misread.SIMULATED, 2))
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
