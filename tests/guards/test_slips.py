"""What is said of a benchmark that became slower; the benchmark itself is a stage of .ci/run."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stepscope import cli


@pytest.fixture(scope="module")
def slips(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("slips", root / "benchmarks" / "slips.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.syspath_prepend(str(root / "benchmarks"))  # As where it is run.
    monkeypatch.setitem(sys.modules, "slips", module)
    spec.loader.exec_module(module)
    monkeypatch.undo()
    return module


def test_only_what_is_slower_by_more_than_the_margin_has_slipped(slips):
    last = {"tiny": 10.0, "middle": 6.0}
    assert slips.slipped({"tiny": 11.4, "middle": 5.0, "new": 99.0}, last, lambda _: 1.15) == []
    (told,) = slips.slipped({"tiny": 11.6, "middle": 6.0}, last, lambda _: 1.15)
    assert told == "tiny: 11.60 times its yardstick; the last release took 10.00"


def test_counted_work_fails_at_fifteen_percent_and_time_on_any_machine_at_half(slips, monkeypatch):
    monkeypatch.setattr(slips.shutil, "which", lambda _: "/usr/bin/valgrind")
    assert slips.margin("tiny", short=True) == slips.margin("middle", short=False) == 1.15
    assert slips.margin("middle", short=True) == 1.5
    monkeypatch.setattr(slips.shutil, "which", lambda _: None)
    assert slips.margin("tiny", short=True) == 1.5


def test_the_newest_of_the_history_has_a_ratio_for_every_command_of_the_short_run(slips):
    lines = [json.loads(line)["ratios"] for line in slips.HISTORY.read_text().splitlines()]
    assert set(slips.SHORT) <= set(lines[-1])
    assert all(set(ratios) <= set(slips.SHORT | slips.LONG) for ratios in lines)


def test_what_is_measured_is_a_profile_with_steps_and_findings(slips, tmp_path, capsys):
    slips.profile(tmp_path / "made.json", 40)
    assert cli.main(["diagnose", "--format", "json", str(tmp_path / "made.json")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["steps"]) == 20
    assert document["findings"]
