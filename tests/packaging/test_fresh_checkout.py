"""``make demo`` on a machine where nothing is prepared, and again without the network."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's files, in a folder whose name has a space, without anything that was built."""
    target = tmp_path_factory.mktemp("fresh") / "step scope"
    listed = (
        subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        .stdout.decode()
        .split("\0")
    )
    for name in listed:
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


def make(checkout: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make there."""
    return subprocess.run(
        ["make", *arguments],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_make_demo_sets_up_and_diagnoses(checkout: Path, clean_environment: dict[str, str]) -> None:
    first = make(checkout, clean_environment, "demo")
    assert first.returncode == 0, first.stderr
    assert "DataLoader" in first.stdout
    assert "Installing" in first.stderr
    assert "Installing" not in first.stdout

    offline = {**clean_environment, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
    again = make(checkout, offline, "demo")
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
    assert "Installing" not in again.stderr


def test_an_unusable_python_is_one_clear_sentence(checkout: Path, clean_environment: dict[str, str]) -> None:
    ran = make(checkout, clean_environment, "demo", "PYTHON=no-such-python", "VENV=.other")
    assert ran.returncode != 0
    assert "stepscope needs Python 3.11 or later" in ran.stderr
    assert "no-such-python" in ran.stderr
    assert not (checkout / ".other").exists()


def test_make_help_lists_the_targets(checkout: Path, clean_environment: dict[str, str]) -> None:
    listed = make(checkout, clean_environment).stdout
    for target in ("demo", "test", "check", "clean"):
        assert f"make {target}" in listed
