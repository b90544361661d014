"""The input pipeline: stages with time and overlap, and what those do who prepare batches."""

from __future__ import annotations

import pytest

from stepscope.analysis.input_stages import DEVICE, LOADER, TRAINING, InputStages, Stage
from stepscope.analysis.summary import feeds_devices
from stepscope.diagnosis.engine import diagnose
from stepscope.report import input_pipeline, input_sections
from tests.diagnosis.loops import facts_with, loop, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream

US = 1_000
STEP = 10_000
USED = 4


def stages_of(found: InputStages | None) -> dict[tuple[str, str], tuple[int, int | None]]:
    assert found is not None
    per_step = {(s.name, s.side): (s.ns, s.overlapped_ns) for s in found.stages}
    return {key: (ns // US // USED, None if o is None else o // US // USED) for key, (ns, o) in per_step.items()}


def prepared(busy_us: int, *, threads: int = 1, frame: str = "aten::div"):
    """Batches are prepared on other threads for so long of the 4 ms in which the main thread waits for one."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 4_000)
        for thread in range(threads):
            if busy_us:
                drawing.annotation("load batch", start, busy_us, f"loader {thread}")
                drawing.host(frame, start, busy_us, thread=f"loader {thread}")
        call = drawing.call("cudaMemcpyAsync", start + 4_000, 5)
        drawing.copy(call, "HtoD", start + 4_005, 495)
        work(drawing, start + 4_500, start + STEP)

    return facts_with(loop(STEP, step))


def test_stages_of_the_training_thread_their_time_and_what_the_device_works_through():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 6_000)
        drawing.input_wait(start + 5_000, 4_000)
        drawing.python("dataset.py(9): decode_image", start + 5_000, 2_000)
        drawing.host("aten::stack", start + 8_000, 1_000)

    assert stages_of(facts_with(loop(STEP, step)).input_stages) == {
        ("decode", TRAINING): (2_000, 1_000),
        ("other", TRAINING): (1_000, 0),
        ("collate", TRAINING): (1_000, 0),
    }


def test_the_innermost_stage_counts():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 3_000)
        drawing.python("dataset.py(9): transform", start, 3_000)
        drawing.python("dataset.py(20): read_file", start + 500, 1_000)
        work(drawing, start + 3_000, start + STEP)

    found = stages_of(facts_with(loop(STEP, step)).input_stages)
    assert found == {("transform", TRAINING): (2_000, 0), ("read", TRAINING): (1_000, 0)}


@pytest.mark.parametrize(
    ("busy_us", "threads", "words"),
    [
        (3_900, 1, "batches works 97.5 % of the time it is waited for, mostly in `transform`: there are too few"),
        (3_900, 2, "The 2 threads that prepare batches work 97.5 % of the time they are waited for, mostly"),
        (400, 1, "works 10.0 % of the time it is waited for: what batches are read from"),
        (2_800, 1, "works 70.0 % of the time it is waited for, mostly in `transform`."),
    ],
)
def test_a_wait_is_followed_to_those_who_prepare_batches(busy_us: int, threads: int, words: str):
    facts = prepared(busy_us, threads=threads)
    producers = facts.input_stages.producers
    assert (producers.threads, producers.busy_share) == (threads, busy_us / 4_000)
    (finding,) = (f for f in diagnose(facts).findings if f.rule == "input_bound")
    assert words in finding.why


def ahead(busy_us: int, *, threads: int = 1, devices: int = 1):
    """Batches are prepared so long on other threads while the devices work on the one before: nobody waits."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 10)
        for thread in range(threads):
            drawing.annotation("load batch", start, busy_us, f"loader {thread}")
            drawing.host("aten::div", start, busy_us, thread=f"loader {thread}")
        for device in range(devices):
            launched = drawing.launch(start + 10 + 5 * device, 5)
            drawing.kernel(launched, "k", start + 20, STEP - 20, stream=Stream(device, 7))

    return facts_with(loop(STEP, step))


@pytest.mark.parametrize(("busy_us", "threads", "devices"), [(5_000, 1, 2.0), (5_000, 2, 2.0), (2_000, 1, 5.0)])
def test_loader_threads_feed_as_many_devices_as_they_make_batches_for(busy_us: int, threads: int, devices: float):
    """A device takes the whole step; each thread works so long for its part of the batch."""
    facts = ahead(busy_us, threads=threads)
    assert feeds_devices(facts) == pytest.approx(devices, rel=0.02)
    given = input_pipeline.entry(facts, facts.input_stages)
    assert f"they feed {devices:.1f} devices like this" in input_sections.stages(given).note


@pytest.mark.parametrize("busy_us", [100, 3_000])
def test_where_the_device_waits_the_input_feeds_no_more_than_it_does(busy_us: int):
    """However little the threads do: 4 ms of 10 the device waits."""
    assert feeds_devices(prepared(busy_us)) == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(("busy_us", "feeds"), [(7_500, 2.7), (2_500, 8.0)])
def test_what_the_input_feeds_is_held_against_the_devices_that_are_there(busy_us: int, feeds: float):
    facts = ahead(busy_us, devices=2)
    assert feeds_devices(facts) == pytest.approx(feeds, rel=0.03)
    assert "there are 2" not in input_sections.stages(input_pipeline.entry(facts, facts.input_stages)).note


def test_devices_that_wait_are_more_than_the_input_feeds():
    """Two devices work 6 ms of each step's batch and wait 4."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 4_000)
        drawing.annotation("load batch", start, 9_000, "loader 0")
        drawing.host("aten::div", start, 9_000, thread="loader 0")
        for device in range(2):
            launched = drawing.launch(start + 4_000 + 5 * device, 5)
            drawing.kernel(launched, "k", start + 4_010, STEP - 4_010, stream=Stream(device, 7))

    facts = facts_with(loop(STEP, step))
    assert feeds_devices(facts) == pytest.approx(1.2, abs=0.02)
    note = input_sections.stages(input_pipeline.entry(facts, facts.input_stages)).note
    assert "devices like this; there are 2" in note
    (finding,) = (f for f in diagnose(facts).findings if f.rule == "input_bound")
    assert "the input feeds 1.2 devices like these, not 2." in finding.why


def test_without_loader_threads_nobody_says_how_many_devices_they_feed():
    assert feeds_devices(prepared(0)) is None


def test_processes_that_are_not_in_the_profile_are_not_said_to_be_idle():
    facts = prepared(0)
    assert facts.input_stages.producers is None
    assert "prepare batches" not in next(f for f in diagnose(facts).findings if f.rule == "input_bound").why


def test_copies_to_the_device_are_a_stage_of_their_own():
    assert stages_of(prepared(1_000).input_stages) == {
        ("other", TRAINING): (4_000, 0),
        ("transform", LOADER): (1_000, 0),
        ("h2d", DEVICE): (495, 0),
    }


def test_a_profile_without_a_pipeline_has_none():
    assert facts_with(loop(STEP, lambda d, n, s: work(d, s, s + STEP))).input_stages is None


def test_the_table_says_what_was_not_recorded():
    without = InputStages(4_000, (Stage("other", TRAINING, 4_000, None),), None)
    section = input_sections.stages(input_pipeline.entry(prepared(0), without))
    assert section.rows == [("other", "main thread", "1.00 µs", "–")]
    assert "were not recorded" in section.note
    assert input_sections.stages(None).rows == []


def test_threads_that_work_one_after_another_are_not_held_up():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, 4_000)
        for thread in range(4):
            drawing.annotation("load batch", start + 1_000 * thread, 1_000, f"loader {thread}")
            drawing.host("aten::div", start + 1_000 * thread, 1_000, thread=f"loader {thread}")
        work(drawing, start + 4_000, start + STEP)

    (finding,) = (f for f in diagnose(facts_with(loop(STEP, step))).findings if f.rule == "input_bound")
    assert "work 25.0 % of the time they are waited for" in finding.why
    assert "one of them or more works 100 % of it." in finding.why
    assert "holds them up" not in finding.why
