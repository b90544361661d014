"""``stepscope run --watch``: windows all through a run, and what is made of them beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.backend import Declined
from stepscope.cli.run import run as command
from stepscope.cli.watch import WATCH_ENDING, Watch
from tests.capture.jobs import SCRIPTS, environment, run
from tests.capture.pretended import MS, Job, Pretended
from tests.captures.environments import framework_python
from tests.kit.drawing import draw
from tests.kit.kineto_writer import write_kineto

WATCHED = {"watch": 2.0, "active": 2}
"""Windows of two steps, 2 s of steps apart."""


def names(ran: Job, *methods: str) -> list[str]:
    return [call[0] for call in ran.calls if call[0] in methods]


def periods(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = manifest["periods"]
    return told


def test_windows_come_all_through_the_run(job: Callable[..., Job]) -> None:
    ran = job(**WATCHED)
    ran.steps(500, lambda _: 20)
    manifest = ran.end()
    assert names(ran, "begin", "stop", "export") == ["begin", "stop", "export"] * 5
    told = periods(manifest)
    assert [each["number"] for each in told] == [0, 1, 2, 3, 4]
    assert [each["steps"] for each in told[:-1]] == [100] * 4
    assert {each["step_ns"] for each in told} == {20_000_000}
    assert [len(each["block_ns"]) for each in told[:-1]] == [8] * 4
    # Its steps, one to warm up, the recorded ones, and the one in which the profile is written.
    assert [late["first_step"] - early["first_step"] for early, late in pairwise(told)] == [104] * 4
    assert (manifest["phase"], ran.taken_out) == ("done", 1)


def test_without_it_there_is_one_window(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(5000)
    assert names(ran, "begin") == ["begin"]
    assert "periods" not in ran.end()


def test_the_oldest_profiles_are_removed(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pretended, "content", staticmethod(lambda: b"x" * 100))
    ran = job(**WATCHED, watch_bytes=350)
    ran.steps(900, lambda _: 20)
    manifest = ran.end()
    kept = sorted(path.name for path in Path(ran.options.out).glob("profile*"))
    assert names(ran, "export") == ["export"] * 9
    assert kept == ["profile7.json", "profile8.json", "profile9.json"]
    assert [file["path"] for file in manifest["files"]] == kept


def test_one_profile_is_kept_however_large(job: Callable[..., Job]) -> None:
    ran = job(**WATCHED, watch_bytes=1)
    ran.steps(300, lambda _: 20)
    assert len(ran.end()["files"]) == 1


def test_a_window_that_cannot_be_is_left_out(job: Callable[..., Job]) -> None:
    """The job's own profiler is at work, and then no longer."""
    failing: dict[str, Exception] = {}
    ran = job(failing, **WATCHED)
    ran.recorder._make = lambda options, _: Pretended(options, failing, ran.calls)
    ran.steps(100, lambda _: 20)
    failing["prepare"] = Declined("another profiler was at work in this process")
    ran.steps(100, lambda _: 20)
    failing.clear()
    ran.steps(200, lambda _: 20)
    manifest = ran.end()
    assert (
        names(ran, "prepare", "begin")
        == ["prepare", "begin", "prepare", "prepare", "begin", "prepare", "begin"][
            : len(names(ran, "prepare", "begin"))
        ]
    )
    assert names(ran, "begin").count("begin") >= 2
    assert len(periods(manifest)) >= 3


