"""FLOPs and bytes of ops of real XPlane files are XProf's, but where it is known why not."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from tests.captures.environments import framework_python
from tests.kit.traces import real_trace
from tests.truth import xprof

WRITTEN = json.loads(xprof.PAGE.read_text(encoding="utf-8"))


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
    assert found == [row for row in WRITTEN if row["profile"] == profile], "python -m tests.truth.xprof, then make docs"
