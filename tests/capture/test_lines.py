"""The lines that a thread of the job is at, looked up while it is recorded."""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from collections.abc import Callable
from itertools import accumulate, count, pairwise
from pathlib import Path

import pytest

from stepscope.capture import lines as module
from stepscope.capture.lines import ThreadLines, working_thread
from stepscope.capture.options import Options
from stepscope.capture.xplane_backend import JaxBackend


def watched(work: Callable[[threading.Event], object]) -> ThreadLines:
    """What is seen of a thread that does this until it is told to end."""
    over, looks = threading.Event(), ThreadLines()
    thread = threading.Thread(target=work, args=(over,))
    thread.start()
    assert thread.ident is not None
    looks.start(thread.ident)
    try:
        while not looks.facts():
            over.wait(0.01)
    finally:
        looks.stop()
        over.set()
        thread.join()
    return looks


def waits(over: threading.Event) -> None:
    over.wait()


def turns(over: threading.Event) -> None:
    while not over.is_set():
        pass


@pytest.mark.parametrize("work", [waits, turns])
def test_the_job_s_own_line_is_seen_not_that_of_a_module(work: Callable[[threading.Event], object]) -> None:
    found = watched(work).facts()["looks"]
    code = work.__code__
    assert {(file, function) for file, _, function in found["places"]} == {(__file__, work.__name__)}
    assert all(code.co_firstlineno < line <= code.co_firstlineno + 2 for _, line, _ in found["places"])
    assert len(found["time_ns"]) == len(found["place"])
    assert max(found["place"]) == len(found["places"]) - 1
    times = list(accumulate(found["time_ns"]))
    assert times == sorted(times)
    assert abs(times[0] - time.time_ns()) < 3_600e9


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not count it")
def test_how_long_the_thread_had_no_core_is_written_beside_each_look() -> None:
    found = watched(turns).facts()["looks"]
    assert len(found["core_wait_ns"]) == len(found["time_ns"])
    assert all(step >= 0 for step in found["core_wait_ns"] if step is not None)


def test_how_long_it_had_no_core_is_read_more_seldom_than_looks_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter(range(7, 1_000))
    monkeypatch.setattr(module, "_waited", lambda scheduled: next(counts))
    lines = of_a_second(monkeypatch, lambda number: 0, scheduled=3)
    told = [step for step in lines._core_waits(len(lines._times)) if step is not None]
    assert 20 < len(told) < 34 < len(lines._times)
    assert told == [7] + [1] * (len(told) - 1)


def test_of_a_thread_that_ends_before_its_looks_do_what_was_read_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([7, 9])

    def waited(scheduled: int) -> int:
        count = next(counts, None)
        if count is None:
            raise ProcessLookupError
        return count

    monkeypatch.setattr(module, "_waited", waited)
    lines = of_a_second(monkeypatch, lambda number: 0, scheduled=3)
    assert [step for step in lines._core_waits(len(lines._times)) if step is not None] == [7, 2]
    assert len(lines._times) > 34


def test_a_system_that_does_not_count_it_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_scheduled", lambda thread: None)
    assert "core_wait_ns" not in watched(turns).facts()["looks"]


def of_a_second(
    monkeypatch: pytest.MonkeyPatch,
    took_ns: Callable[[int], int],
    *,
    kept_ns: int = 0,
    scheduled: int | None = None,
    late: list[int] | None = None,
) -> ThreadLines:
    """Looks of which each takes so long, by a clock that stands still but while they are made and waited for: a second
    of it, on any machine. Native code keeps the interpreter, and waiting for it takes as much processor time."""
    now, spent = 0, 0
    lines = ThreadLines()

    def sleep(seconds: float) -> None:
        nonlocal now, spent
        now, spent = now + round(seconds * 1e9) + kept_ns, spent + kept_ns
        lines._over = now > 1_000_000_000

    def one(self: ThreadLines, ident: int, late_ns: int) -> None:
        nonlocal now, spent
        took = took_ns(len(self._times))
        (late if late is not None else []).append(late_ns)
        now, spent = now + took, spent + took
        self._times.append(now)

    monkeypatch.setattr(module.ThreadLines, "_one", one)
    monkeypatch.setattr(module, "perf_counter_ns", lambda: now)
    monkeypatch.setattr(module, "thread_time_ns", lambda: spent)
    monkeypatch.setattr(module, "sleep", sleep)
    lines._look_on(0, scheduled)
    return lines


@pytest.mark.parametrize(("look_ns", "fewest", "most"), [(1_000_000, 8, 9), (10_000, 240, 250)], ids=["dear", "cheap"])
def test_dear_looks_are_fewer(monkeypatch: pytest.MonkeyPatch, look_ns: int, fewest: int, most: int) -> None:
    lines = of_a_second(monkeypatch, lambda number: look_ns)
    looks = len(lines._times)
    assert fewest <= looks <= most
    assert lines.cost()["looking"]["spent_ns"] == looks * look_ns <= 1_000_000_000 * module.MOST_SHARE + look_ns


