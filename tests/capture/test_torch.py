"""The real PyTorch: unedited scripts, ranks, other profilers, and the session API."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from tests.capture.jobs import SCRIPTS, TIMEOUT_S, Ran, environment, run
from tests.captures.environments import framework_python

SOURCE = Path(stepscope.__file__).parents[1]


def torch_loop(out: Path, kind: str, steps: int, *options: str) -> Ran:
    python = framework_python("torch")
    return run(out, "--python", python, *options, SCRIPTS / "torch_loop.py", kind, steps, stdin=b"in")


def step_numbers(path: Path) -> list[int]:
    numbers: list[int] = stepscope.open(path).steps["number"].to_list()
    return numbers


@pytest.mark.slow
def test_an_unedited_script_is_recorded_and_diagnosed(tmp_path: Path) -> None:
    ran = torch_loop(tmp_path, "plain", 40)
    untouched = subprocess.run(
        [framework_python("torch"), SCRIPTS / "torch_loop.py", "plain", "40"],
        input=b"in", capture_output=True, check=True, env=environment(), timeout=TIMEOUT_S,
    )  # fmt: skip
    assert (ran.status, ran.stdout) == (0, untouched.stdout)
    manifest = ran.manifest
    steps = ran.steps()
    assert step_numbers(ran.profile()) == steps
    assert (manifest["steps_from"], manifest["failures"], manifest["phase"]) == ("optimizer steps", [], "done")
    assert manifest["step_ns"]["recorded"] > 0 < manifest["step_ns"]["unrecorded"]
    assert manifest["switches"]["stacks"]["on"]
    assert list(manifest["parameters"]) == ["float32"]
    assert manifest["machine"]["threads"] is not None
    names = stepscope.open(ran.profile()).trace.table("slices")["name"].cast(pl.String)
    assert names.str.contains("torch_loop.py").any()
    assert "step time" in ran.stderr
    # A machine without a GPU is no profile in which one is missing.
    document = stepscope.open(ran.profile()).document()
    assert document["profile"]["accelerators"] == 0
    assert "· PyTorch · on the CPU ·" in ran.stderr
    assert "On the CPU: the " in ran.stderr
    assert "device" not in ran.stderr.split("1. ")[0]
    assert f"steps {steps[0]} to {steps[-1]} were recorded; a step took" in ran.stderr
    assert str(ran.profile()) in ran.stderr
    left = {path.suffix for path in ran.out.iterdir()}
    assert left == {".gz", ".json", ".html", ".txt"}


@pytest.mark.slow
@pytest.mark.parametrize("level", ["", "5"])
def test_what_kineto_logs_stands_in_the_jobs_output_only_where_it_asks_for_it(tmp_path: Path, level: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, runpy, sys\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "print('level', os.environ.get('KINETO_LOG_LEVEL'), file=sys.stderr)\n"
    )
    python = framework_python("torch")
    given = {"KINETO_LOG_LEVEL": level} if level else {}
    ran = subprocess.run(
        [sys.executable, "-m", "stepscope", "run", "-o", tmp_path / "out", "--python", python, script,
         SCRIPTS / "torch_loop.py", "plain", "40"],
        input=b"in", capture_output=True, check=True, env=environment() | given, timeout=TIMEOUT_S,
    )  # fmt: skip
    told = ran.stderr.decode()
    assert ("profiler_start" in told, f"level {level or None}" in told) == (bool(level), True)
    assert list((tmp_path / "out").rglob("*.trace.json.gz"))


def test_two_optimizers_and_accumulation_are_one_step(tmp_path: Path) -> None:
    ran = torch_loop(tmp_path, "adversarial", 40, "--no-stacks")
    profile = stepscope.open(ran.profile())
    names = profile.trace.table("slices")["name"].cast(pl.String)
    assert (names == "Optimizer.step#SGD.step").sum() == len(ran.steps())
    assert profile.steps["number"].to_list() == ran.steps()


@pytest.mark.slow
def test_optimizers_that_are_made_anew_for_the_same_parameters_are_one(tmp_path: Path) -> None:
    ran = torch_loop(tmp_path, "anew", 40, "--no-stacks")
    assert (ran.manifest["steps_from"], len(ran.steps())) == ("optimizer steps", 20)


@pytest.mark.slow
def test_too_few_steps_leave_a_sentence(tmp_path: Path) -> None:
    ran = torch_loop(tmp_path, "plain", 4)
    assert ran.status == 0
    assert "no profile was written because fewer than 12 steps ran (4 did)" in ran.stderr
    assert ran.manifest["files"] == []


@pytest.mark.slow
def test_a_profile_that_is_too_large_leaves_a_sentence(tmp_path: Path) -> None:
    ran = torch_loop(tmp_path, "plain", 40, "--max-bytes", "1000", "--no-stacks")
    assert ran.status == 0
    assert re.search(r"no profile was written because the profile had \d+ bytes, more than 1000", ran.stderr)
    assert [path.suffix for path in ran.out.iterdir()] == [".json"]
    assert ran.manifest["files"] == []


@pytest.mark.slow
def test_what_does_not_start_is_recorded_with_less(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import runpy, sys, torch\n"
        "starts = torch.profiler.profile.start\n"
        "def fails(self):\n"
        "    if self.with_stack:\n"
        "        raise RuntimeError('no room for stacks')\n"
        "    starts(self)\n"
        "torch.profiler.profile.start = fails\n"
        f"sys.argv = ['torch_loop.py', 'plain', '40']\n"
        f"runpy.run_path({str(SCRIPTS / 'torch_loop.py')!r})\n"
    )
    ran = run(tmp_path / "out", "--python", framework_python("torch"), script)
    assert ran.status == 0
    assert step_numbers(ran.profile()) == ran.steps()
    said = " ".join(ran.stderr.split())
    reason = "(RuntimeError: no room for stacks)"
    assert f"! Recorded without stacks: with them the profiler did not start {reason}." in said
    assert "starting the profiler: RuntimeError: no room for stacks" in said


@pytest.mark.slow
@pytest.mark.parametrize("skip", [6, 8, 9])
def test_the_scripts_own_profiler_gets_its_events(tmp_path: Path, skip: int) -> None:
    """Two sessions at once would take the process down when the first is exported. The job's own begins in step 9 while
    ours records, has just begun, or warms up: step times decide which."""
    ran = torch_loop(tmp_path, "own_profiler", 30, "--skip", str(skip), "--active", "20", "--no-stacks")
    assert (ran.status, ran.stdout.splitlines()[0], ran.manifest["failures"]) == (0, b"4", [])
    window = ran.manifest["window"]
    if window and window["first_step"] <= 9:  # A window that begins later is in nobody's way.
        assert window["ended"] == "the job started its own profiler"


@pytest.mark.slow
def test_a_step_that_does_not_end_is_recorded_no_further(tmp_path: Path) -> None:
    ran = torch_loop(tmp_path, "endless", 100, "--max-seconds", "0.4", "--no-stacks")
    assert ran.status == 0
    window = ran.manifest["window"]
    assert (window["steps"], window["ended"]) == (0, "no step ended within 2 s")
    assert "; no step ended within 2 s" in ran.stderr
    assert "Recording ended early: no step ended within 2 s." in " ".join(ran.stderr.split())
    assert stepscope.open(ran.profile()).document()["accounting"]


@pytest.mark.slow
def test_models_that_are_only_called_have_steps(tmp_path: Path) -> None:
    ran = run(tmp_path, "--python", framework_python("torch"), "--no-stacks", SCRIPTS / "torch_infer.py", 60)
    assert ran.status == 0
    assert ran.manifest["steps_from"] == "repeated calls"
    assert step_numbers(ran.profile()) == ran.steps()


def assert_two_ranks(ran: Ran, ranks: list[int | None]) -> None:
    assert ran.status == 0, ran.stderr
    trained = [manifest for manifest in ran.manifests if manifest["steps_seen"]]
    assert sorted(manifest["rank"] for manifest in trained) == ranks
    files = [file["path"] for manifest in trained for file in manifest["files"]]
    assert len(set(files)) == 2
    for file in files:
        profile = stepscope.open(ran.out / file)
        assert profile.steps.height >= 6
        assert profile.document()["profile"]["ranks"] == [profile.trace.info.rank]


@pytest.mark.slow
def test_each_rank_of_torchrun_leaves_a_profile(tmp_path: Path) -> None:
    torchrun = framework_python("torch").with_name("torchrun")
    words = (torchrun, "--nproc-per-node", 2, "--master-addr", "127.0.0.1", "--master-port", free_port())
    ran = run(tmp_path, *words, SCRIPTS / "torch_ranks.py")
    assert_two_ranks(ran, [0, 1])
    assert len(ran.manifests) == 2  # The launcher, which imports PyTorch too, leaves none.
    assert "the same with the traces, for a browser: " in ran.stderr


@pytest.mark.slow
def test_each_spawned_rank_leaves_a_profile(tmp_path: Path) -> None:
    words = ("--python", framework_python("torch"), SCRIPTS / "torch_ranks.py", "spawn")
    assert_two_ranks(run(tmp_path, *words, env=environment(FREE_PORT=str(free_port()))), [0, 1])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script with the session API said; ``out`` is its folder."""
    out = tmp_path_factory.mktemp("session")
    ran = subprocess.run(
        [framework_python("torch"), SCRIPTS / "torch_session.py", out],
        capture_output=True, text=True, check=True, timeout=TIMEOUT_S, env=environment(PYTHONPATH=str(SOURCE)),
    )  # fmt: skip
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return {**said, "out": out, "stderr": ran.stderr}


