"""The trainings of examples/ that run on any machine, before and after their cure, with the real PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stepscope
from tests.capture.jobs import Ran, run
from tests.captures.environments import framework_python

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(example: str, out: Path, *options: str) -> Ran:
    """The example under ``stepscope run``."""
    script = EXAMPLES / example / "train.py"
    done = run(out, "--python", framework_python("torch"), "--shapes", script, *options)
    assert (done.status, done.stdout, done.manifest["failures"]) == (0, b"", [])
    return done


def report(done: Ran) -> dict[str, Any]:
    return stepscope.open(done.profile()).document()


def waited(document: dict[str, Any]) -> float:
    """The input's share of the steps between the first and the last."""
    steps = [each for each in document["accounting"] if each["phase"] == "step"][1:-1]
    return float(sum(each["parts"].get("input", 0) for each in steps) / sum(each["dur_ns"] for each in steps))


@pytest.mark.slow
def test_the_input_is_found_and_the_repaired_run_waits_less(tmp_path: Path) -> None:
    before = report(ran("input_bound", tmp_path / "before"))
    after = report(ran("input_bound", tmp_path / "after", "--fixed"))
    first = before["findings"][0]
    assert first["rule"].startswith("input_bound")
    assert "fetch" in str(first)
    assert waited(before) > 0.4
    assert waited(after) < waited(before)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["launch_bound", "mixed_precision"])
@pytest.mark.parametrize("options", [(), ("--fixed",)])
def test_without_a_device_nothing_is_said_of_one(tmp_path: Path, example: str, options: tuple[str, ...]) -> None:
    document = report(ran(example, tmp_path, *options))
    rules = {finding["rule"] for finding in document["findings"]}
    assert not {"launch_bound", "tensor_cores", "tf32_off", "amp_partial"} & rules
