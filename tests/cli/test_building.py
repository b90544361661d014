"""Machine code is made in the background where a first run did without, and by nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from stepscope import compiled
from stepscope.cli import building

AS_OF_LARGE = """
import sys
from stepscope import cli, compiled
compiled.LOOPS.most = 0.0
sys.exit(cli.main())
"""
"""Python alone is for less than any loop takes: machine code is wanted, or missed, on the fastest machine too."""
LOAD = """
import sys
import numpy as np
from stepscope.trace import forest
chosen, parent = np.array([False, True, True]), np.array([-1, 0, 1], np.int32)
print(forest._outermost.machine(chosen, parent), "numba.np.linalg" in sys.modules)
if "more" in sys.argv:
    print(forest._inherit.machine(np.array([7, -1, -1], np.int32), parent), "numba.np.linalg" in sys.modules)
"""
"""A loop that is kept, and one that is not yet."""
PROFILE = Path(__file__).resolve().parents[2] / "examples" / "profiles" / "cpu_input_bound.json.gz"


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would be started of a run that missed machine code, on a machine where that is allowed."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(building.subprocess, "Popen", lambda command, **how: found.append(how | {"command": command}))
    monkeypatch.setattr(building, "_folder", lambda: tmp_path)
    monkeypatch.setattr(compiled.LOOPS, "missed", True)
    for name in (building.SWITCH, *building.MANAGED):
        monkeypatch.delenv(name, raising=False)
    return found


def test_a_process_is_left_that_holds_nothing_of_the_user(
    started: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    building.build_if_missed(PROFILE)
    (how,) = started
    assert {how[name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}
    assert how["cwd"] == tmp_path
    assert how["start_new_session"]
    assert how["env"][building.SWITCH] == "0"
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "in the background" in said


@pytest.mark.parametrize("name", building.MANAGED)
def test_none_where_processes_are_counted(
    started: list[dict[str, Any]], name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "1")
    building.build_if_missed(PROFILE)
    assert started == []
    assert capsys.readouterr().err == ""


def test_none_where_it_is_switched_off(started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(building.SWITCH, "0")
    building.build_if_missed(PROFILE)
    assert started == []


def test_none_beside_another_one(started: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "building").touch()
    building.build_if_missed(PROFILE)
    assert started == []
    os.utime(tmp_path / "building", (0, 0))  # One that was killed holds nobody up for long.
    building.build_if_missed(PROFILE)
    assert len(started) == 1


def test_none_where_nothing_was_missed(started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.LOOPS, "missed", False)
    monkeypatch.setattr(compiled.JSON, "missed", False)
    building.build_if_missed(PROFILE)
    assert started == []


def test_python_is_taken_for_little_and_for_more_where_nothing_is_kept() -> None:
    work = compiled.Plain(10, 100)
    assert work.takes(10, lambda: True)
    assert not work.takes(11, lambda: True)
    assert not work.missed
    assert work.takes(100, lambda: False)
    assert work.missed
    assert not work.takes(101, lambda: False)


def test_where_much_is_to_be_done_nothing_is_missed() -> None:
    work = compiled.Plain(10, 100)
    work.expect_much()
    assert not work.takes(11, lambda: False)
    assert not work.missed


def test_a_loop_over_much_is_not_begun_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "LOOPS", compiled.Plain(1.0, 1.0))
    loop = compiled.kernel(lambda numbers: len(numbers))
    asked: list[int] = []
    monkeypatch.setattr(compiled, "_kept", lambda function, _: asked.append(1) or function)
    assert loop(np.zeros(10)) == 10
    assert asked == []
    assert loop(np.zeros(1 << 20)) == 1 << 20  # Longer than the second that Python is given.
    assert asked == [1]
    pair = compiled.kernel(lambda both: len(both[0]))
    assert pair((np.zeros(1 << 20), np.zeros(1))) == 1 << 20
    assert asked == [1, 1]


def test_one_more_loop_is_loaded_sooner_than_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "LOOPS", compiled.Plain(1.0, 1.0))
    loop = compiled.CompiledLoop(len)
    monkeypatch.setattr(loop, "is_kept", lambda: True)
    compiled.compiler.cache_clear()
    assert loop._pays_in_python((np.zeros(100_000),))
    compiled.compiler()
    assert not loop._pays_in_python((np.zeros(100_000),))
    assert loop._pays_in_python((np.zeros(1_000),))


def test_threads_that_ask_for_machine_code_at_once_all_keep_it_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numba takes the folder from a setting: one thread must not put it back while another one decorates."""
    numba = compiled.compiler()
    if numba is None:
        pytest.skip("numba is not installed")
    monkeypatch.setattr(compiled, "cache_folder", lambda _: tmp_path)
    monkeypatch.setattr(compiled, "_kept_where_possible", lambda found: found)
    seen: list[str] = []

    def decorated(function: object, **_: object) -> object:
        time.sleep(0.01)
        seen.append(numba.config.CACHE_DIR)
        return function

    monkeypatch.setattr(compiled, "_machine", decorated)
    before = numba.config.CACHE_DIR
    threads = [Thread(target=compiled._kept, args=(len_of, {})) for _ in range(8)]
    for thread in threads:
        thread.start()
        time.sleep(0.003)
    for thread in threads:
        thread.join()
    assert seen == [str(tmp_path)] * 8
    assert before == numba.config.CACHE_DIR


def len_of(numbers: Any) -> int:
    return len(numbers)


def test_machine_code_that_is_kept_is_loaded_without_the_compiler(tmp_path: Path) -> None:
    if compiled.compiler() is None:
        pytest.skip("numba is not installed")
    environment = os.environ | {"STEPSCOPE_CACHE": str(tmp_path)}

    def told(*arguments: str) -> list[str]:
        command = [sys.executable, "-c", LOAD, *arguments]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=True)
        return ran.stdout.splitlines()

    assert told() == ["[-1  1  1] True"]
    assert told() == ["[-1  1  1] False"]
    assert told("more") == ["[-1  1  1] False", "[7 7 7] True"]  # What is made of one that is not is as ever.
    assert told("more") == ["[-1  1  1] False", "[7 7 7] False"]


@pytest.mark.slow
def test_the_run_after_the_first_has_machine_code(tmp_path: Path) -> None:
    managed = {building.SWITCH, *building.MANAGED}
    environment = {name: value for name, value in os.environ.items() if name not in managed}
    environment["STEPSCOPE_CACHE"] = str(tmp_path)
    command = [sys.executable, "-c", AS_OF_LARGE, "diagnose", str(PROFILE)]
    first = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert "in the background" in first.stderr
    until = time.monotonic() + 400
    while not any(tmp_path.rglob("*.nbi")) or any(tmp_path.rglob("building")):
        assert time.monotonic() < until
        time.sleep(1)
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert again.stdout == first.stdout
    assert again.stderr == ""
