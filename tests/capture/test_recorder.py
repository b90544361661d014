"""The recording of one process, with a pretended profiler and clock."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.capture import settling, telling, window
from stepscope.capture.backend import Declined, placed
from stepscope.capture.options import MOST_BACKLOG, fewest_steps
from stepscope.capture.phases import RecordingPhase
from stepscope.capture.steps import CALL, OPTIMIZER
from stepscope.capture.stretches import record_for
from tests.capture.pretended import MS, Job, Pretended


def test_a_window_is_recorded_once_step_time_has_settled(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(40, lambda number: max(2, 512 >> number))
    manifest = ran.end()
    assert [call for call in ran.calls if call[0] != "mark"] == [
        ("prepare", 11, True), ("begin", 12), ("stop",), ("export",),
    ]  # fmt: skip
    assert [call[1] for call in ran.calls if call[0] == "mark"] == list(range(13, 32))
    assert manifest["window"] == {"first_step": 12, "steps": 20, "settled": True, "ended": "recorded"}
    assert (manifest["failures"], manifest["no_profile"], ran.taken_out) == ([], None, 1)


def test_recording_costs_what_it_costs(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(6)
    ran.steps(21, lambda _: 3)
    ran.steps(15)
    manifest = ran.end()
    assert manifest["step_ns"] == {
        "unrecorded": 2 * MS, "recorded": 3 * MS, "timed_after": 10,
        "each": {"unrecorded": [2 * MS] * 10, "recorded": [3 * MS] * 20},
    }  # fmt: skip
    assert manifest["overhead"] == 1.5


def test_start_up_is_no_part_of_what_recording_is_compared_with(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(12, lambda number: 3 if number > 6 else 2 if number > 2 else 500)
    assert ran.end()["step_ns"]["unrecorded"] == 2 * MS


def test_batches_that_come_in_bursts_are_settled(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(60, lambda number: 24 if number % 2 else 1)
    manifest = ran.end()
    assert manifest["window"]["settled"]
    assert manifest["step_ns"]["unrecorded"] == 12.5 * MS


def test_batches_made_while_the_profile_was_written_tell_nothing_of_a_step(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "children", lambda: 2)
    ran = job()
    ran.steps(27, lambda _: 30)
    ran.steps(4, lambda _: 3)
    ran.steps(12, lambda _: 30)
    manifest = ran.end()
    assert manifest["step_ns"]["each"]["unrecorded"] == [30 * MS] * 10
    assert manifest["machine"]["workers"] == 2


def test_steps_that_never_settle_are_recorded_all_the_same(job: Callable[..., Job]) -> None:
    ran = job(settle=10)
    ran.steps(60, lambda number: int(1.5 ** min(number, 15)))
    assert ran.end()["window"] == {"first_step": 16, "steps": 6, "settled": False, "ended": "recorded"}


def test_ranks_begin_together(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (telling, settling):
        monkeypatch.setattr(each, "rank_and_world", lambda: (0, 2))
    ran = job()
    ran.steps(30, lambda number: 1 + number)
    assert ran.end()["window"]["first_step"] == 11


def test_short_steps_are_recorded_for_no_longer_than_the_budget(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(40, lambda _: 150)
    assert ran.end()["window"]["steps"] == 14  # The last begins within 2 s.


def test_long_steps_are_recorded_until_there_are_enough(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(40, lambda _: 3_000)
    assert ran.end()["window"]["steps"] == 6


def test_calls_of_models_are_steps_unless_optimizers_step_yet(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validation before a training begins is recorded, since it may be all there is; then the training is."""
    monkeypatch.setattr(Pretended, "framework", "torch")
    ran, over = job(), []
    ran.recorder.on_calls_over.append(lambda: over.append(1))
    ran.steps(45, source=CALL)
    assert ran.recorder.phase is RecordingPhase.LISTENING
    assert (len(ran.recorder.manifest.files), over, ran.taken_out) == (1, [1], 0)
    ran.steps(30, source=CALL)
    ran.steps(3)
    assert ran.recorder._facts()["steps_from"] == "repeated calls"  # What is said is still of what was recorded.
    ran.steps(40)
    manifest = ran.end()
    assert (manifest["steps_from"], manifest["steps_seen"], len(manifest["files"])) == ("optimizer steps", 37, 2)
    assert ran.taken_out == 1


def test_a_stretch_of_time_gives_way_to_steps(job: Callable[..., Job]) -> None:
    ran = job()
    assert record_for(ran.recorder, "pretended", 2.0)
    assert ran.recorder.phase is RecordingPhase.LISTENING
    ran.steps(40)
    manifest = ran.end()
    assert (manifest["window"]["steps"], len(manifest["files"])) == (20, 2)


