"""Nothing that lies beside profiles is run: whoever reads a folder of them stands in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIVES = "import pathlib, sys\npathlib.Path({mark!r}).open('a').write(__name__ + chr(10))\nraise SystemExit(0)\n"
_POOL = "import stepscope; print(stepscope.open('ranks', workers=2).verdict)"
_DASK = "import stepscope; print(stepscope.open('ranks', scheduler='local').verdict)"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of profiles in which a file lies for each module that Python, or a dependency, could look for."""
    shutil.copytree(ROOT / "examples" / "ranks", tmp_path / "here" / "ranks")
    names = set(sys.stdlib_module_names) | set(metadata.packages_distributions()) | {"sitecustomize", "usercustomize"}
    text = LIVES.format(mark=str(tmp_path / "ran"))
    for folder in (tmp_path / "here", tmp_path / "here" / "ranks"):
        for name in names - {"stepscope"}:
            if name.isidentifier():
                (folder / f"{name}.py").write_text(text)
    return tmp_path / "here"


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "stepscope", "diagnose", "ranks"],
        pytest.param(["-m", "stepscope", "diagnose", "ranks", "--scheduler", "local"], marks=pytest.mark.slow),
        ["-m", "stepscope", "doctor"],
        pytest.param(
            ["-m", "stepscope", "convert", "ranks/rank0.json.gz", "out.stepscope"], marks=pytest.mark.slow
        ),
        pytest.param(["-c", _POOL], marks=pytest.mark.slow),
        pytest.param(["-c", _DASK], marks=pytest.mark.slow),
    ],
    ids=lambda command: " ".join(command)[:60],
)
def test_what_lies_beside_profiles_is_not_run(command: list[str], hostile: Path) -> None:
    # -P as the installed command has it: without it Python looks where it stands before stepscope is asked.
    ran = subprocess.run(
        [sys.executable, "-P", *command], cwd=hostile, capture_output=True, text=True, timeout=240, check=False,
        env={key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"},
    )  # fmt: skip
    mark = hostile.parent / "ran"
    assert not mark.exists(), mark.read_text()
    assert ran.returncode == 0, ran.stderr