def test_one_dear_look_makes_no_gap_in_which_whole_steps_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = of_a_second(monkeypatch, lambda number: 1_000_000 if number == 20 else 30_000)
    gaps = [later - earlier for earlier, later in pairwise(lines._times)]
    assert max(gaps) < 40_000_000
    assert lines.spent_ns <= 1_000_000_000 * module.MOST_SHARE + 100_000


def test_pauses_are_of_changing_length_and_not_in_time_with_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    times = of_a_second(monkeypatch, lambda number: 0)._times
    assert len({later - earlier for earlier, later in pairwise(times)}) > 100


def test_waiting_while_native_code_keeps_the_interpreter_is_not_counted_and_asks_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = sys.getswitchinterval()
    try:
        lines = of_a_second(monkeypatch, lambda number: 10_000, kept_ns=20_000_000)
        assert sys.getswitchinterval() == pytest.approx(module.LONGEST_SWITCH_S)
    finally:
        sys.setswitchinterval(own)
    assert len(lines._times) > 25
    assert lines.spent_ns < 30_000_000


@pytest.mark.parametrize(("asked", "told_ns"), [(60, 20_000_000), (2, 0)])
def test_a_look_is_told_from_when_it_was_to_be_where_it_asked_for_the_interpreter_all_the_time(
    monkeypatch: pytest.MonkeyPatch, asked: int, told_ns: int
) -> None:
    waits = count(0, asked)
    monkeypatch.setattr(module, "_waits", lambda: next(waits))
    late: list[int] = []
    of_a_second(monkeypatch, lambda number: 10_000, kept_ns=20_000_000, late=late)
    assert set(late) == {told_ns}


def test_what_kept_a_look_is_two_looks_at_one_line() -> None:
    lines = ThreadLines()
    lines._one(threading.get_ident(), 5_000_000)
    assert lines._times[1] - lines._times[0] == 5_000_000
    assert lines._seen[0] == lines._seen[1] >= 0


def test_a_profiler_that_records_new_threads_records_none_of_ours() -> None:
    called = []
    threading.setprofile(lambda frame, event, argument: called.append(frame.f_code.co_filename))
    try:
        assert watched(turns).facts()
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
    assert called.count(__file__)  # The thread of the job.
    assert called.count(module.__file__) < 5


def test_short_python_is_met_and_python_s_own_interval_comes_back() -> None:
    own = sys.getswitchinterval()
    found = watched(turns)
    assert sys.getswitchinterval() == own
    assert 0 < found.spent_ns <= found.passed_ns


def test_an_interval_that_the_job_sets_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = sys.getswitchinterval()
    looks, over = ThreadLines(), threading.Event()
    thread = threading.Thread(target=waits, args=(over,))
    thread.start()
    assert thread.ident is not None
    try:
        looks.start(thread.ident)
        assert sys.getswitchinterval() == pytest.approx(module.SWITCH_S)
        sys.setswitchinterval(0.007)
        looks.stop()
        assert sys.getswitchinterval() == pytest.approx(0.007)
    finally:
        sys.setswitchinterval(own)
        over.set()
        thread.join()


@pytest.mark.parametrize("stacks", [True, False])
def test_only_a_recording_with_stacks_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacks: bool) -> None:
    asked = []
    monkeypatch.setattr(module.ThreadLines, "start", lambda self, ident: asked.append(ident))
    backend = JaxBackend(Options(out=str(tmp_path), stacks=stacks))
    monkeypatch.setattr(backend, "start", lambda folder: None)
    monkeypatch.setattr(backend, "collection_range", lambda: None)
    backend.begin(None)
    assert asked == [threading.get_ident()] * stacks
    assert "looks" not in backend.facts()


def test_a_thread_of_ours_looks_at_the_main_thread() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(working_thread()), name="stepscope-stretches")
    thread.start()
    thread.join()
    assert found == [threading.main_thread().ident]
    assert working_thread() == threading.get_ident()


def test_of_each_function_met_the_lines_of_its_calls_are_kept() -> None:
    code = waits.__code__
    kept = {tuple(told[:3]): told[3] for told in watched(waits).facts()["looks"]["calls"]}
    assert kept[code.co_filename, code.co_firstlineno, "waits"] == {"wait": code.co_firstlineno + 1}


def test_files_of_packages_are_named_and_none_that_is_the_jobs_though_it_be_gone_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = types.ModuleType("gone")
    script.__file__ = str(tmp_path / "pathlib.py")
    monkeypatch.setitem(sys.modules, "gone", script)
    backend = JaxBackend(Options(out=str(tmp_path), stacks=False))
    monkeypatch.setattr(backend, "start", lambda folder: None)
    monkeypatch.setattr(backend, "collection_range", lambda: None)
    backend.begin(None)
    monkeypatch.delitem(sys.modules, "gone")
    told = backend.facts()["package_files"].split("/")
    assert "threading.py" in told
    assert "pathlib.py" not in told
    assert Path(__file__).name not in told
