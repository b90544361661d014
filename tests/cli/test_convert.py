"""``stepscope convert``: what is written, what is refused, and what is said."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import stepscope
from stepscope import cli
from stepscope.cli import outputs
from stepscope.formats.recorded import proven
from stepscope.formats.writers import WRITERS
from tests.cli.profiles import write_profile
from tests.trace.traces import assert_same


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write_profile(tmp_path / "profile.json")


def test_the_saved_form_opens_to_the_same(profile, tmp_path, capsys):
    out = tmp_path / "p.stepscope"
    assert cli.main(["convert", str(profile), str(out)]) == 0
    assert_same(stepscope.open(out).trace, proven(stepscope.open(profile).trace))
    captured = capsys.readouterr()
    assert captured.out == ""
    size = f"{out.stat().st_size / 1024:.1f} KiB"
    assert captured.err.splitlines()[-1] == f"stepscope: wrote {out}: stepscope, {size}, 21 slices"


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_every_format_is_meant_by_its_name_and_by_its_endings(writer):
    assert outputs.chosen_writer("some.folder/by.name", writer.name) is writer
    for ending in writer.suffixes:
        assert outputs.chosen_writer(f"some.folder/out{ending}", None) is writer


@pytest.mark.parametrize("name", ["p.stepscope", "p.json", "p.json.gz", "p.xplane.pb", "tables"])
def test_what_is_written_is_there(name, profile, tmp_path):
    assert cli.main(["convert", str(profile), str(tmp_path / name)]) == 0
    assert (tmp_path / name).exists()


def test_an_ending_that_says_nothing_is_refused_with_those_that_do(profile, tmp_path, capsys):
    assert cli.main(["convert", str(profile), str(tmp_path / "x.zip")]) == 2
    assert ": the ending says no format: use --to, or one of .stepscope (stepscope), " in capsys.readouterr().err
    assert cli.main(["convert", str(profile), str(tmp_path / "x"), "--to", "zip"]) == 2
    assert "--to zip is no format; there are stepscope, " in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [profile]


def test_nothing_is_overwritten_without_force(profile, tmp_path, capsys):
    out = tmp_path / "p.stepscope"
    out.write_text("precious")
    assert cli.main(["convert", str(profile), str(out)]) == 2
    assert capsys.readouterr().err == f"stepscope: {out} is there already: --force overwrites it\n"
    assert out.read_text() == "precious"
    assert cli.main(["convert", "-f", str(profile), str(out)]) == 0
    assert stepscope.open(out).steps.height == 5


def test_the_input_is_never_overwritten(profile, tmp_path, capsys):
    before = profile.read_bytes()
    os.link(profile, tmp_path / "link.stepscope")
    os.symlink(profile, tmp_path / "symlink.stepscope")
    for name in (profile, tmp_path / "link.stepscope", tmp_path / "symlink.stepscope"):
        assert cli.main(["convert", "--force", "--to", "stepscope", str(profile), str(name)]) == 2
        assert "is the profile that is read" in capsys.readouterr().err
    assert profile.read_bytes() == before


def test_a_damaged_profile_is_written_as_far_as_it_goes(tmp_path, capsys):
    cut = write_profile(tmp_path / "cut.json", cut=400)
    out = tmp_path / "p.stepscope"
    assert cli.main(["convert", str(cut), str(out)]) == 3
    capsys.readouterr()
    assert cli.main(["diagnose", str(out)]) == 3
    assert "could not be read" in capsys.readouterr().out


def test_what_cannot_be_read_or_written_is_one_sentence(profile, tmp_path, capsys):
    assert cli.main(["convert", str(tmp_path / "none"), str(tmp_path / "x.stepscope")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    missing = tmp_path / "missing" / "x.stepscope"
    assert cli.main(["convert", str(profile), str(missing)]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"stepscope: {missing}: No such file or directory"


def test_what_the_format_has_no_place_for_is_said(tmp_path, capsys):
    profile = tmp_path / "profile.json"
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5},
        {"ph": "C", "name": "fill", "pid": 1, "tid": 1, "ts": 2, "args": {"queue": 3}},
        {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 3, "s": "t"},
    ]
    profile.write_text(json.dumps({"traceEvents": events}))
    said = "not in it, for which this format has no place: counter values (1), events without a duration (1)"
    for name, is_said in (("a.xplane.pb", True), ("a.json", False), ("a.stepscope", False), ("tables", False)):
        assert cli.main(["convert", str(profile), str(tmp_path / name)]) == 0
        assert (said in capsys.readouterr().err) is is_said


def test_a_profile_is_not_written_to_standard_output(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    profile = write_profile(tmp_path / "profile.json")
    for more in ([], ["--to", "chrome"]):
        assert cli.main(["convert", str(profile), "-", *more]) == 2
        assert "not to standard output" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["profile.json"]
