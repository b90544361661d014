"""What is said of jobs that end before they have steps."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from stepscope.capture.raised import raised
from tests.capture.jobs import run
from tests.captures.environments import framework_python

MISSING = "it ended with ModuleNotFoundError: No module named"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("import torchh", 1, MISSING + " 'torchh' ({}:1) before a framework was imported"),
        ("raise SystemExit(3)", 3, "no process of the command imported a framework that can be recorded; it ended with "
         "status 3"),
    ],
)  # fmt: skip
def test_what_ends_a_job_before_its_framework_is_said(tmp_path: Path, body: str, status: int, said: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(body)
    ran = run(tmp_path / "out", "--python", sys.executable, script)
    assert ran.status == status
    assert f"no profile was written because {said.format(script)}" in ran.stderr


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("import torchvizz", 1, MISSING + " 'torchvizz' ({}:2) before its first step"),
        ("raise SystemExit(3)", 3, "the command ended with status 3 before its first step"),
        ("raise KeyboardInterrupt", 128 + signal.SIGINT, "it ended with KeyboardInterrupt ({}:2) before"),
    ],
)
@pytest.mark.slow
def test_what_ends_a_job_before_its_first_step_is_said(tmp_path: Path, ending: str, status: int, said: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import torch\n{ending}\n")
    ran = run(tmp_path / "out", "--python", framework_python("torch"), script)
    assert ran.status == status
    assert f"no profile was written because {said.format(script)}" in ran.stderr
    assert "stepscope.step()" not in ran.stderr


@pytest.mark.slow
def test_an_exception_after_steps_is_said_with_their_number(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nsgd = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))])\n"
        "for _ in range(4):\n    sgd.step()\nraise ValueError('no data')\n"
    )
    ran = run(tmp_path / "out", "--python", framework_python("torch"), script)
    assert f"it ended with ValueError: no data ({script}:5) after 4 steps" in ran.stderr


def test_a_process_without_an_exception_was_ended_by_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("last_exc", "last_value"):
        monkeypatch.delattr(sys, name, raising=False)
    assert raised() is None
