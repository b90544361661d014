"""Lightning, Hugging Face and Keras, the real libraries: our callbacks, and ``stepscope run`` without them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import stepscope
from tests.capture.jobs import SCRIPTS, TIMEOUT_S, environment, run
from tests.captures.environments import framework_python

SOURCE = Path(stepscope.__file__).parents[1]

JOBS = {
    "lightning, two batches a step": ("integrations", "lightning_fit.py", ["accumulating"], 1),
    "lightning, two optimizers": ("integrations", "lightning_fit.py", ["adversarial"], 2),
    "huggingface, two batches a step": ("integrations", "huggingface_train.py", [], 1),
    "keras": ("tensorflow", "keras_callback.py", [], 0),
}
"""Job -> framework, script, arguments, optimizer steps of a step that PyTorch records."""


def optimizer_steps(profile: stepscope.Profile) -> int:
    names = profile.trace.table("slices")["name"].cast(pl.String)
    return int(names.str.starts_with("Optimizer.step#").sum())


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_callback_records_whole_steps(tmp_path: Path, job: str) -> None:
    framework, script, words, optimizers = JOBS[job]
    ran = subprocess.run(
        [framework_python(framework), SCRIPTS / script, *words, tmp_path / "out"],
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S, cwd=tmp_path,
        env=environment(PYTHONPATH=str(SOURCE)),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    ((files, declined),) = json.loads(ran.stdout.splitlines()[-1].removeprefix("end "))
    assert declined is None
    profile = stepscope.open(files[0])
    assert profile.steps["number"].to_list() == [5, 6, 7, 8]
    assert optimizer_steps(profile) == 4 * optimizers


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_steps_of_libraries_are_found(tmp_path: Path, job: str) -> None:
    framework, script, words, optimizers = JOBS[job]
    python = framework_python(framework)
    ran = run(tmp_path, "--python", python, "--no-stacks", "--active", 6, SCRIPTS / script, *words)
    assert (ran.status, ran.stdout.splitlines()[-1]) == (0, b"end []"), ran.stderr
    manifest = ran.manifest
    assert manifest["failures"] == []
    assert manifest["steps_from"] == ("optimizer steps" if optimizers else "Keras batches")
    profile = stepscope.open(ran.profile())
    assert profile.steps["number"].to_list() == ran.steps()
    assert optimizer_steps(profile) == len(ran.steps()) * optimizers


@pytest.mark.slow
def test_steps_of_keras_on_pytorch_are_found(tmp_path: Path) -> None:
    """Its optimizers are not PyTorch's."""
    ran = run(
        tmp_path, "--python", framework_python("integrations"), "--no-stacks", SCRIPTS / "keras_callback.py",
        env=environment(KERAS_BACKEND="torch"),
    )  # fmt: skip
    assert (ran.manifest["framework"], ran.manifest["steps_from"]) == ("torch", "Keras batches")
    assert stepscope.open(ran.profile()).steps["number"].to_list() == ran.steps()


FAKE_KERAS = """
import sys, types
keras = sys.modules["keras"] = types.ModuleType("keras")
keras.callbacks = types.SimpleNamespace(Callback=object)
keras.backend = types.SimpleNamespace(backend=lambda: "none")
from stepscope.integrations.keras import ProfileCallback
callback = ProfileCallback(sys.argv[1])
callback.on_train_batch_end(0)
callback.on_train_begin()
callback.on_train_begin()
for number in range(9):
    callback.on_train_batch_end(number)
print(callback.recording.session.declined)
"""


def test_a_training_that_never_ends_leaves_a_manifest_too(tmp_path: Path) -> None:
    """Keras does not say that ``fit`` raised; a second ``fit`` ends the first one's session."""
    ran = subprocess.run(
        [sys.executable, "-c", FAKE_KERAS, tmp_path], capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    assert ran.stdout.startswith("there is no framework 'none' to record: torch_xla, torch")
    left = [json.loads(path.read_text()) for path in tmp_path.glob("*.stepscope.json")]
    assert sorted(manifest["steps_seen"] for manifest in left) == [0, 9]


@pytest.mark.slow
def test_a_library_that_is_missing_is_named() -> None:
    code = "import sys; sys.modules['transformers'] = None\nimport stepscope.integrations.huggingface"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "import of transformers halted" in ran.stderr
