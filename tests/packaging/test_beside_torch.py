"""Stepscope beside the oldest and the newest PyTorch supported: they stay what they were, and jobs are recorded."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.capture.jobs import SCRIPTS, TIMEOUT_S, Ran, environment, run
from tests.captures.environments import framework_python, site_packages

import stepscope

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("torch", ["torch_oldest", "torch"])]

VERSIONS = "import json, numpy, torch; print(json.dumps([torch.__version__, numpy.__version__, numpy.__file__]))"


def versions(python: Path) -> list[str]:
    found: list[str] = json.loads(subprocess.check_output([python, "-c", VERSIONS], text=True, timeout=TIMEOUT_S))
    return found


def assert_recorded(ran: Ran) -> None:
    assert ran.status == 0, ran.stderr
    assert "step time" in ran.stderr
    assert ran.manifest["failures"] == []
    assert stepscope.open(ran.profile()).steps["number"].to_list() == ran.steps()


def test_installed_beside_it_changes_no_versions(torch: str, wheel: Path, tmp_path: Path) -> None:
    below = framework_python(torch)
    subprocess.run([below, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site_packages(python) / "below.pth").write_text(f"{site_packages(below)}\n", encoding="utf-8")
    before = versions(python)
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, env=environment())
    assert versions(python) == before
    out = tmp_path / "out"
    ran = subprocess.run(
        [python.with_name("stepscope"), "run", "--out", out, SCRIPTS / "torch_loop.py", "plain", "40"],
        input=b"", capture_output=True, check=False, timeout=TIMEOUT_S, env=environment(),
    )  # fmt: skip
    assert_recorded(Ran(ran.returncode, ran.stdout, ran.stderr.decode(), out / "run-1"))


@pytest.mark.parametrize("script", [("torch_loop.py", "plain", 40), ("torch_infer.py", 60)])
def test_a_tool_that_is_elsewhere_records_its_jobs(torch: str, script: tuple[object, ...], tmp_path: Path) -> None:
    name, *words = script
    assert_recorded(run(tmp_path, "--python", framework_python(torch), SCRIPTS / str(name), *words))
