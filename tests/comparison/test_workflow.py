"""The GitHub workflow of the guide: valid YAML whose commands run, and fail where the step is slower."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli.run import run

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which Dask brings")

ROOT = Path(__file__).parents[2]
PROFILES = ROOT / "examples/profiles"


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    text = (ROOT / "docs/guides/compare.md").read_text(encoding="utf-8")
    found: dict[Any, Any] = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    return found


def commands(workflow: dict[Any, Any]) -> list[str]:
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def test_it_is_a_workflow(workflow: dict[Any, Any]) -> None:
    assert workflow[True] == "pull_request"  # YAML 1.1 reads "on" so, GitHub does not
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_the_options_it_records_with_exist(workflow: dict[Any, Any]) -> None:
    (line,) = [one for one in commands(workflow) if one.startswith("stepscope run ")]
    known = {name for parameter in run.params for name in parameter.opts}
    assert {word for word in line.split("train.py")[0].split() if word.startswith("-")} <= known


@pytest.mark.parametrize(
    ("before", "after", "status", "words"),
    [
        ("simulated_masked_loss_before", "simulated_masked_loss_after", 0, ""),
        ("simulated_masked_loss_after", "simulated_masked_loss_before", 4, "step_time changed by +"),
        pytest.param(
            "cpu_input_fixed",
            "cpu_input_fixed",
            4,
            "--fail-if step_time > +3%: cannot be checked: ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_its_gate(workflow: dict[Any, Any], before: str, after: str, status: int, words: str, tmp_path: Path) -> None:
    (line,) = [one for one in commands(workflow) if one.startswith("stepscope compare ")]
    for folder, name in (("baseline", before), ("profiles", after)):
        (tmp_path / folder).mkdir()
        shutil.copy(PROFILES / f"{name}.json.gz", tmp_path / folder)
    command = f"{sys.executable} -m {line}"
    summary = tmp_path / "summary.md"
    environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary)}
    done = subprocess.run(
        ["bash", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, words in done.stderr) == (status, True), done.stderr
    assert "step" in summary.read_text(encoding="utf-8")
