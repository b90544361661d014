"""The command line: what goes to which stream, what each failure says, and the status it ends with."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import stepscope
from stepscope import cli
from stepscope.cluster import ranks as cluster_ranks
from stepscope.errors import Exit, InputError
from stepscope.formats import find
from stepscope.formats.find import Found
from stepscope.inputs.folders import Skipped
from tests.report import documents


@dataclass
class FakeProfile:
    made: dict[str, Any]
    exit_status: Exit = Exit.OK
    facts: None = None
    findings: tuple[()] = ()

    def document(self) -> dict[str, Any]:
        return self.made

    def brief(self) -> dict[str, Any]:
        return self.made


class FakeSource(str):
    """A path that stands for what lies there."""

    @property
    def path(self) -> Path:
        return Path(self)


Opener = Callable[..., FakeProfile]


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put an opener in the place of the pipeline's ``read``; a path means itself, or the files ``several`` names."""

    def install(opener: Opener, several: dict[str, Found] | None = None) -> None:
        fake = ModuleType("stepscope.pipeline")
        fake.read = opener  # type: ignore[attr-defined]
        monkeypatch.setattr(find, "find", lambda path, most: (several or {}).get(path, _leads_to(path)))
        monkeypatch.setattr(cluster_ranks, "ranks_of", lambda sources, pattern, skipped: None)
        monkeypatch.setitem(sys.modules, "stepscope.pipeline", fake)
        monkeypatch.setattr(stepscope, "pipeline", fake, raising=False)

    return install


def _leads_to(*paths: str) -> Found:
    return Found(tuple(map(FakeSource, paths)))  # type: ignore[arg-type]


def _always(document: dict[str, Any], status: Exit = Exit.OK) -> Opener:
    return lambda path, *, progress: FakeProfile(document, status)


def _raises(error: BaseException) -> Opener:
    def opener(path: str, *, progress: object) -> FakeProfile:
        raise error

    return opener


