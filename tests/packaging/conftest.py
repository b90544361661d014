"""Fresh machines, as far as one machine can make them: new environments and copies of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def clean_environment() -> dict[str, str]:
    """The environment of a shell that knows nothing of this one's Python."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "CONDA", "COV_", "MAKE"))
    }
    return {**inherited, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]) -> Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT],
        check=True,
        env=clean_environment,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]) -> Path:
    """The folder of programs of a clean environment that has only the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, env=clean_environment)
    subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel],
        check=True,
        env=clean_environment,
    )
    return folder / "bin"
