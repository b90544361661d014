"""Jobs run under the real profiler of their framework, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.captures.environments import framework_python

SCRIPTS = Path(__file__).parent / "scripts"
CAPTURE_TIMEOUT_S = 180
MEDDLING = ("PYTHON", "VIRTUAL_ENV", "COV_", "XLA_", "JAX_", "TF_", "KERAS_", "PJRT_", "PT_", "KINETO_", "CUDA_")
"""Variables that would change what a job does."""


@dataclass(frozen=True)
class Capture:
    """What a job left: its folder, and what was planted in it."""

    folder: Path
    truth: dict[str, Any]

    def file(self, pattern: str) -> Path:
        """The one file of that name, wherever it lies."""
        (found,) = self.folder.rglob(pattern)
        return found


@dataclass(frozen=True)
class Job:
    framework: str
    script: str
    arguments: tuple[str, ...] = ()


JOBS = {
    "jax": Job("jax", "jax_eight_devices.py", ("0", "load_batch")),
    "jax_frames": Job("jax", "jax_eight_devices.py", ("1", "prepare")),
    "jax_pair": Job("jax", "jax_pair.py"),
    "jax_callbacks": Job("jax", "jax_callbacks.py", ("0",)),
    "jax_callbacks_frames": Job("jax", "jax_callbacks.py", ("1",)),
    "jax_layers": Job("jax", "jax_layers.py"),
    "jax_new_shapes": Job("jax", "jax_recompiles.py", ("shapes",)),
    "jax_new_functions": Job("jax", "jax_recompiles.py", ("functions",)),
    "tf_loop": Job("tensorflow", "tf_loop.py"),
    "tf_strategy": Job("tensorflow", "tf_strategy.py"),
    "keras": Job("tensorflow", "keras_fit.py"),
    "tf_session": Job("tensorflow", "tf_session.py"),
    "torch": Job("torch", "torch_cpu.py"),
    "torch_memory": Job("torch", "torch_memory.py"),
    "torch_flops": Job("torch", "torch_flops.py"),
    "torch_xla": Job("torch_xla", "torch_xla_loop.py"),
}


class Captures:
    """Runs jobs when their captures are first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Capture] = {}

    def __getitem__(self, name: str) -> Capture:
        if name not in self._made:
            self._made[name] = self._run(name, JOBS[name])
        return self._made[name]

    def _run(self, name: str, job: Job) -> Capture:
        python, folder = framework_python(job.framework), self._folder / name
        environment = {key: value for key, value in os.environ.items() if not key.startswith(MEDDLING)}
        ran = subprocess.run(
            [python, SCRIPTS / job.script, folder, *job.arguments],
            env=environment | {"CUDA_VISIBLE_DEVICES": ""},
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=CAPTURE_TIMEOUT_S,
        )
        assert ran.returncode == 0, f"{job.script} failed:\n{ran.stderr[-4000:]}"
        return Capture(folder, json.loads((folder / "truth.json").read_text()))
