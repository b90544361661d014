"""JAX, TensorFlow 2 and 1, PyTorch/XLA: unedited scripts under ``stepscope run``."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from tests.capture.jobs import SCRIPTS, Ran, run
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
        ("tensorflow", "keras_fit.py", "repeated calls"),
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
