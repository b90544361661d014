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


def ran(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=240, check=False,
        env={key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        "cache_locator_classes: select.Locator",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("opt: [", "- opt", "debug_cache: 1", "disable_jit: 1")),
    ],
)
def test_numba_is_not_told_what_to_do_by_what_lies_there(settings: str, tmp_path: Path) -> None:
    (tmp_path / ".numba_config.yaml").write_text(settings)
    code = "from stepscope import compiled; compiled.compiler().core.config.reload_config(); print(compiled.disabled())"
    assert ran(["-P", "-c", code], tmp_path).stdout == "False\n"
    done = ran(["-P", "-m", "stepscope", "diagnose", str(ROOT / "examples" / "ranks" / "rank0.json.gz")], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[cache]" not in done.stdout


def test_what_another_interpreter_is_given_lies_neither_here_nor_beside_the_script(tmp_path: Path) -> None:
    here, beside, lent = (tmp_path / name for name in ("here", "beside", "lent"))
    for folder in (here, beside, lent):
        folder.mkdir()
    script = beside / "analyse.py"
    script.write_text(
        f"import sys\nsys.path += ['', '.', {str(here)!r}, {str(lent)!r}]\n"
        "from stepscope.interpreter import own_environment\nfrom stepscope.remote.server import _environment\n"
        "for one in (own_environment(), _environment(None)):\n    print(one['PYTHONPATH'], one['PYTHONSAFEPATH'])\n"
    )
    given = ran([str(script)], here).stdout.splitlines()
    assert len(given) == 2
    for line in given:
        path, safe = line.split()
        folders = path.split(os.pathsep)
        assert safe == "1"
        assert str(lent) in folders
        assert not {"", ".", str(here), str(beside)} & set(folders)


def test_a_module_that_runs_as_the_program_leaves_its_folder_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("from stepscope.interpreter import safe_path; print(*safe_path(), sep='\\n')")
    run = "runpy.run_module('tool', run_name='__main__', alter_sys=True)"
    code = f"import sys, runpy; sys.path.append({str(tmp_path)!r}); {run}"
    assert str(tmp_path) in ran(["-c", code], ROOT).stdout.splitlines()


def test_python_m_finds_no_dependency_where_one_stands(tmp_path: Path) -> None:
    for name in set(metadata.packages_distributions()) - {"stepscope"}:
        (tmp_path / f"{name}.py").write_text(LIVES.format(mark=str(tmp_path / "ran")))
    done = ran(["-m", "stepscope", "diagnose", str(ROOT / "examples" / "ranks" / "rank0.json.gz")], tmp_path)
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "stepscope", "diagnose", "ranks"],
        pytest.param(["-m", "stepscope", "diagnose", "ranks", "--scheduler", "local"], marks=pytest.mark.slow),
        pytest.param(["-m", "stepscope", "doctor"], marks=pytest.mark.slow),
        pytest.param(["-m", "stepscope", "convert", "ranks/rank0.json.gz", "out.stepscope"], marks=pytest.mark.slow),
        pytest.param(["-c", _POOL], marks=pytest.mark.slow),
        pytest.param(["-c", _DASK], marks=pytest.mark.slow),
        ["-m", "stepscope", "query", "ranks/rank0.json.gz", "SELECT COUNT(*) FROM slices"],
    ],
    ids=lambda command: " ".join(command)[:60],
)
def test_what_lies_beside_profiles_is_not_run(command: list[str], hostile: Path) -> None:
    # -P as the installed command has it: without it Python looks where it stands before stepscope is asked.
    done = ran(["-P", *command], hostile)
    mark = hostile.parent / "ran"
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr
