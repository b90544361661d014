"""Without numba everything works the same, slower, and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import stepscope
from tests.fuzz import seeds
from tests.fuzz.test_fuzz import REGRESSIONS

PROFILE = Path(__file__).resolve().parents[1] / "examples" / "profiles" / "cpu_input_bound.json.gz"

SCRIPT = """
import sys
if sys.argv[2] == "without":
    sys.modules["numba"] = sys.modules["llvmlite"] = None
import json, stepscope
from stepscope import compiled
most = {"with": -1, "without": -1, "not yet": 1e12}[sys.argv[2]]
for work in (compiled.LOOPS, compiled.JSON):
    work.most = work.most_uncompiled = most
print(json.dumps(stepscope.open(sys.argv[1]).document()))
"""


def report(numba: str, path: Path = PROFILE) -> dict:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(path), numba], capture_output=True, timeout=240, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_report_is_the_same_and_says_that_reading_was_slow():
    fast, slow = report("with"), report("without")
    (notice,) = [n for n in slow["profile"]["notices"] if n not in fast["profile"]["notices"]]
    assert "numba cannot be used" in notice["text"].lower()
    slow["profile"]["notices"].remove(notice)
    slow["profile"]["losses"] = [loss for loss in slow["profile"]["losses"] if loss["code"] != "reader"]
    assert slow == fast


def test_the_report_is_the_same_where_loops_are_python_yet():
    """This process has loops compiled at once, as ``with`` has them."""
    assert report("not yet") == json.loads(json.dumps(stepscope.open(PROFILE).document()))


@pytest.mark.slow
def test_hashes_that_wrap_round_in_python_are_no_warning(tmp_path: Path):
    path = tmp_path / "export.sqlite"
    path.write_bytes(seeds.nsys()[0])
    assert report("not yet", path) == report("with", path)


@pytest.mark.slow
def test_the_place_of_damage_that_python_finds_is_a_number_like_any(tmp_path: Path):
    path = REGRESSIONS / "nsys-place_of_damage_no_integer"
    assert report("not yet", path) == report("with", path)
