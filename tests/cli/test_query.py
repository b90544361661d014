"""``stepscope query``: SQL, lists of tables, and ranges of time, in each form."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from stepscope import cli
from tests.cli.profiles import write_profile


@pytest.fixture
def profile(tmp_path: Path) -> str:
    return str(write_profile(tmp_path / "profile.json"))


def test_a_select_is_shown_as_a_table(profile, capsys):
    assert cli.main(["query", profile, "SELECT name, dur_ns, bytes FROM ops ORDER BY start_ns LIMIT 2"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "name           dur_ns  bytes",
        "gemm\\x1b[31m3   60000   null",
        "gemm\\x1b[31m4   60000   null",
    ]
    assert "\x1b" not in out + err


def test_csv_and_json_are_exact(profile, capsys, tmp_path):
    sql = "SELECT name, dur_ns, bytes FROM ops ORDER BY start_ns LIMIT 1"
    assert cli.main(["query", profile, sql, "--format", "csv"]) == 0
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [
        ["name", "dur_ns", "bytes"], ["gemm\x1b[31m3", "60000", ""]
    ]  # fmt: skip
    out = tmp_path / "rows.json"
    assert cli.main(["query", profile, sql, "--format", "json", "-o", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(out.read_text()) == [{"name": "gemm\x1b[31m3", "dur_ns": 60000, "bytes": None}]


def test_views_of_the_report_are_found(profile, capsys):
    sql = "SELECT s.number, a.compute FROM accounting a JOIN steps s ON s.index = a.step ORDER BY 1"
    assert cli.main(["query", profile, sql, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[1] == {"number": 4, "compute": 60_000}


def test_a_time_narrows_the_tables(profile, capsys):
    sql = "SELECT COUNT(*) AS n FROM {}"
    for table, count in {"ops": 2, "steps": 2, "host": 6}.items():
        arguments = ["query", profile, sql.format(table), "--time", "110us:280us", "--format", "json"]
        assert cli.main(arguments) == 0
        assert json.loads(capsys.readouterr().out) == [{"n": count}], table


def test_a_time_alone_says_what_ran_in_it(profile, capsys):
    assert cli.main(["query", profile, "--time", "100us:200us"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["where", "name", "kind", "self_ns", "count", "share"]
    # The words of the report; csv and json hold the keys of docs/categories.md.
    assert lines[1].split() == ["device", "0", "computing", "(kernels)", "busy", "60000", "1", "0.6"]
    assert any(line.split()[-5:] == ["aten::mm", "host_op", "35000", "1", "0.35"] for line in lines)
    assert cli.main(["query", profile, "--time", "100us:200us", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sum(row["self_ns"] for row in rows if row["device"] == 0) == 100_000
    assert {row["name"] for row in rows if row["device"] == 0} >= {"compute", "launch"}
    assert sum(row["self_ns"] for row in rows if row["thread"]) == 100_000


def test_small_rows_of_a_region_stand_together(tmp_path, capsys):
    from tests.kit.builder import TraceDrawing
    from tests.kit.kineto_writer import write_kineto

    drawing = TraceDrawing()
    for i in range(15):
        drawing.host(f"op{i:02}", 20 * i, 15 - i)
    path = tmp_path / "many.json"
    path.write_bytes(write_kineto(drawing.events()))
    assert cli.main(["query", str(path), "--time", "0:1ms"]) == 0
    lines = [line.split()[-4:] for line in capsys.readouterr().out.splitlines()]
    assert lines[11][1:] == ["15000", "5", "0.015"]  # 5 + 4 + 3 + 2 + 1 us
    assert lines[12][1:] == ["880000", "null", "0.88"]


def test_the_tables_are_listed(profile, capsys):
    assert cli.main(["query", profile, "--tables"]) == 0
    out = capsys.readouterr().out
    assert "\nops: What ran on devices" in out
    assert cli.main(["query", profile, "--tables", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"table": "slices", "column": "dur_ns", "type": "integer", "holds": "Duration."} in found


def test_a_long_table_is_cut_and_says_so(tmp_path, capsys):
    from tests.kit.builder import TraceDrawing
    from tests.kit.kineto_writer import write_kineto

    drawing = TraceDrawing()
    for i in range(250):
        drawing.host("aten::mm", 20 * i, 10)
    path = tmp_path / "long.json"
    path.write_bytes(write_kineto(drawing.events()))
    assert cli.main(["query", str(path), "SELECT id FROM host WHERE name = 'aten::mm'"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 201
    assert err.splitlines()[-1].startswith("stepscope: 200 of 250 rows are shown")
    assert cli.main(["query", str(path), "SELECT id FROM host WHERE name = 'aten::mm'", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 251


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a SELECT, --time, or --tables"),
        (["SELECT * FROM read_csv('/etc/passwd')"], "a query reads the tables of the profile, not files"),
        (["DROP TABLE slices"], "a query begins with SELECT"),
        (["SELECT nope FROM ops"], 'the query failed: unable to find column "nope"'),
        (["SELECT * FROM ops", "--time", "1s:2s"], "holds nothing of the time from 1.00 s to 2.00 s"),
        (["--time", "0.1"], "--time 0.1: give a start and an end"),
    ],
)
def test_a_wrong_query_ends_with_2(profile, capsys, arguments, words):
    assert cli.main(["query", profile, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err.splitlines()[-1]


def test_a_damaged_profile_is_answered_and_ends_with_3(tmp_path, capsys):
    cut = write_profile(tmp_path / "cut.json", cut=400)
    assert cli.main(["query", str(cut), "SELECT COUNT(*) FROM slices"]) == 3
    assert capsys.readouterr().out


def test_the_ending_of_a_file_says_how_rows_are_written(profile, tmp_path):
    for name, begins in (("rows.csv", "id\n"), ("rows.json", "[\n"), ("rows.txt", "id\n")):
        assert cli.main(["query", profile, "SELECT id FROM slices", "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(begins)
    assert cli.main(["query", profile, "SELECT id FROM slices", "-o", str(tmp_path / "a.csv"), "--format", "json"]) == 0
    assert json.loads((tmp_path / "a.csv").read_text())[0] == {"id": 0}


def test_a_time_outside_of_the_profile_is_refused(profile, capsys):
    assert cli.main(["query", profile, "--time", "9s:10s"]) == 2
    assert "it lasts from 0 ns to" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_a_file_that_cannot_be_written_is_named(profile, capsys):
    assert cli.main(["query", profile, "--tables", "-o", "/dev/full"]) == 1
    assert capsys.readouterr().err == "stepscope: /dev/full: No space left on device\n"
