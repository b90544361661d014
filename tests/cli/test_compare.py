"""``stepscope compare`` on the command line: what it prints, writes and exits with."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from stepscope import cli
from stepscope.report import comparison
from stepscope.report.schema import COMPARISON_SCHEMA, load
from tests.kit.kineto_writer import write_kineto
from tests.kit.loop import run
from tests.kit.planted import CASES

HOSTILE = "<img src=x onerror=alert(1)>|`x`\x1b[31m"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Before and after the loader was repaired."""
    folder = tmp_path_factory.mktemp("pair")
    plan = CASES["input_bound"]().plan
    for name, one in (("before", plan), ("after", replace(plan, input_us=20))):
        (folder / name).write_bytes(write_kineto(tuple(run(one).machine.events())))
    return str(folder / "before"), str(folder / "after")


def test_the_step_the_cause_and_the_finding(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["compare", *pair]) == 0
    out = capsys.readouterr().out
    assert " faster: " in out
    assert "waiting for input data" in out
    assert "(gone: " in out
    assert "Without “The device waits for input data” a step was predicted to take " in " ".join(out.split())
    assert max(map(len, out.splitlines()[1:])) <= 110


def test_json_follows_its_schema(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["compare", *pair, "--format", "json", "--fail-if", "step_time > +3%"]) == 0
    made = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(load(COMPARISON_SCHEMA))
    jsonschema.validate(made, load(COMPARISON_SCHEMA))
    assert made["changed"] is True
    assert made["step_time"]["difference_ns"] < 0
    assert made["budgets"] == [{"condition": "step_time > +3%", "fired": False, "text": made["budgets"][0]["text"]}]