def test_a_stretch_in_which_nothing_ran_is_none(job: Callable[..., Job]) -> None:
    failing: dict[str, Exception] = {"export": Declined("nothing ran")}
    ran = job(failing)
    assert not record_for(ran.recorder, "pretended", 2.0)
    failing.clear()
    assert record_for(ran.recorder, "pretended", 2.0)
    manifest = ran.end()
    assert (manifest["ended"], len(manifest["files"])) == ("no steps were found; 2 s were recorded", 1)


def test_the_jobs_own_profiler_is_waited_for(job: Callable[..., Job]) -> None:
    ran, at_work = job(), True
    ran.recorder.others_record = lambda: at_work
    ran.steps(30)
    assert (ran.calls, ran.recorder._why_none()) == (
        [], "the job's own profiler was at work, and only one can record at a time",
    )  # fmt: skip
    at_work = False
    ran.steps(30)
    assert ran.end()["window"]["first_step"] == 32


@pytest.mark.parametrize(("within", "windows"), [(0, 1), (2, 1), (3, 1)])
def test_a_window_that_makes_way_too_early_is_recorded_again(
    job: Callable[..., Job], within: int, windows: int
) -> None:
    ran = job()
    ran.recorder.others_record = lambda: False
    ran.steps(6 + within)
    ran.recorder.make_way()
    ran.steps(40)
    manifest = ran.end()
    assert len(manifest["files"]) == windows
    assert manifest["window"]["ended"] == ("the job started its own profiler" if within == 3 else "recorded")


def test_traces_of_the_jobs_own_profiler_are_noted(job: Callable[..., Job], tmp_path: Path) -> None:
    ran = job()
    ran.recorder.wrote_itself("own.json")
    ran.recorder.wrote_itself("own.json")
    ran.recorder.wrote_itself(str(tmp_path / ".ours.part.json"))
    assert ran.end()["own_traces"] == [str(Path("own.json").absolute())]