@pytest.mark.slow
def test_a_session_writes_a_profile_per_cycle(session: dict[str, Any]) -> None:
    first, second = map(Path, session["files"])
    assert session["ready"] == session["files"]
    assert step_numbers(first) == [103, 104, 105]
    assert step_numbers(second) == [109, 110, 111]


@pytest.mark.slow
def test_annotations_are_ranges_of_the_profile(session: dict[str, Any]) -> None:
    slices = stepscope.open(session["files"][0]).trace.table("slices")
    names = slices["name"].cast(pl.String).to_list()
    assert (names.count("train_step"), names.count("load_batch")) == (3, 3)


@pytest.mark.slow
def test_other_profilers_are_declined_with_a_sentence(session: dict[str, Any]) -> None:
    own, nested, foreign = session["declined"]
    assert own is None
    assert nested == "another stepscope profile records in this process; only one can at a time"
    assert foreign == "another PyTorch profiler was at work in this process; only one can record at a time"
    assert f"stepscope: nothing more is recorded: {foreign}" in session["stderr"]


@pytest.mark.slow
def test_a_session_that_was_too_short_says_so(session: dict[str, Any]) -> None:
    said = [json.loads(path.read_text())["no_profile"] for path in session["out"].glob("*.stepscope.json")]
    why = "only 1 step ended (stepscope.step()), and recording begins after 51"
    assert why in said
    assert f"stepscope: no profile was written because {why}" in session["stderr"]


@pytest.mark.slow
def test_the_scripts_own_step_calls_count_under_run(tmp_path: Path) -> None:
    """The injected package and the one that the script imports are two copies with one recorder."""
    script = tmp_path / "train.py"
    script.write_text(
        "import torch, stepscope\n"
        "for number in range(100, 160):\n"
        "    torch.ones(64, 64) @ torch.ones(64, 64)\n"
        "    stepscope.step(number)\n"
    )
    python = framework_python("torch")
    ran = run(tmp_path / "out", "--python", python, "--no-stacks", script, env=environment(PYTHONPATH=str(SOURCE)))
    assert ran.status == 0
    assert ran.manifest["steps_from"] == "stepscope.step"
    assert step_numbers(ran.profile())[0] == ran.manifest["window"]["first_step"] > 100