def test_only_the_first_rank_of_a_machine_is_watched(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    ran = job(**WATCHED)
    ran.steps(300, lambda _: 20)
    assert ran.calls == []
    assert ran.end()["no_profile"] == "with --watch only the first rank of each machine is recorded"


# --- beside the job ---------------------------------------------------------------------------------------------------


def drawn(input_ms: int) -> bytes:
    """A profile of two steps that wait so long for their input."""
    wide = " " * (input_ms - 2)
    return write_kineto(
        draw(
            "1 char = 1 ms\n"
            f"main   |[S        {wide}][T        {wide}]\n"
            f"main   |[i{wide}]a[s     ][j{wide}]b[t     ]\n"
            f"gpu0/7 |  {wide}[a      ]  {wide}[b      ]\n"
            "S = step 1\nT = step 2\ni = input\nj = input\n"
            "s = sync cudaStreamSynchronize\nt = sync cudaStreamSynchronize\n"
        )
    )


def watched(ran: Job, until: int, ms: Callable[[int], int], monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Run a job step by step, looking at its folder now and then; input is what makes its steps slow."""
    watch = Watch(Path(ran.options.out), 0)
    for number in range(until):
        monkeypatch.setattr(Pretended, "content", staticmethod(partial(drawn, ms(number) - 9)))
        ran.now += (ms(number) - 2) * MS
        ran.steps(1)
        if number % 50 == 0:
            watch._look()
    ran.end()
    watch.finish()
    return watch


def told(ran: Job) -> list[dict[str, Any]]:
    (path,) = Path(ran.options.out).glob(f"*{WATCH_ENDING}")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_steps_that_become_slower_are_said(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = job(**WATCHED)
    watched(ran, 800, lambda number: 30 if number >= 400 else 20, monkeypatch)
    lines = told(ran)
    (drift,) = [line for line in lines if line["kind"] == "drift"]
    assert drift["drift"] == {"before_ns": 20_000_000, "after_ns": 30_000_000}
    assert abs(drift["first_step"] - 400) <= 110
    assert list(drift["causes"]) == ["input"]
    said = capsys.readouterr()
    assert said.out == ""
    assert "steps have become slower: 30.0 ms instead of 20.0 ms, from step" in said.err
    assert "recorded steps show more of: waiting for input" in said.err
    assert "a step took 20.0 ms at first and 30.0 ms at last" in said.err
    assert {"run", "window", "period"} < {line["kind"] for line in lines}


def test_a_steady_run_is_quiet(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = job(**WATCHED)
    watched(ran, 800, lambda number: 20 + number % 3, monkeypatch)
    assert [line for line in told(ran) if line["kind"] == "drift"] == []
    said = capsys.readouterr().err
    assert said.startswith("stepscope: process ")
    assert "\n  no drift was found\n" in said


def test_profiles_that_cannot_be_read_are_counted(job: Callable[..., Job], capsys: pytest.CaptureFixture[str]) -> None:
    ran = job(**WATCHED)
    ran.steps(300, lambda _: 20)
    ran.end()
    Watch(Path(ran.options.out), 0).finish()
    assert "3 windows recorded, 3 kept (3 B)\n  3 of them could not be read\n" in capsys.readouterr().err


@pytest.mark.slow
def test_a_real_run_is_watched(tmp_path: Path) -> None:
    words = ("--watch=0.02", "--watch-bytes", "12000", "--no-stacks", "--python", framework_python("torch"))
    ran = run(tmp_path, *words, SCRIPTS / "torch_drifting.py", 320, 250)
    assert (ran.status, ran.stdout) == (0, b"done\n")
    assert "steps have become slower" in ran.stderr
    (path,) = ran.out.glob(f"*{WATCH_ENDING}")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    windows = [line for line in lines if line["kind"] == "window"]
    assert len(windows) >= 3
    assert any(line.get("parts_ns_per_step") for line in windows)
    kept = list(ran.out.glob("*.trace.json.gz"))
    assert 1 <= len(kept) < len(windows)
    assert sum(file.stat().st_size for file in kept) <= 12_000


@pytest.mark.parametrize(
    ("given", "minutes"),
    [(["--watch", "5"], 5.0), (["--watch=2.5"], 2.5), (["--watch"], 10.0), (["--watch", "0.5"], 0.5)],
)
def test_a_number_behind_watch_is_its_minutes_unless_it_is_the_command(given: list[str], minutes: float) -> None:
    context = command.make_context("run", [*given, "train.py", "7"])
    assert (context.params["watch"], context.params["command"]) == (minutes, ("train.py", "7"))
    assert command.make_context("run", ["--watch", "5"]).params["command"] == ("5",)


def test_a_bare_watch_leaves_the_script_its_name(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys; print(sys.argv[1:])")
    ran = run(tmp_path / "out", "--watch", script, "--watch", env=environment())
    assert (ran.status, ran.stdout) == (0, b"['--watch']\n")
