"""``stepscope try`` of jobs that a launcher or a trainer starts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.captures.environments import framework_python
from tests.trials.tried import NEWCOMERS, SCRIPTS, TIMEOUT_S, environment, trial

pytestmark = pytest.mark.slow


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
