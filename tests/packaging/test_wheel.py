"""What ``pip install stepscope`` gives: a wheel in a clean environment, used from another folder."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import stepscope
from stepscope import __version__

pytestmark = pytest.mark.slow

PROFILE = Path(__file__).resolve().parents[2] / "examples" / "profiles" / "cpu_input_bound.json.gz"
METADATA = f"stepscope-{__version__}.dist-info/"

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, clean_environment: dict[str, str]) -> Run:
    """Runs a program in another folder; gives its standard output."""

    def run(*command: str | Path) -> str:
        ran = subprocess.run(command, cwd=tmp_path, env=clean_environment, check=False, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    return run


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"stepscope/__init__.py", "stepscope/py.typed", f"{METADATA}licenses/LICENSE"} <= names
    static = Path(stepscope.__file__).parent / "web" / "static"
    pages = {f"stepscope/web/static/{path.relative_to(static).as_posix()}" for path in static.rglob("*.*")}
    assert {name for name in names if "/static/" in name} == pages
    assert [name for name in names if not name.startswith(("stepscope/", METADATA))] == []
    assert [name for name in names if {"tests", "__pycache__"} & set(Path(name).parts)] == []


def test_the_metadata_says_what_it_needs(wheel: Path) -> None:
    text = zipfile.ZipFile(wheel).read(f"{METADATA}METADATA").decode()
    assert "Requires-Python: >=3.11" in text
    assert "License-Expression: Apache-2.0" in text
    for heavy in ("torch", "tensorflow", "jax", "protobuf", "pandas"):
        assert f"Requires-Dist: {heavy}" not in text


def test_version(installed: Path, run: Run) -> None:
    assert __version__ in run(installed / "stepscope", "--version")
    assert __version__ in run(installed / "python", "-m", "stepscope", "--version")


def test_the_report_for_a_browser(installed: Path, run: Run, tmp_path: Path) -> None:
    run(installed / "stepscope", "diagnose", PROFILE, "--format", "html", "-o", "report.html")
    assert "<title>cpu_input_bound.json.gz · stepscope</title>" in (tmp_path / "report.html").read_text("utf-8")


def test_the_report_from_another_folder(installed: Path, run: Run) -> None:
    report = json.loads(run(installed / "stepscope", "diagnose", PROFILE, "--format", "json"))
    assert report["schema"] == "stepscope.report/1"
    made = "import json; from stepscope.report.schema import load; print(json.dumps(load()))"
    jsonschema.validate(report, json.loads(run(installed / "python", "-c", made)))
    assert "input_bound" in {finding["rule"] for finding in report["findings"]}


def test_a_type_checker_sees_the_annotations(installed: Path, tmp_path: Path, run: Run) -> None:
    script = tmp_path / "use.py"
    script.write_text("import stepscope\nreveal_type(stepscope.open('x.json'))\n", encoding="utf-8")
    options = ("--strict", "--follow-imports", "silent", "--python-executable", installed / "python")
    assert '"stepscope.pipeline.Profile | stepscope.jobs.Job"' in run(sys.executable, "-m", "mypy", *options, script)
