"""JAX, TensorFlow 2 and 1, PyTorch/XLA: unedited scripts under ``stepscope run``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

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
        ("jax", "jax_eager.py", "repeated calls"),
        ("jax", "jax_compiled_anew.py", "repeated calls"),
        ("tensorflow", "tf_eager.py", "repeated calls"),
        ("tensorflow", "keras_called.py", "repeated calls"),
    ],
)
def test_steps_are_found_and_recorded(tmp_path: Path, framework: str, name: str, source: str) -> None:
    ran = script(tmp_path, framework, name)
    manifest = ran.manifest
    assert (manifest["framework"], manifest["steps_from"]) == (framework, source)
    assert stepscope.open(ran.profile()).steps["number"].to_list() == ran.steps()
    assert not list(ran.out.glob(".stepscope-*"))
    names = stepscope.open(ran.profile()).trace.table("slices")["name"].cast(str)
    assert names.str.contains(r"\.py\(\d+\)").any() == manifest["switches"]["stacks"]["on"]
    (file,) = manifest["files"]
    if name == "jax_loop.py":  # Its window lasts longest.
        assert {Path(place).name for place, _, _ in file["looks"]["places"]} == {name}
        assert len(stepscope.open(ran.profile()).trace.looks)


def test_a_jax_job_that_compiles_nothing_is_told_to(tmp_path: Path) -> None:
    ran = script(tmp_path, "jax", "jax_eager.py")
    assert ran.stdout.split() == [b"end", b"True"], "gradients of compiled functions are not what they are"
    profile = stepscope.open(ran.profile())
    (first, *_) = profile.diagnosis.findings
    assert first.rule == "running_eagerly"
    assert first.where[0].file == "jax_eager.py"
    assert first.best_step_ns is not None
    assert first.predicted_step_ns is not None
    assert first.best_step_ns < 0.5 * first.predicted_step_ns, "what one program computes of many small ones goes, too"
    places = [place for finding in profile.diagnosis.findings for place in finding.where]
    assert not {place.file for place in places} & {"util.py", "jax_hooks.py"}  # JAX's own and ours.


def test_of_a_host_that_is_steps_ahead_the_devices_work_is_recorded_with_its_launches(tmp_path: Path) -> None:
    """The recording neither begins with what was launched before nor ends before the device has begun its steps."""
    ran = script(tmp_path, "jax", "jax_ahead.py")
    profile = stepscope.open(ran.profile())
    (activity,) = profile.facts.activities
    assert activity.launched.all()
    assert profile.diagnosis.bottleneck == "device"
    assert not profile.diagnosis.findings
    median, ms = profile.facts.median_step_ns, float(ran.stdout.split()[1])
    assert median is not None
    assert 0.4 * ms < median / 1e6 < 2.5 * ms


def test_what_pytorch_xla_counts_is_kept_with_the_profile(tmp_path: Path) -> None:
    ran = script(tmp_path, "torch_xla", "torch_xla_loop.py")
    (file,) = ran.manifest["files"]
    assert (file["steps"], set(file["metrics"])) == (len(ran.steps()), {"before", "after"})
    table = stepscope.open(ran.profile()).trace.table("metrics")
    (row,) = table.filter(name="MarkStep").to_dicts()
    assert row["count_after"] - row["count_before"] == row["steps"] == len(ran.steps())
    assert table.filter(name="CompileTime")["unit"].to_list() == ["ns"]


def test_runs_of_a_session_are_traced_one_by_one(tmp_path: Path) -> None:
    ran = script(tmp_path, "tensorflow", "tf_session.py")
    files = ran.manifest["files"]
    assert (ran.manifest["framework"], len(files)) == ("tensorflow_session", len(ran.steps()))
    for file in files:
        slices = stepscope.open(ran.out / file["path"]).trace.table("slices")
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


def session(framework: str, script: str, *words: object) -> dict[str, Any]:
    """What a script with the session API said."""
    ran = subprocess.run(
        [framework_python(framework), SCRIPTS / script, *map(str, words)],
        capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
        env=environment(PYTHONPATH=str(Path(stepscope.__file__).parents[1])),
    )  # fmt: skip
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert said["declined"] is None
    return said


@pytest.mark.parametrize("framework", ["jax", "tensorflow", "torch_xla"])
def test_annotations_are_ranges_with_metadata_in_every_cycle(tmp_path: Path, framework: str) -> None:
    said = session(framework, "annotated_session.py", framework, tmp_path)
    assert said["ready"] == said["files"]
    for path, last in zip(said["files"], (104, 109), strict=True):
        profile = stepscope.open(path)
        names = profile.trace.table("slices")["name"].cast(str).to_list()
        assert min(names.count("augment"), names.count("inner"), names.count("train")) >= 3
        # Ranges with a step number are steps. Beside the job's thread a profiler may stop a step late.
        within = [number for number in profile.steps["number"].to_list() if number is not None and number <= last]
        assert within[-3:] == [last - 2, last - 1, last]
        assert b"rows_augmented" in Path(path).read_bytes()


def test_tensorboards_folders_hold_the_cycles(tmp_path: Path) -> None:
    said = session("jax", "annotated_session.py", "jax", tmp_path)
    files = [Path(path) for path in said["files"]]
    assert [path.parents[1] for path in files] == [tmp_path / "plugins" / "profile"] * 2
    assert len({path.parent for path in files}) == 2
    (manifest,) = tmp_path.glob("*.stepscope.json")
    assert [tmp_path / file["path"] for file in json.loads(manifest.read_text())["files"]] == files
    assert stepscope.open(tmp_path).source.path == files[-1]


@pytest.mark.parametrize("kind", ["plain", "hooked"])
def test_the_session_api_traces_runs_of_tensorflow_1(tmp_path: Path, kind: str) -> None:
    said = session("tensorflow", "tf_session_api.py", kind, tmp_path)
    assert len(said["files"]) == 2
    assert said["put_back"]
    for path in said["files"]:
        trace = stepscope.open(path).trace
        assert "MatMul" in " ".join(trace.table("slices")["name"].cast(str).to_list())
        assert min(trace.table("memory").height, trace.table("flows").height) > 0
        assert b"transpose_a" in Path(path).read_bytes()  # The graph as it was run.


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