def test_text_goes_to_stdout_and_nothing_to_stderr(opens, capsys):
    opens(_always(documents.input_bound()))
    assert cli.main(["diagnose", "x.json"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith("The device waits for input data 27.7 %")
    assert "\x1b" not in out
    assert err == ""


def test_json_is_the_document_and_nothing_else(opens, capsys):
    opens(_always(documents.input_bound()))
    assert cli.main(["diagnose", "--format", "json", "x.json"]) == 0
    assert json.loads(capsys.readouterr().out) == documents.input_bound()


def test_markdown_and_verbose(opens, capsys):
    opens(_always(documents.input_bound()))
    assert cli.main(["diagnose", "--format=markdown", "-v", "x.json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("### The device waits")
    assert "<details>" in out


def test_the_path_is_handed_on_as_given(opens, capsys):
    seen = []
    opens(lambda path, *, progress: seen.append(path) or FakeProfile(documents.healthy()))
    cli.main(["diagnose", "gs://bucket/a b.json"])
    assert seen == ["gs://bucket/a b.json"]


def test_out_writes_a_file_without_colour_and_keeps_stdout_empty(opens, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    opens(_always(documents.input_bound()))
    file = tmp_path / "report.txt"
    assert cli.main(["diagnose", "x.json", "-o", str(file)]) == 0
    assert capsys.readouterr() == ("", "")
    text = file.read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) > 90


def test_a_pipe_has_the_width_of_columns(opens, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "64")
    opens(_always(documents.input_bound()))
    cli.main(["diagnose", "x.json"])
    assert max(map(len, capsys.readouterr().out.splitlines())) == 64


def test_several_profiles_are_told_one_after_the_other(opens, capsys):
    made = {"a": documents.input_bound(), "b": documents.healthy()}
    opens(lambda path, *, progress: FakeProfile(made[path]))
    assert cli.main(["diagnose", "a", "b"]) == 0
    out = capsys.readouterr().out
    assert out.index("The device waits for input") < out.index("\n\nresnet50") < out.index("Nothing to fix")


def test_several_profiles_in_json_are_refused(opens, capsys):
    opens(_raises(AssertionError("not reached")))
    assert cli.main(["diagnose", "--format", "json", "a", "b"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("stepscope: --format json is one document of one profile or of one job")


def test_a_folder_of_several_profiles_is_told_one_after_the_other(opens, capsys):
    made = {"d/a": documents.input_bound(), "d/b": documents.healthy()}
    skipped = Skipped(Path("d/c"), "is empty"), Skipped(Path("d/notes.txt"), "is text", expected=True)
    found = replace(_leads_to(*made), skipped=skipped, notes=("d/a is the newest",))
    opens(lambda path, *, progress: FakeProfile(made[path]), {"d": found})
    assert cli.main(["diagnose", "d"]) == 0
    out, err = capsys.readouterr()
    assert out.index("The device waits for input") < out.index("\n\nresnet50") < out.index("Nothing to fix")
    assert err == "stepscope: d/a is the newest\nstepscope: d: not read:\n  1 file (c): empty\n"
    assert cli.main(["diagnose", "d", "-v"]) == 0
    assert "  1 file (notes.txt): text\n" in capsys.readouterr().err
    assert cli.main(["diagnose", "d", "--format=json"]) == 2


@pytest.mark.parametrize(("form", "line"), [("text", "d/2/v\\x1bm.pb\n"), ("markdown", "`d/2/v\\x1bm.pb`\n\n")])
def test_reports_on_files_of_one_name_begin_with_the_path(opens, capsys, form, line):
    opens(_always(documents.healthy()), {"d": _leads_to("d/1/v\x1bm.pb", "d/2/v\x1bm.pb", "d/other.pb")})
    assert cli.main(["diagnose", "d", "--format", form]) == 0
    out = capsys.readouterr().out
    assert out.count("d/") == 2
    assert "\n\n" + line in out
    assert out.startswith(line.replace("2", "1"))


def test_one_unreadable_profile_of_a_folder_does_not_hide_the_others(opens, capsys):
    def opener(path: str, *, progress: object) -> FakeProfile:
        if path == "bad":
            raise InputError("bad: is no profile", "of any\x1b kind")
        return FakeProfile(documents.healthy())

    opens(opener, {"d": _leads_to("bad", "good")})
    assert cli.main(["diagnose", "d"]) == 1
    out, err = capsys.readouterr()
    assert "Nothing to fix was found" in out
    assert err == "stepscope: bad: is no profile\n  of any\\x1b kind\n"


def test_one_unreadable_profile_does_not_hide_the_others(opens, capsys):
    def opener(path: str, *, progress: object) -> FakeProfile:
        if path == "bad":
            raise InputError("bad is not a profile")
        return FakeProfile(documents.damaged(), Exit.PARTIAL)

    opens(opener)
    assert cli.main(["diagnose", "bad", "good"]) == 1
    out, err = capsys.readouterr()
    assert "Nothing to fix was found" in out
    assert err == "stepscope: bad is not a profile\n"


def test_a_damaged_profile_is_reported_and_ends_with_3(opens, capsys):
    opens(_always(documents.damaged(), Exit.PARTIAL))
    assert cli.main(["diagnose", "x"]) == 3
    assert "could not be read" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (InputError("x.json is not a profile: it is empty"), 1, "x.json is not a profile: it is empty"),
        (InputError("evil\x1b[2J\nname"), 1, "evil\\x1b[2J\\nname"),
        (MemoryError(), 1, "not enough memory to analyse this profile"),
        (RecursionError("deep"), 1, "this profile is nested too deeply to analyse"),
        (PermissionError(13, "Permission denied", "x.json"), 1, "x.json: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
    ],
)
def test_an_error_is_one_sentence_and_a_status(opens, capsys, error, status, sentence):
    opens(_raises(error))
    assert cli.main(["diagnose", "x.json"]) == status
    assert capsys.readouterr() == ("", f"stepscope: {sentence}\n")


def test_a_defect_is_one_sentence_and_its_traceback_only_for_who_asks(opens, capsys, monkeypatch):
    opens(_raises(ZeroDivisionError("division by zero")))
    assert cli.main(["diagnose", "x.json"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("stepscope: stepscope itself failed (ZeroDivisionError: division by zero); please")
    assert err.count("\n") == 1
    monkeypatch.setenv("STEPSCOPE_DEBUG", "1")
    assert cli.main(["diagnose", "x.json"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_place_that_cannot_be_written_is_one_sentence(opens, capsys, tmp_path, form):
    opens(_always(documents.healthy()))
    file = tmp_path / "missing" / "report"
    assert cli.main(["diagnose", "x", "--format", form, "-o", str(file)]) == 1
    assert capsys.readouterr() == ("", f"stepscope: {file}: No such file or directory\n")


@pytest.mark.parametrize(
    "arguments",
    [[], ["diagnoze", "x"], ["diagnose", "--format", "pdf", "x"], ["diagnose", "--steps", "x"]],
)
def test_wrong_usage_ends_with_2_and_keeps_stdout_empty(capsys, arguments):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: stepscope" in err


def test_version_and_help(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"stepscope {stepscope.__version__}\n"
    assert cli.main(["diagnose", "-h"]) == 0
    assert "[PATH]..." in capsys.readouterr().out


def test_every_command_is_registered_once():
    assert list(cli.stepscope.commands.values()) == list(cli.COMMANDS)


def test_every_command_has_a_file_of_its_own():
    folder = Path(cli.__file__).parent
    for command in cli.COMMANDS:
        name = command.name.replace("-", "_")
        assert (folder / (f"{name}_.py" if iskeyword(name) else f"{name}.py")).exists()


def test_only_a_process_of_its_own_looks_for_garbage_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = gc.get_threshold()
    try:
        assert cli.main(["--version"]) == 0
        assert gc.get_threshold() == kept
        monkeypatch.setattr(sys, "argv", ["stepscope", "--version"])
        assert cli.main() == 0
        assert gc.get_threshold()[0] > 20 * kept[0]
    finally:
        gc.set_threshold(*kept)
