"""Of a recorded job's time the share whose line is told right, by a judge that looked at the same run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stepscope
from stepscope.analysis.where import Locator
from stepscope.trace.forest import innermost_at
from tests.captures.environments import framework_python
from tests.newcomer.jobs import SCRIPTS
from tests.newcomer.runs import SOURCES, TIMEOUT_S, alone

pytestmark = pytest.mark.slow

RIGHT = 0.95
JUDGE = Path(__file__).with_name("judge.py")
EXAMPLES = Path(__file__).parents[2] / "examples"
JOBS = {
    SCRIPTS / "lines_module_loop.py": "torch",
    SCRIPTS / "lines_in_main.py": "torch",
    SCRIPTS / "lines_in_class.py": "torch",
    SCRIPTS / "slow_dataset.py": "torch",
    EXAMPLES / "input_bound" / "train.py": "torch",
    EXAMPLES / "launch_bound" / "train.py": "torch",
    EXAMPLES / "mixed_precision" / "train.py": "torch",
    SCRIPTS / "lines_jax.py": "jax",
    SCRIPTS / "lines_tensorflow.py": "tensorflow",
    SCRIPTS / "lines_keras.py": "tensorflow",
}
"""With the environment each runs in."""
PROFILES = {"torch": "*.trace.json.gz", "jax": "*.xplane.pb", "tensorflow": "*.xplane.pb"}


def judged(script: Path, environment: str, folder: Path) -> tuple[float, float, dict[tuple[str, int, int | None], int]]:
    """Shares of the judge's looks inside the recorded steps of which the profile tells the line right, and of which it
    tells another; and what was told for what, where it was not right."""
    out, seen = folder / "out", folder / "seen"
    python = framework_python(environment)
    command = [sys.executable, "-m", "stepscope", "run", "--python", python, "-o", out, JUDGE, seen, script]
    with alone():
        subprocess.run(
            list(map(str, command)), check=True, timeout=TIMEOUT_S, capture_output=True, cwd=folder,
            env=os.environ | {"PYTHONPATH": str(SOURCES), "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
    (profile,) = out.rglob(PROFILES[environment])
    facts = stepscope.open(profile).facts
    trace, steps = facts.trace, facts.markers
    (looks,) = seen.glob("*.seen.json")
    origin = trace.info.origin_epoch_ns
    assert origin is not None
    told = [(at - origin, place) for at, place in json.loads(looks.read_text()) if place is not None]
    told = [(at, place) for at, place in told if steps.start[1] <= at < steps.end[-1]]
    times = np.array([at for at, _ in told], np.int64)
    inside = innermost_at(trace.slices, np.full(times.size, facts.host.main, np.int32), times)
    parts, frames = Locator(trace).parts(inside, times)
    right = wrong = 0
    missed: dict[tuple[str, int, int | None], int] = {}
    for number, (_, (_, line, function)) in zip(parts[:, 0].tolist(), told, strict=True):
        frame = frames[number] if number >= 0 else None
        given = None if frame is None or frame.is_definition else frame.line
        if given == line:
            right += 1
            continue
        wrong += given is not None
        missed[function, line, given] = missed.get((function, line, given), 0) + 1
    return right / len(told), wrong / len(told), missed


@pytest.mark.parametrize("script", JOBS, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.timed  # Few looks fall into it where other work runs beside it.
def test_the_line_is_right_nearly_always(script: Path, tmp_path: Path) -> None:
    right, wrong, missed = judged(script, JOBS[script], tmp_path)
    assert right >= RIGHT, (right, wrong, sorted(missed.items(), key=lambda each: -each[1])[:10])
