"""Which lines the worker processes of a loader are at, as they tell it to the process that made them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import stepscope
from stepscope.capture.worker_lines import MOST_PLACES, SLOT_BYTES, WorkerLines, _write, worker_frame
from tests.capture.jobs import SCRIPTS, environment, run
from tests.captures.environments import framework_python
from tests.newcomer.jobs import SCRIPTS as NEWCOMERS

SCRIPT = SCRIPTS / "pretended_loader.py"
WORK = 1 + next(n for n, line in enumerate(SCRIPT.read_text().splitlines()) if line.endswith("# the work"))
forks = pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="nothing forks here")


@forks
@pytest.mark.parametrize("kind", ["stays", "ends"])
def test_workers_tell_the_line_they_are_at_and_how_long_they_wait(kind: str) -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPT, Path(stepscope.__file__).parents[1], kind], capture_output=True, check=True, timeout=60
    )
    *told, nobody = json.loads(ran.stdout)
    assert nobody is None
    for each in told:
        assert each["processes"] == 2
        assert 0 < each["looked_ns"] <= each["passed_ns"]
        assert 0 < each["ran_ns"] <= each["passed_ns"]
        places: dict[tuple[str, str], int] = {}
        for file, line, function, ns in each["places"]:
            assert file == SCRIPT.name
            assert abs(line - WORK) <= 2
            places[file, function] = places.get((file, function), 0) + ns
        assert list(places) == [(SCRIPT.name, "__getitem__")]
        busy = sum(places.values())
        assert 0.4 * each["looked_ns"] < busy < each["looked_ns"]
        assert busy + each["waiting_ns"] == each["looked_ns"]
        if sys.platform == "linux":
            assert 0 <= each["core_wait_ns"] <= each["passed_ns"]


@pytest.mark.slow
@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_workers_that_are_spawned_tell_it_too(tmp_path: Path, start: str) -> None:
    """Of PyTorch's own loader. The pages' file is gone when the job is."""
    script = NEWCOMERS / "slow_dataset.py"
    words = ("--python", framework_python("torch"), script, "--workers", "2", "--start", start)
    # multiprocessing binds sockets below TMPDIR, whose paths hold some hundred bytes: `tmp_path` may be too long.
    with tempfile.TemporaryDirectory(prefix="pages-") as pages:
        ran = run(tmp_path, *words, env=environment() | {"TMPDIR": pages})
        left = list(Path(pages).glob("stepscope-*"))
    assert ran.status == 0, ran.stderr
    (told,) = (manifest["worker_lines"] for manifest in ran.manifests if manifest.get("worker_lines"))
    assert told["processes"] == 2
    file, line, function, ns = told["places"][0]
    assert (file, function) == ("slow_dataset.py", "augment")
    assert script.read_text("utf-8").splitlines()[line - 1].endswith("# the cause")
    assert ns > 0.5 * (told["looked_ns"] - told["waiting_ns"])
    assert not left


def stack(*files: str) -> FrameType:
    """The innermost frame of functions in these files, each called by the one before."""
    seen: list[FrameType] = []
    call: Any = lambda: seen.append(sys._getframe(1))  # noqa: E731
    for file in reversed(files):
        names: dict[str, Any] = {"call": call}
        exec(compile("def calls():\n    call()\n", file, "exec"), names)
        call = names["calls"]
    call()
    return seen[0]


OWN, LIBRARY = "/job/train.py", "/x/site-packages/torchvision/datasets/folder.py"
FETCH, LOOP = (f"/x/site-packages/torch/utils/data/_utils/{name}.py" for name in ("fetch", "worker"))
PROCESS = "/usr/lib/python3.11/multiprocessing/process.py"


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        ((OWN, PROCESS, LOOP, FETCH, OWN), 4),
        ((OWN, PROCESS, LOOP, FETCH, OWN, LIBRARY), 4),
        ((OWN, PROCESS, LOOP, FETCH, LIBRARY, LIBRARY), 4),
        ((OWN, PROCESS, LOOP, FETCH), 3),
        ((OWN, PROCESS, LOOP), None),
        ((OWN, PROCESS, LOOP, LIBRARY), None),
        ((OWN, PROCESS), None),
    ],
)
def test_the_line_is_one_of_the_worker_and_none_of_the_process_it_was_forked_from(
    files: tuple[str, ...], chosen: int | None
) -> None:
    innermost: FrameType | None = stack(*files)
    frames = []
    frame = innermost
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    outermost_first = frames[: len(files)][::-1]
    assert worker_frame(innermost) is (None if chosen is None else outermost_first[chosen])


def test_what_does_not_fit_is_cut() -> None:
    pages: Any = bytearray(2 * SLOT_BYTES)
    facts: dict[str, Any] = {"places": [["x" * 4_000, number, "f", 1] for number in range(MOST_PLACES)]}
    _write(pages, 0, facts)
    assert 0 < len(facts["places"]) < MOST_PLACES
    assert not any(pages[SLOT_BYTES:])


@forks
def test_once_it_is_over_windows_change_nothing() -> None:
    lines = WorkerLines()
    lines._share()
    lines.over()
    for each in (lines.close, lines.open, lines.close):
        each()
    assert lines.told() is None


def test_nothing_is_told_where_nothing_forks() -> None:
    lines = WorkerLines()
    lines.open()
    lines.close()
    assert lines.told() is None
