"""``stepscope try`` with real PyTorch: jobs whose cures are known."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import stepscope
from tests.captures.environments import framework_python

SCRIPTS = Path(__file__).parent / "scripts"
NEWCOMERS = Path(__file__).parents[1] / "newcomer" / "scripts"
SOURCES = Path(stepscope.__file__).parents[1]
TIMEOUT_S = 300
pytestmark = pytest.mark.slow


def command(*arguments: str | Path, framework: str = "torch") -> list[str]:
    python = framework_python(framework)
    return [sys.executable, "-m", "stepscope", "try", "--python", str(python), *map(str, arguments)]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SOURCES), "CUDA_VISIBLE_DEVICES": ""}


def tried(
    folder: Path, *arguments: str | Path, status: int = 0, framework: str = "torch"
) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        command(*arguments, framework=framework),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    return ran


def trial(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in document["trials"] if row["name"] == name)


def step_ms(script: Path) -> float:
    ran = subprocess.run(
        [framework_python("torch"), script, "--short"], capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    return float(re.findall(r"step_ms ([0-9.]+)", ran.stdout)[-1])


def test_a_cure_that_helps_is_measured_and_its_patch_has_the_same_effect(tmp_path: Path) -> None:
    script = Path(shutil.copy(SCRIPTS / "loader.py", tmp_path))
    as_it_is = step_ms(script)
    arguments = ("--cure", "workers=2", "--cure", "channels-last", "--steps", "20", "-o", "try.json", "--apply")
    ran = tried(tmp_path, *arguments, "loader.py")
    document = json.loads((tmp_path / "try.json").read_text(encoding="utf-8"))
    workers, refused = trial(document, "workers=2"), trial(document, "channels-last")
    assert workers["verdict"] == "helps"
    measured = workers["measured"]
    assert 0.35 < measured["after_ns"] / measured["before_ns"] < 0.75  # Two wait at once where one did.
    assert measured["least_saving_ns"] <= measured["saving_ns"] <= measured["most_saving_ns"]
    assert (workers["values"]["outcome"], workers["values"]["steps"] >= 20) == ("equal", True)
    assert [place["function"] for place in workers["places"]] == ["main"]
    assert workers["findings"] == ["input_bound.1"]
    assert (refused["verdict"], refused["why"]) == ("refused", "the model has no two-dimensional convolution")
    assert document["keep"] == ["workers=2"]
    assert "batch_size=8, num_workers=2, persistent_workers=True)" in script.read_text(encoding="utf-8")
    assert "changed" in ran.stderr
    assert step_ms(script) < 0.75 * as_it_is
    again = json.loads(tried(tmp_path, "--cure", "workers=2", "--steps", "10", "--format", "json", "loader.py").stdout)
    assert trial(again, "workers=2")["why"] == "the loader has 2 workers already"
    assert again["keep"] == []


def test_batches_made_ahead_are_tried_with_the_workers_that_help(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "loader.py", tmp_path)
    arguments = ("--cure", "workers=2", "--cure", "prefetch", "--steps", "20", "--format", "json", "loader.py")
    document = json.loads(tried(tmp_path, *arguments).stdout)
    both = trial(document, "workers=2+prefetch=4")
    assert both["measured"]["after_ns"] < 0.75 * both["measured"]["before_ns"]
    assert (trial(document, "prefetch=4")["why"], document["keep"][0]) == ("the loader has no workers", "workers=2")


def test_half_precision_scales_losses_and_clips_what_gradients_are(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "clipped.py", tmp_path)
    arguments = ("--cure", "fp16", "--steps", "20", "--budget", "60s", "--format", "json", "clipped.py")
    document = json.loads(tried(tmp_path, *arguments).stdout)
    row = trial(document, "fp16")
    assert row["values"]["outcome"] == "differs"
    assert 1e-4 < row["values"]["largest"] < 0.03  # 0.07 where scaled gradients are clipped, 0.5 where steps are lost.
    assert row["places"][0]["function"] == "main"


def test_a_job_that_writes_to_a_fixed_place_is_not_tried_unless_told(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "checkpoints.py", tmp_path)
    stopped = tried(tmp_path, "--cure", "garbage", "--steps", "5", "checkpoints.py", status=2)
    assert "every trial would write again" in stopped.stderr
    assert str(tmp_path / "saved" / "model.pt") in stopped.stderr
    shutil.rmtree(tmp_path / "saved")
    arguments = ("--scratch", "scratch", "--keep", "saved", "--cure", "garbage", "--steps", "5", "--format", "json")
    document = json.loads(tried(tmp_path, *arguments, "checkpoints.py").stdout)
    assert trial(document, "garbage")["measured"] is not None
    assert not (tmp_path / "saved").exists()
    assert (tmp_path / "scratch" / "recorded" / "0-saved" / "model.pt").exists()


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal")
def test_an_interrupt_tells_what_is_known(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "loader.py", tmp_path)
    arguments = command("--cure", "workers=2", "--cure", "garbage", "--steps", "20", "loader.py")
    with subprocess.Popen(
        arguments, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stderr is not None
        for line in job.stderr:
            if "workers=2" in line:
                time.sleep(0.5)
                job.send_signal(signal.SIGINT)
                break
        out, _ = job.communicate(timeout=TIMEOUT_S)
    assert job.returncode == 0
    assert "Trials ended early: it was interrupted." in out
    assert "workers=2" in out


def test_a_command_without_steps_says_why(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nraise SystemExit('no data')\n", encoding="utf-8")
    ran = tried(tmp_path, "train.py", status=1)
    assert "nothing can be tried" in ran.stderr
    assert "Traceback" not in ran.stderr


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


def test_batch_sizes_are_compared_by_time_per_sample(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "batches.py", tmp_path)
    arguments = ("--batch-arg", "--batch-size", "--steps", "20", "--format", "json", "batches.py", "--batch-size", "4")
    document = json.loads(tried(tmp_path, *arguments).stdout)
    rows = {row["name"]: row for row in document["trials"]}
    assert next(iter(rows)) == "--batch-size=32"  # 4 ms for each step whatever it holds.
    measured = rows["--batch-size=32"]["measured"]
    assert measured["after_ns"] < 0.3 * measured["before_ns"]
    assert rows["--batch-size=2"]["measured"]["saving_ns"] < 0
    assert document["keep"] == ["--batch-size=32"]


@pytest.mark.parametrize(
    ("framework", "launcher", "script", "cure", "place"),
    [
        ("integrations", (), "hf_trainer.py", "workers=1", None),  # The Trainer makes the loader.
        ("integrations", (), "lightning_callback.py", "garbage", None),
        ("integrations", ("-m", "accelerate.commands.launch", "--cpu"), "accelerated.py", "set-to-none", None),
        ("torch", ("-m", "torch.distributed.run", "--nproc-per-node", "2"), "slow_rank.py", "static-graph", "main"),
        ("torch", ("-m", "torch.distributed.run", "--nproc-per-node", "2"), "accumulated.py", "no-sync", None),
    ],
)
def test_jobs_of_launchers_and_trainers_are_tried_as_they_are_started(
    framework: str, launcher: tuple[str, ...], script: str, cure: str, place: str | None, tmp_path: Path
) -> None:
    folder = SCRIPTS if (SCRIPTS / script).exists() else NEWCOMERS
    shutil.copy(folder / script, tmp_path)
    python = str(framework_python(framework))
    arguments = ("--cure", cure, "--steps", "10", "--writes-again", "--format", "json", "--", python, *launcher, script)
    ran = subprocess.run(
        [sys.executable, "-m", "stepscope", "try", *arguments],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    row = trial(document, cure)
    assert row["verdict"] in ("helps", "hurts", "nothing", "unknown"), row["why"]
    assert row["measured"]["after_ns"] > 0
    if script == "lightning_callback.py":  # A value read in each step.
        (told,) = [each for each in document["findings_without_cure"] if each["finding"].startswith("callback_time")]
        assert "needs the value at once" in told["why"]
    assert {at["function"] for at in row["places"]} == ({place} if place else set())


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


@pytest.mark.timed
@pytest.mark.parametrize(
    ("script", "cure", "steps", "least", "most"),
    [
        ("chain.py", "compile", 40, 0.0, 0.8),
        ("varying.py", "compile", 40, 1.02, 100.0),
        ("threads.py", "threads=1", 40, 0.0, 0.98),
        ("garbage.py", "garbage", 400, 0.0, 0.9),  # Every few hundred steps all that stays is looked through.
    ],
)
def test_what_helps_and_what_hurts_is_measured(
    script: str, cure: str, steps: int, least: float, most: float, tmp_path: Path
) -> None:
    shutil.copy(SCRIPTS / script, tmp_path)
    arguments = ("--cure", cure, "--steps", str(steps), "--budget", "40s", "--format", "json", script)
    document = json.loads(tried(tmp_path, *arguments).stdout)
    row = trial(document, cure)
    assert least < row["measured"]["after_ns"] / row["measured"]["before_ns"] < most
    assert (cure in document["keep"]) <= (most < 1)
    assert row["values"]["outcome"] in ("equal", "rounding")


def test_reading_numbers_less_often_is_named_as_not_tried(tmp_path: Path) -> None:
    shutil.copy(NEWCOMERS / "read_numbers.py", tmp_path)
    document = json.loads(
        tried(tmp_path, "--cure", "garbage", "--steps", "20", "--format", "json", "read_numbers.py").stdout
    )
    (told,) = [each for each in document["findings_without_cure"] if each["finding"].startswith("python_overhead")]
    assert "reading numbers less often" in told["why"]


@pytest.mark.timed
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process cannot be kept to two cores here")
def test_of_too_many_workers_the_right_answer_is_fewer(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "too_many_workers.py", tmp_path)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:2])  # What is started keeps to them.
    try:
        arguments = ("--cure", "workers", "--steps", "20", "--budget", "2m", "--format", "json", "too_many_workers.py")
        document = json.loads(tried(tmp_path, *arguments).stdout)
    finally:
        os.sched_setaffinity(0, cores)
    best = document["trials"][0]
    assert best["verdict"] == "helps"
    assert document["keep"] == [best["name"]]
    assert best["cures"][0]["value"] <= 2
    assert best["measured"]["after_ns"] < 0.8 * best["measured"]["before_ns"]


@pytest.mark.timed
@pytest.mark.parametrize("script", ["healthy.py", "simulator.py"])
def test_where_nothing_helps_that_is_said(script: str, tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / script, tmp_path)
    ran = tried(tmp_path, "--steps", "20", "--budget", "40s", "-o", "try.json", script)
    document = json.loads((tmp_path / "try.json").read_text(encoding="utf-8"))
    assert document["keep"] == []
    assert document["patch"] == {"diff": None, "by_hand": []}
    assert "helps" not in {row["verdict"] for row in document["trials"]}, ran.stderr
