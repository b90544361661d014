"""Interpreters that have a framework: named by the environment, else made once per machine with pip.

``STEPSCOPE_JAX_PYTHON`` and its like name an interpreter. Without them a virtual environment is made under
``STEPSCOPE_TEST_VENVS``, else under the user's cache folder, and kept: 0.6 GB for JAX, 1 GB for PyTorch, 1.6 GB for
TensorFlow, a minute or two each. Where pip fails (no network) the tests skip and say so.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

try:
    import fcntl
except ImportError:  # Windows: tests run in one process there
    fcntl = None  # type: ignore[assignment]

PIP_TIMEOUT_S = 480
PIP_OPTIONS = ("--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "30")
"""Without a network pip is to say so soon."""


@dataclass(frozen=True)
class Framework:
    """What an environment needs; alternatives of pip's arguments are tried in order."""

    variable: str
    requirements: tuple[tuple[str, ...], ...]
    over: str | None = None
    """The framework whose packages are seen too."""


FRAMEWORKS = {
    "jax": Framework("STEPSCOPE_JAX_PYTHON", (("jax==0.10.2",),)),
    "tensorflow": Framework("STEPSCOPE_TF_PYTHON", (("tensorflow-cpu==2.21.0", "tensorboard==2.21.0"),)),
    # "+cpu", so that no index can answer with CUDA's gigabytes: PyPI has no such build, PyTorch's own index has.
    "torch": Framework(
        "STEPSCOPE_TORCH_PYTHON",
        (
            ("torch==2.13.0+cpu", "numpy"),
            ("torch==2.13.0+cpu", "numpy", "--extra-index-url", "https://download.pytorch.org/whl/cpu"),
        ),
    ),
    # The oldest that is supported, with the numpy of its time.
    "torch_oldest": Framework(
        "STEPSCOPE_OLDEST_TORCH_PYTHON",
        (
            ("torch==2.0.1+cpu", "numpy==1.24.4", "--extra-index-url", "https://download.pytorch.org/whl/cpu"),
            # PyPI's build of that time brings CUDA: 3 GB.
            ("torch==2.0.1", "numpy==1.24.4"),
        ),
    ),
    "integrations": Framework(
        "STEPSCOPE_INTEGRATIONS_PYTHON",
        (("lightning==2.6.6", "transformers==5.23.0", "accelerate==1.15.0", "keras==3.15.1"),),
        over="torch",
    ),
    "xprof": Framework("STEPSCOPE_XPROF_PYTHON", (("xprof==2.24.2",),)),
    "viztracer": Framework("STEPSCOPE_VIZTRACER_PYTHON", (("viztracer==1.1.1",),)),
    "py_spy": Framework("STEPSCOPE_PY_SPY_PYTHON", (("py-spy==0.4.3",),)),
    "jupyter": Framework("STEPSCOPE_JUPYTER_PYTHON", (("nbconvert==7.17.2", "ipykernel==7.4.0"),)),
    # 7 GB from the package index: only where somebody has it.
    "torch_xla": Framework("STEPSCOPE_TORCH_XLA_PYTHON", ()),
}


def framework_python(name: str) -> Path:
    """The interpreter that has a framework; skips the test, saying why, where there is none."""
    if named := os.environ.get(FRAMEWORKS[name].variable):
        return Path(named)
    made = _environment(name)
    if isinstance(made, str):
        pytest.skip(f"set {FRAMEWORKS[name].variable} to a Python that has {name}: {made}")
    return made


@cache
def _environment(name: str) -> Path | str:
    """The interpreter of the environment made for a framework, or why there is none."""
    framework = FRAMEWORKS[name]
    if not framework.requirements:
        return "no environment is made for it"
    folder = _environments() / f"{name}-{_fingerprint(framework)}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    made = folder / "made"
    with _alone(folder):
        return _made(framework, folder, python, made)


def _made(framework: Framework, folder: Path, python: Path, made: Path) -> Path | str:
    if not made.exists():
        venv.create(folder, clear=True, with_pip=True)
        if framework.over:
            below = site_packages(framework_python(framework.over))
            (site_packages(python) / "below.pth").write_text(f"{below}\n", encoding="utf-8")
        complaint = _install(python, framework)
        if complaint:
            return complaint
        made.touch()
    return python


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Only one process of those that run tests makes an environment."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def site_packages(python: Path) -> Path:
    """Where an interpreter's packages are."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", code], text=True).strip())


def _install(python: Path, framework: Framework) -> str:
    """Why pip failed, empty where it did not."""
    complaint = ""
    for requirements in framework.requirements:
        pip = (python, "-m", "pip", "install", *PIP_OPTIONS, *requirements)
        try:
            ran = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=PIP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            complaint = f"pip took longer than {PIP_TIMEOUT_S} s"
            continue
        if ran.returncode == 0:
            return ""
        complaint = (ran.stderr.strip().splitlines() or ["pip failed"])[-1]
    return complaint


def _environments() -> Path:
    named = os.environ.get("STEPSCOPE_TEST_VENVS")
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(cache_home) / "stepscope" / "test-environments"


def _fingerprint(framework: Framework) -> str:
    """Changes with whatever makes an environment stale."""
    made_of = repr((framework.requirements, sys.version_info[:3], sys.base_prefix))
    return hashlib.sha256(made_of.encode()).hexdigest()[:12]
