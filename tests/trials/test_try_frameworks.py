"""``stepscope try`` with real JAX, TensorFlow and Keras: cures of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.captures.environments import framework_python
from tests.trials.tried import SCRIPTS, TIMEOUT_S, environment, trial, tried

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("framework", "script", "cure", "share", "function", "diff"),
    [
        ("jax", "jax_loop.py", "jax-jit", 0.5, "update", "+@jax.jit"),
        ("tensorflow", "keras_fit.py", "keras-steps-per-execution=16", 0.8, "main", "steps_per_execution=16)"),
        ("tensorflow", "tf_loop.py", "tf-parallel-map", 0.9, "main", "num_parallel_calls=tf.data.AUTOTUNE)"),
    ],
)
def test_cures_of_other_frameworks_help_and_are_written_where_they_belong(
    framework: str, script: str, cure: str, share: float, function: str, diff: str, tmp_path: Path
) -> None:
    shutil.copy(SCRIPTS / script, tmp_path)
    arguments = ("--cure", cure, "--steps", "100", "--format", "json", script)
    document = json.loads(tried(tmp_path, *arguments, framework=framework).stdout)
    row = trial(document, cure)
    assert row["verdict"] in ("helps", "unknown")  # A machine with much else to do cannot tell.
    assert row["measured"]["after_ns"] < share * row["measured"]["before_ns"]
    assert row["values"]["outcome"] in ("equal", "rounding")
    assert row["places"][0]["function"] == function
    assert row["verdict"] == "unknown" or diff in document["patch"]["diff"]


def test_arguments_of_jax_that_are_read_again_are_not_given_away(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "jax_loop.py", tmp_path)
    arguments = ("--cure", "jax-donation", "--steps", "20", "--format", "json", "jax_loop.py")
    document = json.loads(tried(tmp_path, *arguments, framework="jax").stdout)
    row = trial(document, "jax-donation")
    assert (row["verdict"], document["keep"]) == ("failed", [])
    assert "deleted or donated" in row["why"]


def test_steps_of_jax_that_nothing_waits_for_are_timed_until_they_are_computed(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "jax_behind.py", tmp_path)
    arguments = ("--cure", "garbage", "--steps", "20", "--budget", "30s", "--format", "json", "jax_behind.py")
    ran = tried(tmp_path, *arguments, framework="jax")
    measured = trial(json.loads(ran.stdout), "garbage")["measured"]
    assert measured["before_ns"] > 2_000_000  # A call comes back within 0.1 ms, and asks for 10 ms of work.


def test_keras_on_pytorch_has_the_cures_of_keras(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "keras_fit.py", tmp_path)
    python = str(framework_python("integrations"))
    ran = subprocess.run(
        [sys.executable, "-m", "stepscope", "try", "--budget", "40s", "--format", "json", "--", python, "keras_fit.py"],
        cwd=tmp_path, env=environment() | {"KERAS_BACKEND": "torch"}, capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = {row["name"]: row for row in json.loads(ran.stdout)["trials"]}
    assert {"keras-jit", "keras-steps-per-execution=4", "compile"} <= set(rows)
    several = rows["keras-steps-per-execution=4"]
    assert (several["verdict"], several["why"]) == ("refused", "Keras runs batches one by one where PyTorch computes")
