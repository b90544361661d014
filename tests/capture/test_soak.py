"""Memory stays flat over 10,000 steps, recorded now and then, armed, or watched by ``stepscope run``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import stepscope
from tests.capture.jobs import SCRIPTS, TIMEOUT_S, environment, run
from tests.captures.environments import framework_python

pytestmark = pytest.mark.slow
MOST_GROWTH = 4 << 20
"""Bytes between step 2,000 and the last; a recorded step that stayed in memory would be some 50 kB."""
SOURCE = Path(stepscope.__file__).parents[1]


def assert_flat(stdout: str | bytes, files: int) -> None:
    said = json.loads(stdout)
    first, *_, last = said["resident"]
    assert last - first < MOST_GROWTH, said["resident"]
    assert said["files"] == files


@pytest.mark.parametrize(("kind", "files"), [("idle", 0), ("cycles", 10)])
def test_sessions(tmp_path: Path, kind: str, files: int) -> None:
    ran = subprocess.run(
        [framework_python("torch"), SCRIPTS / "torch_soak.py", kind, tmp_path],
        capture_output=True, check=True, timeout=TIMEOUT_S, env=environment(PYTHONPATH=str(SOURCE)),
    )  # fmt: skip
    assert_flat(ran.stdout, files)


@pytest.mark.parametrize(("options", "files"), [(("--skip", "1000000"), 0), (("--active", "20"), 1)])
def test_a_run(tmp_path: Path, options: tuple[str, ...], files: int) -> None:
    ran = run(
        tmp_path / "out", "--python", framework_python("torch"), "--no-stacks", *options,
        SCRIPTS / "torch_soak.py", "plain", tmp_path, env=environment(PYTHONPATH=str(SOURCE)),
    )  # fmt: skip
    assert_flat(ran.stdout, 0)
    assert len(ran.manifest["files"]) == files
