"""What is said of a benchmark that became slower; the benchmark itself is a stage of .ci/run."""

from __future__ import annotations

import importlib.util
import json
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
    spec.loader.exec_module(module)
    return module


def test_only_what_is_slower_by_more_than_the_margin_has_slipped(slips):
    last = {"tiny": 10.0, "middle": 6.0}
    assert slips.slipped({"tiny": 11.4, "middle": 5.0, "new": 99.0}, last, 1.15) == []
    (told,) = slips.slipped({"tiny": 11.6, "middle": 6.0}, last, 1.15)
    assert told == "tiny: 11.60 times its yardstick; the last release took 10.00"


def test_the_history_has_a_ratio_for_every_input_of_the_short_run(slips):
    for line in slips.HISTORY.read_text().splitlines():
        assert set(slips.SHORT) <= set(json.loads(line)["ratios"]) <= set(slips.SHORT | slips.LONG)


def test_what_is_measured_is_a_profile_with_steps_and_findings(slips, tmp_path, capsys):
    slips.profile(tmp_path / "made.json", 40)
    assert cli.main(["diagnose", "--format", "json", str(tmp_path / "made.json")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["steps"]) == 20
    assert document["findings"]
