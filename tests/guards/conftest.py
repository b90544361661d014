"""The checkout as the guards see it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def repository_files() -> list[Path]:
    """Every file that belongs to the repository (tracked, or new and not ignored), relative to its root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted(Path(name) for name in set(listed) if name and (ROOT / name).is_file())


@pytest.fixture(scope="session")
def modules() -> list[Path]:
    """Every Python file of the package."""
    found = sorted((ROOT / "src" / "stepscope").rglob("*.py"))
    assert found
    return found
