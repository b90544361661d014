"""``stepscope try`` with real PyTorch: jobs whose cures are known."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.trials.tried import NEWCOMERS, SCRIPTS, TIMEOUT_S, command, environment, step_ms, trial, tried

pytestmark = pytest.mark.slow


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


def test_reading_numbers_less_often_is_named_as_not_tried(tmp_path: Path) -> None:
    shutil.copy(NEWCOMERS / "read_numbers.py", tmp_path)
    document = json.loads(
        tried(tmp_path, "--cure", "garbage", "--steps", "20", "--format", "json", "read_numbers.py").stdout
    )
    (told,) = [each for each in document["findings_without_cure"] if each["finding"].startswith("python_overhead")]
    assert "reading numbers less often" in told["why"]
