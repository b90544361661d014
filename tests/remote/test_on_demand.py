"""Windows that are asked for while a job runs, with a profiler that only remembers."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stepscope.capture import on_demand
from stepscope.capture.backend import Backend, Declined
from stepscope.capture.on_demand import OnDemand, WindowRequest
from stepscope.capture.options import Options
from stepscope.capture.state import shared
from stepscope.capture.steps import OPTIMIZER
from stepscope.capture.torch_backend import sessions

KEY = ("torch", 1)
WAIT_S = 20.0


class Remembering(Backend):
    """Remembers what was asked of it."""

    framework = "torch"
    warm_up = 1

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.calls: list[Any] = []
        self.fails_at = ""

    def _called(self, name: str, *more: Any) -> None:
        self.calls.append((name, *more))
        if self.fails_at == name:
            raise RuntimeError("no device")

    def prepare(self, number: int) -> None:
        self._called("prepare", number)

    def begin(self, number: int | None) -> None:
        self._called("begin", number)

    def mark(self, number: int) -> None:
        self._called("mark", number)

    def stop(self) -> None:
        self._called("stop")

    def discard(self) -> None:
        self._called("discard")

    def export(self, folder: str) -> list[str]:
        return [f"{folder}/profile"]


class Job:
    """Steps, and windows asked for on another thread."""

    def __init__(self) -> None:
        self.backend: Remembering | None = None
        self.fails_at = ""
        self.demand = OnDemand(self._made)
        self.answers: list[str | Exception] = []

    def _made(self, options: Options) -> Backend:
        self.backend = Remembering(options)
        self.backend.fails_at = self.fails_at
        return self.backend

    def ask(self, **more: Any) -> threading.Thread:
        """Ask for a window; the thread that waits for it."""
        asked, before = WindowRequest(**{"folder": "out", "bound_s": WAIT_S, **more}), len(self.answers)
        thread = threading.Thread(target=self._ask, args=(asked,), daemon=True)
        thread.start()
        until(lambda: self.demand._window is not None or len(self.answers) > before)
        return thread

    def _ask(self, asked: WindowRequest) -> None:
        try:
            self.answers.append(self.demand.capture(asked))
        except Exception as error:  # noqa: BLE001  Looked at by the test.
            self.answers.append(error)

    def edges(self, count: int) -> None:
        for _ in range(count):
            self.demand.call(OPTIMIZER, KEY)

    def run(self, asking: threading.Thread) -> None:
        """Steps until the window is over."""
        ends = time.monotonic() + WAIT_S
        while asking.is_alive() and time.monotonic() < ends:
            self.edges(1)
            time.sleep(0.002)
        asking.join(WAIT_S)


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT_S
    while not holds() and time.monotonic() < ends:
        time.sleep(0.001)
    assert holds()


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setattr(on_demand, "PATIENCE_S", 1.0)
    monkeypatch.setattr(on_demand, "MAIN_THREAD_S", 3.0)
    yield Job()
    assert sessions.make_way is None


def test_the_next_steps_are_recorded(job: Job) -> None:
    job.edges(10)
    asking = job.ask(steps=3)
    job.edges(5)
    asking.join(WAIT_S)
    assert job.answers == ["out/profile"]
    assert job.backend is not None
    # A step warms the profiler up; the numbers are the job's.
    assert job.backend.calls == [("prepare", 11), ("begin", 12), ("mark", 13), ("mark", 14), ("stop",)]
    job.edges(3)
    assert job.demand.status()["steps"] == 18
    assert not job.demand.status()["recording"]


def test_a_duration_ends_with_a_whole_step(job: Job) -> None:
    job.edges(3)
    asking = job.ask(duration_s=0.01)
    job.edges(2)
    time.sleep(0.05)  # A step longer than what was asked for.
    job.edges(1)
    asking.join(WAIT_S)
    assert job.answers == ["out/profile"]
    assert job.backend is not None
    assert job.backend.calls == [("prepare", 4), ("begin", 5), ("stop",)]


def test_what_the_job_calls_a_step_is_one(job: Job) -> None:
    job.demand.step(100)
    asking = job.ask(steps=1)
    for number in (101, 102, 103):
        job.demand.step(number)
    asking.join(WAIT_S)
    assert job.backend is not None
    assert job.backend.calls == [("prepare", 102), ("begin", 103), ("stop",)]


def test_one_window_at_a_time(job: Job) -> None:
    job.edges(1)
    asking = job.ask(steps=1)
    with pytest.raises(Declined, match="another profiling session is active"):
        job.demand.capture(WindowRequest("out", 1.0, 0.1))
    job.run(asking)
    assert job.answers == ["out/profile"]


@pytest.mark.parametrize("slot", ["session", "recorder"])
def test_others_of_ours_go_first(job: Job, monkeypatch: pytest.MonkeyPatch, slot: str) -> None:
    class Recording:
        class phase:
            value = "recording"

    monkeypatch.setattr(shared, slot, Recording())
    with pytest.raises(Declined, match="only one can at a time"):
        job.demand.capture(WindowRequest("out", 1.0, 0.1))


def test_without_pytorch_nothing_is_recorded(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(Declined, match="PyTorch is not imported"):
        job.demand.capture(WindowRequest("out", 1.0, 0.1))


@pytest.mark.parametrize("when", ["prepare", "begin", "mark"])
def test_a_profiler_that_fails_does_not_end_the_job(job: Job, when: str) -> None:
    job.fails_at = when
    job.edges(1)
    job.run(job.ask(steps=3))
    (error,) = job.answers
    assert str(error) == "no device"
    job.fails_at = ""
    job.run(job.ask(steps=1))
    assert job.answers[1:] == ["out/profile"]


def test_a_job_without_steps_is_recorded_where_it_stands(job: Job) -> None:
    asking = job.ask(duration_s=0.1)
    ends = time.monotonic() + WAIT_S
    while asking.is_alive() and time.monotonic() < ends:
        pass  # The main thread is at work, and calls no hook.
    assert job.answers == ["out/profile"]
    assert job.backend is not None
    assert job.backend.calls == [("begin", None), ("stop",)]


def test_an_import_is_not_interrupted(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiler may need a module that is half imported."""
    slow = "import time\nends = time.monotonic() + 1.5\nwhile time.monotonic() < ends: pass\n"
    (tmp_path / "slow_to_import.py").write_text(slow)
    monkeypatch.syspath_prepend(tmp_path)
    asking = job.ask(duration_s=0.05)
    importlib.import_module("slow_to_import")
    assert job.backend is not None
    assert job.backend.calls == []
    ends = time.monotonic() + WAIT_S
    while asking.is_alive() and time.monotonic() < ends:
        pass
    assert job.answers == ["out/profile"]


