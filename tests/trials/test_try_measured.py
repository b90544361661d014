"""``stepscope try`` with real PyTorch: what helps, what hurts and where nothing does, held against times."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.trials.tried import SCRIPTS, trial, tried

pytestmark = pytest.mark.slow


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
    arguments = ("--cure", cure, "--steps", str(steps), "--budget", "25s", "--format", "json", script)
    document = json.loads(tried(tmp_path, *arguments).stdout)
    row = trial(document, cure)
    assert least < row["measured"]["after_ns"] / row["measured"]["before_ns"] < most
    assert (cure in document["keep"]) <= (most < 1)
    assert row["values"]["outcome"] in ("equal", "rounding")


@pytest.mark.timed
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process cannot be kept to two cores here")
def test_of_too_many_workers_the_right_answer_is_fewer(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "too_many_workers.py", tmp_path)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:2])  # What is started keeps to them.
    try:
        arguments = ("--cure", "workers", "--steps", "20", "--budget", "1m", "--format", "json", "too_many_workers.py")
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
    ran = tried(tmp_path, "--steps", "20", "--budget", "25s", "-o", "try.json", script)
    document = json.loads((tmp_path / "try.json").read_text(encoding="utf-8"))
    assert document["keep"] == []
    assert document["patch"] == {"diff": None, "by_hand": []}
    assert "helps" not in {row["verdict"] for row in document["trials"]}, ran.stderr