def test_too_few_steps_are_said_plainly(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(5)
    manifest = ran.end()
    assert manifest["no_profile"].startswith("fewer than 12 steps ran (5 did)")
    assert fewest_steps(ran.options) == 12


def test_a_job_that_ends_in_its_window_keeps_the_steps_it_has(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(9)
    manifest = ran.end()
    assert manifest["window"] == {"first_step": 6, "steps": 3, "settled": True, "ended": "the job ended"}
    assert len(manifest["files"]) == 1


def test_a_window_ends_at_its_time(job: Callable[..., Job]) -> None:
    ran = job(max_seconds=0.1)
    ran.steps(20, lambda _: 40)
    assert ran.end()["window"]["ended"] == "the window reached its 0.1 s"


def test_a_step_longer_than_the_window_is_recorded_whole(job: Callable[..., Job]) -> None:
    ran = job(max_seconds=0.1)
    ran.steps(20, lambda _: 300)
    manifest = ran.end()
    window = {"first_step": 6, "steps": 1, "settled": True, "ended": "the window reached its 0.1 s"}
    assert (manifest["window"], manifest["step_ns"]["recorded"]) == (window, 300 * MS)


def test_a_window_without_a_whole_step_knows_what_one_takes(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(6, lambda _: 300)
    ran.now += 400_000 * MS
    assert ran.recorder._window.overdue() == "no step ended within 300 s"
    ran.recorder._guarded_close("no step ended within 300 s")
    manifest = ran.end()
    assert (manifest["window"]["steps"], manifest["window"]["ended"]) == (0, "no step ended within 300 s")
    assert manifest["step_ns"]["unrecorded"] == 300 * MS


def test_a_profile_that_is_too_large_is_not_kept(job: Callable[..., Job]) -> None:
    ran = job({"export": Declined("the profile had 20 bytes, more than 10")})
    ran.steps(30)
    manifest = ran.end()
    assert (manifest["no_profile"], manifest["files"]) == ("the profile had 20 bytes, more than 10", [])


@pytest.mark.parametrize("size", [10, 11])
def test_the_limit_of_a_profile_is_its_size_before_it_is_packed(tmp_path: Path, size: int) -> None:
    part = tmp_path / ".part"
    part.write_bytes(b"x" * size)
    if size > 10:
        with pytest.raises(Declined, match="the profile had 11 bytes, more than 10: record fewer steps, or no stacks"):
            placed(str(part), str(tmp_path), ".json.gz", 10, compress=True)
        assert list(tmp_path.iterdir()) == []
    else:
        path = placed(str(part), str(tmp_path), ".json.gz", 10, compress=True)
        assert gzip.decompress(Path(path).read_bytes()) == b"x" * size
        assert list(tmp_path.iterdir()) == [Path(path)]


def test_a_window_ends_where_the_job_grows(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    """The watchdog sees it; the thread that trains ends the window, with the step that runs."""
    size = 1000
    monkeypatch.setattr(window, "resident_bytes", lambda: size)
    ran = job()
    ran.steps(8)
    assert ran.recorder._window.overdue() is None
    size = 1 << 40
    ran.recorder._too_long(str(ran.recorder._window.overdue()))
    ran.steps(12)
    ended = ran.end()["window"]
    assert (ended["steps"], ended["ended"][:16]) == (2, "the job grew by ")


def test_what_cannot_start_is_tried_with_less(job: Callable[..., Job]) -> None:
    ran = job({"prepare": RuntimeError("only heavy")})
    ran.steps(30)
    manifest = ran.end()
    assert [call for call in ran.calls if call[0] == "prepare"] == [("prepare", 5, True), ("prepare", 5, False)]
    assert manifest["failures"] == [{"when": "starting the profiler", "what": "RuntimeError: only heavy"}]
    assert len(manifest["files"]) == 1


@pytest.mark.parametrize("method", ["prepare", "begin", "mark", "stop", "export"])
def test_no_failure_of_the_profiler_reaches_the_job(job: Callable[..., Job], method: str) -> None:
    ran = job({method: RuntimeError("broken")})
    ran.steps(40)
    manifest = ran.end()
    assert "RuntimeError: broken" in {failure["what"] for failure in manifest["failures"]}
    assert manifest["no_profile"]
    assert manifest["files"] == []
    assert ran.recorder.phase is RecordingPhase.DONE
    assert ran.taken_out == 1
    assert ("discard",) in ran.calls or method not in ("begin", "mark")


def test_a_foreign_profiler_is_declined_with_its_sentence(job: Callable[..., Job]) -> None:
    ran = job({"prepare": Declined("another profiler was at work")})
    ran.steps(30)
    manifest = ran.end()
    assert (manifest["no_profile"], manifest["failures"]) == ("another profiler was at work", [])


def test_the_job_starts_its_own_profiler_within_the_window(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(9)
    ran.recorder.make_way()
    ran.steps(20)
    manifest = ran.end()
    assert manifest["window"]["ended"] == "the job started its own profiler"
    assert (manifest["window"]["steps"], len(manifest["files"])) == (3, 1)


def test_the_jobs_own_numbers_name_the_steps(job: Callable[..., Job]) -> None:
    ran = job()
    for number in range(100, 130):
        ran.now += MS
        ran.recorder.step(number)
    assert ran.end()["window"]["first_step"] == 106


def test_a_job_without_steps_is_recorded_for_a_stretch_of_time(job: Callable[..., Job]) -> None:
    ran = job()
    record_for(ran.recorder, "pretended", 2.0)
    manifest = ran.end()
    assert [call[0] for call in ran.calls] == ["begin", "stop", "export"]
    assert ran.calls[0] == ("begin", None)
    assert len(manifest["files"]) == 1


def test_a_job_with_steps_is_not_recorded_for_a_stretch_of_time(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(2)
    record_for(ran.recorder, "pretended", 2.0)
    assert ran.calls == []


def test_a_child_forked_in_the_window_leaves_it_to_its_parent(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(8)
    ran.recorder.forked()
    ran.steps(30)
    assert [call for call in ran.calls if call[0] == "stop"] == []


@pytest.mark.parametrize(("source", "first", "recorded"), [(CALL, 46, 15), (OPTIMIZER, 6, 1)])
def test_calls_that_work_off_what_came_in_meanwhile_are_neither_recorded_nor_timed(
    job: Callable[..., Job], source: int, first: int, recorded: int
) -> None:
    """A server waits 15 ms for each request; while the profiler starts and stops, and the profile is written, they
    queue up. In a loop that trains, short steps are steps."""
    ran = job()
    ran.steps(6, lambda _: 15, source)
    ran.steps(40, lambda _: 1, source)
    ran.steps(21, lambda _: 15, source)
    ran.steps(30, lambda _: 1, source)
    ran.steps(20, lambda _: 15, source)
    manifest = ran.end()
    assert manifest["window"]["first_step"] == first
    assert set(manifest["step_ns"]["each"]["recorded"]) == {recorded * MS}
    assert (set(manifest["step_ns"]["each"]["unrecorded"]) == {15 * MS}) == (source == CALL)


def test_a_backlog_is_not_waited_for_without_end(job: Callable[..., Job]) -> None:
    ran = job()
    ran.steps(6, lambda _: 15, CALL)
    ran.steps(300, lambda _: 1, CALL)
    assert ran.end()["window"]["first_step"] == MOST_BACKLOG + 6