def test_steps_that_do_not_come_are_not_waited_for(job: Job) -> None:
    job.ask(steps=3).join(WAIT_S)
    (error,) = job.answers
    assert str(error).startswith("no step ended within 1 s: call stepscope.step() once per iteration")
    assert not job.demand.status()["recording"]


def test_a_step_that_does_not_end_is_cut(job: Job) -> None:
    job.edges(1)
    asking = job.ask(duration_s=0.01, bound_s=0.2)
    job.edges(2)
    ends = time.monotonic() + WAIT_S
    while asking.is_alive() and time.monotonic() < ends:
        pass
    assert job.answers == ["out/profile"]
    assert job.backend is not None
    assert job.backend.calls[-1] == ("stop",)


def test_steps_of_another_thread_that_do_not_end_are_given_up(job: Job) -> None:
    ends = threading.Event()

    def train() -> None:
        job.edges(2)
        ends.wait(WAIT_S)
        job.edges(1)

    asking = job.ask(duration_s=0.01, bound_s=0.2)
    trains = threading.Thread(target=train)
    trains.start()
    asking.join(WAIT_S)
    (error,) = job.answers
    assert "not those of the main thread" in str(error)
    assert job.backend is not None
    assert job.backend.calls[-1] != ("discard",)
    ends.set()
    trains.join(WAIT_S)
    assert job.backend.calls[-1] == ("discard",)


def test_the_jobs_own_profiler_is_made_way_for(job: Job) -> None:
    job.edges(1)
    asking = job.ask(steps=50)
    job.edges(5)
    assert sessions.make_way is not None
    sessions.make_way()
    asking.join(WAIT_S)
    assert job.answers == ["out/profile"]  # What there was until then.
    asking = job.ask(steps=50)
    job.edges(1)
    sessions.make_way()
    asking.join(WAIT_S)
    assert str(job.answers[1]) == "the job started a profiler of its own"


def test_a_client_that_goes_ends_the_window(job: Job) -> None:
    job.edges(1)
    asking = job.ask(steps=1000)
    job.edges(4)
    job.demand.end()
    job.edges(1)
    asking.join(WAIT_S)
    assert job.answers == ["out/profile"]


def test_a_job_that_ends_keeps_what_was_recorded(job: Job) -> None:
    taken_out: list[Path | None] = []
    job.demand.on_done.append(lambda: taken_out.append(None))
    job.edges(1)
    asking = job.ask(steps=1000)
    job.edges(4)
    job.demand.close()
    asking.join(WAIT_S)
    assert (job.answers, taken_out) == (["out/profile"], [None])


def test_a_forked_child_has_no_window(job: Job) -> None:
    job.edges(1)
    job.ask(steps=1000)
    sessions.make_way = None
    job.demand.forked()
    assert not job.demand.status()["recording"]
    job.edges(3)
    assert job.backend is not None
    assert job.backend.calls == []
