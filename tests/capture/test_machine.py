"""What a manifest says of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.capture import machine as capture_machine
from stepscope.capture.machine import children, machine, usable_cores


def test_cores_are_those_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    monkeypatch.setattr(capture_machine, "_QUOTA", "/nowhere")
    assert usable_cores() == 2


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("", 8)])
def test_no_more_than_the_container_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(capture_machine, "_QUOTA", str(tmp_path / "cpu.max"))
    assert usable_cores() == cores


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({}, None),
        ({"LOCAL_WORLD_SIZE": "8"}, 8),
        ({"SLURM_NTASKS_PER_NODE": "4"}, 4),
        ({"LOCAL_WORLD_SIZE": "?"}, None),
    ],
)
def test_ranks_of_this_machine_are_the_launchers(environment: dict[str, str], ranks: int | None) -> None:
    assert machine(environment)["ranks_here"] == ranks


def test_children_are_those_of_multiprocessing() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from stepscope.capture.machine import children\n"
        "before = children()\n"
        "import multiprocessing, time\n"
        "if __name__ == '__main__':\n"
        "    made = [multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,)) for _ in range(2)]\n"
        "    for one in made: one.start()\n"
        "    print(before, children())\n"
        "    for one in made: one.kill()\n"
    )
    sources = str(Path(capture_machine.__file__).parents[2])
    ran = subprocess.run([sys.executable, "-c", code, sources], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == ["None", "2"]
    assert children() is None or children() >= 0
