"""JAX, TensorFlow 2 and 1, PyTorch/XLA: unedited scripts under ``stepscope run``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import stepscope
from tests.capture.jobs import SCRIPTS, TIMEOUT_S, Ran, environment, run
from tests.captures.environments import framework_python

pytestmark = pytest.mark.slow
STEPS = 60


def script(out: Path, framework: str, name: str) -> Ran:
    ran = run(out, "--python", framework_python(framework), SCRIPTS / name, STEPS)
    assert ran.status == 0, ran.stderr
    assert ran.stdout.split()[0] == b"end"
    assert ran.manifest["failures"] == []
    return ran


@pytest.mark.parametrize(
    ("framework", "name", "source"),
    [
        ("jax", "jax_loop.py", "repeated calls"),
        ("tensorflow", "keras_fit.py", "Keras batches"),
        ("torch_xla", "torch_xla_loop.py", "optimizer steps"),
    ],
)
def test_steps_are_found_and_recorded(tmp_path: Path, framework: str, name: str, source: str) -> None:
    ran = script(tmp_path, framework, name)
    manifest = ran.manifest
    first = manifest["window"]["first_step"]
    assert (manifest["framework"], manifest["steps_from"]) == (framework, source)
    assert stepscope.open(ran.profile()).steps["number"].to_list() == list(range(first, first + 6))
    assert not list(tmp_path.glob(".stepscope-*"))


def test_runs_of_a_session_are_traced_one_by_one(tmp_path: Path) -> None:
    ran = script(tmp_path, "tensorflow", "tf_session.py")
    files = ran.manifest["files"]
    assert (ran.manifest["framework"], len(files)) == ("tensorflow_session", 6)
    for file in files:
        slices = stepscope.open(tmp_path / file["path"]).trace.table("slices")
        assert "MatMul" in " ".join(slices["name"].cast(str).to_list())


def test_a_session_of_jax_has_its_steps_and_makes_way(tmp_path: Path) -> None:
    """The script's own ``start_trace`` within the session would raise beside ours."""
    source = str(Path(stepscope.__file__).parents[1])
    ran = subprocess.run(
        [framework_python("jax"), SCRIPTS / "jax_session.py", tmp_path / "out", tmp_path / "own"],
        capture_output=True, text=True, check=True, timeout=TIMEOUT_S, env=environment(PYTHONPATH=source),
    )  # fmt: skip
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["declined"] == "the script started a profiler of its own within stepscope.profile"
    assert list((tmp_path / "own").rglob("*.xplane.pb"))
    profile = stepscope.open(said["files"][0])
    assert profile.steps["number"].to_list() == [2, 3, 4, 5]
    names = profile.trace.table("slices")["name"].cast(str)
    assert (names == "load_batch").sum() >= 4


@pytest.mark.parametrize("experiment", ["no-callbacks", "synthetic-input"])
def test_experiments_on_keras(tmp_path: Path, experiment: str) -> None:
    python = framework_python("tensorflow")
    words = ("--python", python, "--no-stacks", SCRIPTS / "keras_slow.py", STEPS)
    plain, changed = run(tmp_path, *words), run(tmp_path, "--experiment", experiment, *words)
    assert (plain.stdout, changed.stdout) == (b"end 1\n", b"end 1\n")
    assert f"stepscope: experiment {experiment}: a step took" in changed.stderr
    applied = [each["experiment"]["applied"] for each in changed.manifests if "experiment" in each]
    assert applied
    assert min(applied) >= 1  # Keras iterates a dataset twice.