def test_a_run_and_itself(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["compare", pair[0], pair[0], "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["changed"] is False
    assert [change["state"] for change in made["findings"]] == ["stays"] * len(made["findings"])


def test_a_condition_that_holds_is_status_4(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    after, before = pair
    assert cli.main(["compare", before, after, "--fail-if", "step_time > +3%", "--fail-if", "gc > 1ms"]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stepscope: --fail-if step_time > +3%: step_time changed by +")


def test_conditions_of_the_project_hold_where_none_are_given(
    pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pyproject.toml").write_text('[tool.stepscope]\nfail-if = ["step_time > +3%"]\n')
    monkeypatch.chdir(tmp_path)
    assert cli.main(["compare", pair[1], pair[0]]) == 4
    assert cli.main(["compare", pair[1], pair[0], "--fail-if", "step_time > 1s"]) == 0


def test_markdown_holds_no_markup_of_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plan = CASES["input_bound"]().plan
    events = tuple(run(plan).machine.events())
    kernels = [event.name for event in events if event.cat == "kernel"]
    most = max(set(kernels), key=kernels.count)
    other = tuple(
        replace(event, name=HOSTILE, dur_ns=(event.dur_ns or 0) * 2) if event.name == most else event
        for event in events
    )
    (tmp_path / "one").write_bytes(write_kineto(events))
    (tmp_path / "two").write_bytes(write_kineto(other))
    assert cli.main(["compare", str(tmp_path / "one"), str(tmp_path / "two"), "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "onerror" in line)
    assert row.count("|") - row.count("\\|") == 5
    assert "\x1b" not in out
    cell = row.split("|")[1].strip()
    assert cell.startswith("``")
    assert cell.endswith("``")


@pytest.mark.parametrize(("which", "status"), [("missing", 1), ("condition", 2)])
def test_refusals(pair: tuple[str, str], tmp_path: Path, which: str, status: int):
    arguments = [pair[0], str(tmp_path / "none")] if which == "missing" else [*pair, "--fail-if", "fast"]
    assert cli.main(["compare", *arguments]) == status


def test_out_is_a_file(pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["compare", *pair, "-o", str(tmp_path / "c.txt")]) == 0
    assert capsys.readouterr().out == ""
    assert " faster: " in (tmp_path / "c.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "begins"), [("c.json", "{"), ("c.md", "*"), ("c.HTML", "<!doctype html>"), ("c", ""), ("c.log", "")]
)
def test_the_name_of_the_file_says_the_format(
    pair: tuple[str, str], tmp_path: Path, name: str, begins: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["compare", *pair, "-o", str(tmp_path / name)]) == 0
    assert cli.main(["diagnose", pair[0], "-o", str(tmp_path / f"d{name}")]) == 0
    for made in (tmp_path / name, tmp_path / f"d{name}"):
        text = made.read_text(encoding="utf-8")
        assert text.lower().startswith(begins) or (begins == "*" and text.startswith("### "))
        assert text[0].isalnum() is (begins == "")
    assert cli.main(["compare", *pair, "--format", "json", "-o", str(tmp_path / "j.html")]) == 0
    assert json.loads((tmp_path / "j.html").read_text(encoding="utf-8"))
    assert capsys.readouterr().out == ""


def test_a_single_profile_is_held_against_conditions(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(["diagnose", pair[0], "--fail-if", "input > 5%"]) == 4
    assert "--fail-if input > 5%: input is " in capsys.readouterr().err
    assert cli.main(["diagnose", pair[1], "--fail-if", "input > 5%"]) == 0
    assert cli.main(["diagnose", pair[0], "--fail-if", "step_time > +5%"]) == 2


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three runs of the same code, and one whose loader is slow."""
    folder = tmp_path_factory.mktemp("runs")
    fast = replace(CASES["input_bound"]().plan, input_us=20)
    plans = [*(replace(fast, seed=seed, jitter=0.02) for seed in range(3)), CASES["input_bound"]().plan]
    for at, plan in enumerate(plans):
        (folder / str(at)).write_bytes(write_kineto(tuple(run(plan).machine.events())))
    return [str(folder / str(at)) for at in range(4)]


def test_several_runs_of_a_side(runs: list[str], capsys: pytest.CaptureFixture[str]):
    one, two, three, slow = runs
    gate = ["--fail-if", "step_time > +10%"]
    assert cli.main(["compare", one, slow, "--before", two, "--before", three, *gate, "--format", "json"]) == 4
    made = json.loads(capsys.readouterr().out)
    assert (made["before"]["runs"], made["after"]["runs"], made["changed"]) == (3, 1, True)
    assert made["before"]["steps_used"] == len(made["before"]["step_ns"])
    jsonschema.validate(made, load(COMPARISON_SCHEMA))
    assert cli.main(["compare", one, two, "--before", one]) == 2
    assert "name each run once" in capsys.readouterr().err


def test_markdown_says_what_was_compared_and_what_fired(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]):
    after, before = pair
    assert cli.main(["compare", before, after, "--format", "markdown", "--fail-if", "step_time > +3%"]) == 4
    out = capsys.readouterr().out
    assert f"- before: `{before}`, " in out
    assert f"- after: `{after}`, " in out
    assert "⚠ Fired: step_time > +3%: step_time changed by +" in html.unescape(out).replace("\\", "")


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_a_damaged_profile_is_said(
    pair: tuple[str, str], tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
):
    whole = Path(pair[0]).read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) * 9 // 10])
    assert cli.main(["compare", str(tmp_path / "cut.json"), pair[0], "--format", form]) == 3
    assert "The first profile is damaged: what could be read of it is compared." in capsys.readouterr().out


def test_what_is_left_of_the_difference_is_a_row(pair: tuple[str, str], tmp_path: Path):
    made = json.loads(_written(pair, tmp_path))
    made["parts"] = [{**part, "told": False} for part in made["parts"]]
    title, rows = next(comparison._tables(made))
    assert title == "Time per step"
    ((name, _, _, change),) = rows
    assert name == "rest, within noise"
    assert change == comparison._signed(made["step_time"]["difference_ns"])


def _written(pair: tuple[str, str], folder: Path) -> str:
    assert cli.main(["compare", *pair, "--format", "json", "-o", str(folder / "c.json")]) == 0
    return (folder / "c.json").read_text(encoding="utf-8")


def test_conditions_of_the_project_hold_for_one_profile_too(
    pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "pyproject.toml").write_text('[tool.stepscope]\nfail-if = ["step_time > +3%", "input > 5%"]\n')
    monkeypatch.chdir(tmp_path)
    assert cli.main(["diagnose", pair[0]]) == 4
    assert cli.main(["diagnose", pair[1]]) == 0
    assert "--fail-if input > 5%: input is " in capsys.readouterr().err
