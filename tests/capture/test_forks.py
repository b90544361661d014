"""Children that a job makes before, while and after it is recorded end as they would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.jobs import SCRIPTS, run
from tests.captures.environments import framework_python

STEPS = 14
"""Settling, warming up, recording, writing, timing and behind all that."""
WORDS = ("--skip", "2", "--active", "3")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fork", "multiprocessing", "spawn", "forkserver", "subprocess", "loader"])
def test_children_end_in_every_phase(tmp_path: Path, kind: str) -> None:
    ran = run(tmp_path, *WORDS, "--python", framework_python("torch"), SCRIPTS / "torch_forks.py", kind, STEPS)
    assert ran.status == 0, ran.stderr
    assert ran.stdout.endswith(b"done\n")
    assert ran.stdout.count(b"child ") == (STEPS if kind == "fork" else 0)
    recorded = [each for each in ran.manifests if each["files"]]
    assert len(recorded) == 1, ran.stderr
