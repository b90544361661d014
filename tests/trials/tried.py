"""``stepscope try`` as a process, of the scripts in `scripts/`, with the frameworks' own interpreters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import stepscope
from tests.captures.environments import framework_python

SCRIPTS = Path(__file__).parent / "scripts"
NEWCOMERS = Path(__file__).parents[1] / "newcomer" / "scripts"
SOURCES = Path(stepscope.__file__).parents[1]
TIMEOUT_S = 300


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
