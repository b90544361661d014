"""What XPlane files tell is what XProf tells of them, but where it is known why not: FLOPs and bytes of each op, op
counts, times, steps, the share of input and the peaks of memory, of real files and of captures made here."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from tests.captures.environments import framework_python
from tests.captures.jobs import Captures
from tests.kit.traces import real_trace
from tests.truth import xprof, xprof_totals

WRITTEN = json.loads(xprof.PAGE.read_text(encoding="utf-8"))
TOTALS = json.loads(xprof_totals.PAGE.read_text(encoding="utf-8"))


def test_every_difference_on_the_page_has_its_reason() -> None:
    assert {row["profile"] for row in WRITTEN} == set(xprof.PROFILES)
    for row in WRITTEN:
        mine, theirs = (row["flops"], row["bytes"]), (row["xprof_flops"], row["xprof_bytes"])
        assert row["reason"] != "?", row
        assert row["reason"] or all(map(xprof.near, mine, theirs)), row


def test_products_and_convolutions_agree_wherever_xprof_counts_them() -> None:
    rows = [row for row in WRITTEN if row["kind"] in ("gemm", "convolution") and row["xprof_flops"]]
    assert {row["kind"] for row in rows} == {"gemm", "convolution"}
    assert all(row["flops"] == row["xprof_flops"] for row in rows)


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("profile", xprof.PROFILES)
def test_the_page_is_what_xprof_and_stepscope_say(profile: str) -> None:
    real_trace(f"xplane/{profile}.xplane.pb")
    found = [asdict(row) for row in xprof.counted(profile, str(framework_python("xprof")))]
    mine = [row for row in WRITTEN if row["profile"] == profile]
    assert _sorted(found) == _sorted(mine), "python -m tests.truth.xprof, then make docs"


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What orders them by the time they take is no part of the figures."""
    return sorted(rows, key=lambda row: (row["program"], row["op"]))


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Captures:
    return Captures(tmp_path_factory.mktemp("captures"))


def test_every_total_on_the_page_agrees_or_has_its_reason() -> None:
    assert {row["profile"] for row in TOTALS} == set(xprof_totals.PROFILES)
    assert [row for row in TOTALS if row["reason"] == "?"] == []
    agree = {row["what"].partition(",")[0] for row in TOTALS if not row["reason"]}
    assert {"compiled ops that ran", "kernels that ran", "their time", "mean step", "most memory in use"} <= agree


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("profile", xprof_totals.PROFILES)
def test_the_totals_on_the_page_are_what_both_say(profile: str) -> None:
    path = real_trace(f"xplane/{profile}.xplane.pb")
    found = [asdict(row) for row in xprof_totals.compared(profile, path, str(framework_python("xprof")))]
    mine = [row for row in TOTALS if row["profile"] == profile]
    assert found == mine, "python -m tests.truth.xprof_totals, then make docs"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "told"),
    [
        ("jax", {"steps compared", "mean step"}),
        ("jax_callbacks", {"steps compared", "mean step"}),
        ("tf_loop", {"their time", "steps compared", "waiting for input"}),
        ("tf_strategy", {"their time", "steps compared", "most memory in use"}),
        ("keras", {"their time"}),
    ],
)
def test_captures_tell_what_xprof_tells_of_them(captures: Captures, job: str, told: set[str]) -> None:
    """Of these figures both have to have one; any that differs needs its reason."""
    path, python = captures[job].file("*.xplane.pb"), str(framework_python("xprof"))
    rows = xprof_totals.compared(job, path, python)
    assert [row for row in rows if row.reason == "?"] == []
    assert told <= {row.what.partition(",")[0] for row in rows if row.theirs is not None}
