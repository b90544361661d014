"""A callback of 20 ms between the steps of Keras's ``fit``: named with its line in both ways of recording."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import stepscope
from stepscope.diagnosis.finding import Finding
from tests.capture.jobs import environment, run
from tests.capture.test_torch import free_port
from tests.captures.environments import framework_python
from tests.captures.jobs import SCRIPTS

pytestmark = pytest.mark.slow
SCRIPT = SCRIPTS / "keras_callback.py"
LINE = next(
    number for number, line in enumerate(SCRIPT.read_text().splitlines(), 1) if "def on_train_batch_end" in line
)
LEAST_NS = 20_000_000


def the_finding(path: Path) -> Finding:
    profile = stepscope.open(path)
    assert len(profile.facts.used) >= 4
    (finding,) = (each for each in profile.findings if each.title == "Steps wait for callbacks")
    # Sleeping takes as long as asked for, and somewhat longer on a busy machine.
    assert LEAST_NS <= finding.cost_ns_per_step <= 2 * LEAST_NS
    return finding


def test_under_run(tmp_path: Path) -> None:
    ran = run(tmp_path, "--python", framework_python("tensorflow"), SCRIPT, 60)
    assert ran.status == 0, ran.stderr
    assert ran.manifest["failures"] == []
    where = the_finding(ran.profile()).where[0]
    assert (where.function, where.line) == ("Metrics.on_train_batch_end", LINE)
    assert (where.file or "").endswith("keras_callback.py")


def test_by_capture(tmp_path: Path) -> None:
    port = free_port()
    command = [framework_python("tensorflow"), SCRIPT, "5000", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as job:
        try:
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n"
            (path,) = stepscope.capture_from(f"localhost:{port}", tmp_path, duration=1)
        finally:
            job.kill()
    where = the_finding(Path(path)).where[0]
    assert (where.file, where.function, where.line) == ("keras_callback.py", "on_train_batch_end", LINE)
