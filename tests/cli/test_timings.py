"""``--timings``: where a command's own time and memory went."""

from __future__ import annotations

import pytest

from stepscope import cli
from stepscope.web.server import PageServer
from tests.kit.traces import REPOSITORY

PROFILE = str(REPOSITORY / "examples" / "profiles" / "cpu_input_bound.json.gz")


def test_a_diagnosis_says_where_its_time_went_beside_the_report(capsys):
    assert cli.main(["diagnose", PROFILE]) == 0
    report = capsys.readouterr().out
    assert cli.main(["diagnose", "--timings", PROFILE]) == 0
    out, err = capsys.readouterr()
    assert out == report
    head, *rows, last = err.splitlines()
    assert head.split() == ["stage", "CPU", "time", "wall", "time", "peak", "memory"]
    assert [row.split()[0] for row in rows] == [
        "start", "finding", "reading", "building", "analysis", "diagnosis", "document", "writing",
    ]  # fmt: skip
    assert last.startswith("all")


def test_timings_of_one_command_end_with_it(capsys):
    assert cli.main(["diagnose", "--timings", PROFILE]) == 0
    assert cli.main(["diagnose", PROFILE]) == 0
    assert capsys.readouterr().err.count("peak memory") == 1


def test_a_command_that_fails_still_says_where_its_time_went(capsys, tmp_path):
    assert cli.main(["diagnose", "--timings", str(tmp_path / "nothing.json")]) == 1
    err = capsys.readouterr().err
    assert "finding" in err
    assert "nothing.json" in err


@pytest.mark.parametrize("end", ["a.stepscope", "b.json"])
def test_a_conversion_says_where_its_time_went(capsys, tmp_path, end):
    assert cli.main(["convert", "--timings", PROFILE, str(tmp_path / end)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()][-3:] == ["building", "writing", "all"]


def test_a_view_says_where_its_time_went_once_it_ends(capsys, monkeypatch):
    for name in ("serve_forever", "shutdown"):
        monkeypatch.setattr(PageServer, name, lambda *_: None)
    assert cli.main(["view", "--no-browser", "--timings", PROFILE]) == 0
    stages = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert stages[-4:] == ["reading", "building", "serving", "all"]
