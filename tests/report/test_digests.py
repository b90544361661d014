"""Reports of real traces hold what they held: what makes stepscope faster changes no field of them."""

from __future__ import annotations

import pytest

from tests.kit.traces import LARGE, real_trace
from tests.report import digests

SELDOM = {*(f"kineto/{name}.json.gz" for name in LARGE), "xplane/v100_many_processes.xplane.pb"}


@pytest.mark.real
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SELDOM or "hostile/many" in name else ())
        for name in digests.NAMES
    ],
)
def test_the_report_of_a_real_trace_holds_what_it_held(name: str):
    if "[" not in name:
        real_trace(name)
    else:
        real_trace(name.replace("[01]", "0"))
    differ = digests.changed(digests.kept().get(name, {}), digests.sections_of(name))
    assert not differ, f"{', '.join(differ)} of the report changed; where that is meant: python -m tests.report.digests"


def test_a_field_that_changes_is_named_by_its_section():
    before = {"summary.verdict": "a", "analyses.idle": "b", "steps": "c"}
    assert digests.changed(before, {**before, "analyses.idle": "x", "analyses.new": "y"}) == [
        "analyses.idle",
        "analyses.new",
    ]
    del before["steps"]
    assert digests.changed({**before, "steps": "c"}, before) == ["steps"]
