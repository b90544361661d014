"""Jobs under ``stepscope run``, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.options import Options
from stepscope.cli.run_folders import runs
from tests.captures.jobs import MEDDLING

SCRIPTS = Path(__file__).parent / "scripts"
TIMEOUT_S = 180


@dataclass(frozen=True)
class Ran:
    """A finished ``stepscope run``."""

    status: int
    stdout: bytes
    stderr: str
    out: Path

    @property
    def manifests(self) -> list[dict[str, Any]]:
        """What each process left, in the order of the files' names."""
        return [json.loads(path.read_text()) for path in sorted(self.out.glob("*.stepscope.json"))]

    @property
    def manifest(self) -> dict[str, Any]:
        """The only one."""
        (manifest,) = self.manifests
        return manifest

    def steps(self) -> list[int]:
        """Those that were recorded, by the only manifest."""
        window = self.manifest["window"]
        assert Options().enough <= window["steps"] <= Options().active, window
        return list(range(window["first_step"], window["first_step"] + window["steps"]))

    def profile(self) -> Path:
        """The only profile of the only manifest."""
        (file,) = self.manifest["files"]
        return self.out / file["path"]


def environment(**more: str) -> dict[str, str]:
    """That of this process, without what would change a job."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(MEDDLING)}
    return {**inherited, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **more}


def run(out: Path, *words: object, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
    """``stepscope run --out OUT WORDS...``."""
    ran = subprocess.run(
        [sys.executable, "-m", "stepscope", "run", "--out", str(out), *map(str, words)],
        input=stdin,
        env=env or environment(),
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    # The run folder that it made, or, where it left nothing, the folder of runs.
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode(), (runs(out) or [out])[-1])
