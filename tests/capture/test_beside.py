"""Threads of the program that run beside the one that makes the steps."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepscope.capture.beside import LONGEST_NAME, ThreadsBeside
from stepscope.capture.options import Options
from stepscope.capture.window import Window

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a thread ran")


def counts_numbers(over: threading.Event) -> None:
    while not over.is_set():
        sum(range(2_000))


def sleeps(over: threading.Event) -> None:
    over.wait()


@contextmanager
def threads(**named: object) -> Iterator[None]:
    over = threading.Event()
    running = [threading.Thread(target=does, args=(over,), name=name) for name, does in named.items()]  # type: ignore[arg-type]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in running:
            thread.join()


def test_who_computes_is_told_with_its_function() -> None:
    with threads(monitor=counts_numbers, idle=sleeps, **{"stepscope-lines": counts_numbers}):
        beside = ThreadsBeside()
        while not any(one["ran_ns"] > 5_000_000 for one in beside.told()):
            time.sleep(0.001)
        told = {one["name"]: one for one in beside.told()}
    monitor = told["monitor"]
    assert 0 < monitor["ran_ns"] <= monitor["passed_ns"]
    assert (Path(monitor["file"]).name, monitor["function"]) == ("test_beside.py", "counts_numbers")
    assert monitor["line"] == counts_numbers.__code__.co_firstlineno
    assert "stepscope-lines" not in told
    assert threading.main_thread().name not in told
    assert told.get("idle", {"ran_ns": 0})["ran_ns"] < monitor["ran_ns"]


def test_long_names_are_cut() -> None:
    with threads(**{"x" * 1_000: counts_numbers}):
        beside = ThreadsBeside()
        while not (told := beside.told()):
            time.sleep(0.001)
    assert [len(one["name"]) for one in told if one["name"].startswith("x")] == [LONGEST_NAME]


def test_a_window_has_who_ran_until_it_ended() -> None:
    window = Window(Options())
    assert window.facts([], settled=True)["machine"]["threads"] is None
    with threads(monitor=counts_numbers):
        window.open(3)
        began = time.thread_time()
        while time.thread_time() - began < 0.02:
            sum(range(2_000))
        window.ended = "recorded"
        told = window.facts([], settled=True)["machine"]["threads"]
        window.ended = "written"
    assert [one["name"] for one in told if one["name"] == "monitor"] == ["monitor"]
    assert window.facts([], settled=True)["machine"]["threads"] == told
