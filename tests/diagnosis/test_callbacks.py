"""Callbacks between the steps of Keras: found without step markers, by name and line, and nobody else's time."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from tests.diagnosis.loops import CALL, diagnosed, loop, work
from tests.formats.xplane.xplane_files import read
from tests.kit.builder import TraceDrawing
from tests.kit.keras_frames import COMPUTES_US, KERAS_2, MARGIN_US, US, calls_function, fit, nested
from tests.kit.xplanes import Ev, Plane, line, space

SLOW_US = 20_000
MS = 1_000_000
TITLE = "Steps wait for callbacks"


def of(data: bytes) -> Diagnosis:
    return diagnose(analyse(read(data)))


def the(diagnosis: Diagnosis, title: str = TITLE) -> Finding:
    (finding,) = (each for each in diagnosis.findings if each.title == title)
    return finding


def places(finding: Finding) -> list[tuple[str | None, int | None, str | None]]:
    return [(where.file, where.line, where.function) for where in finding.where]


@pytest.mark.parametrize("way", [None, KERAS_2], ids=["Keras 3", "Keras 2"])
def test_a_callback_in_every_step_is_named_with_its_line(way: tuple[str, ...] | None):
    data = fit(12, SLOW_US) if way is None else fit(12, SLOW_US, way=way)
    facts = analyse(read(data))
    assert facts.markers.source == "calls of on_train_batch_end"
    assert (len(facts.markers), facts.markers.inferred) == (12, True)
    finding = the(diagnose(facts))
    assert finding.cost_ns_per_step == pytest.approx(SLOW_US * 1_000, rel=0.01)
    assert finding.saving_ns_per_step == finding.cost_ns_per_step
    assert places(finding) == [("slow.py", 10, "on_train_batch_end"), ("slow.py", 12, "write")]
    assert "with all that they call: `on_train_batch_end` (slow.py:10) 20.0 ms." in finding.why
    assert finding.rule == "callback_time"
    assert "steps_per_execution" in finding.fix


def test_a_callback_of_a_library_is_named_where_its_frames_go_deeper():
    callback = ("tensorboard.py:570 on_train_batch_end", "event_file_writer.py:99 flush")
    assert places(the(of(fit(12, SLOW_US, callback))))[0] == ("tensorboard.py", 570, "on_train_batch_end")


def test_of_keras_own_method_for_every_kind_of_batch_the_users_is_named():
    callback = ("callback.py:130 on_train_batch_end", "mine.py:7 on_batch_end", "mine.py:30 log")
    assert places(the(of(fit(12, SLOW_US, callback))))[0] == ("mine.py", 7, "on_batch_end")


def test_a_users_file_of_that_name_is_no_list_of_keras():
    """Keras 3 calls it, so it is a callback."""
    callback = ("callbacks.py:3 on_train_batch_end", "callbacks.py:9 write")
    assert places(the(of(fit(12, SLOW_US, callback))))[0] == ("callbacks.py", 3, "on_train_batch_end")


def test_ranges_of_the_recording_name_it_where_no_frames_are():
    name = "keras.callback: Metrics.on_train_batch_end (jobs/slow.py:10)"
    length = COMPUTES_US + SLOW_US + 3 * MARGIN_US
    steps = [Ev("train", step * length * US, length * US, {"step_num": step, "_r": 1}) for step in range(8)]
    finding = the(of(fit(8, SLOW_US, ranges=name, more=steps)))
    assert finding.cost_ns_per_step == pytest.approx(SLOW_US * 1_000, rel=0.01)
    assert places(finding) == [("jobs/slow.py", 10, "Metrics.on_train_batch_end")]
    assert "`Metrics.on_train_batch_end` (jobs/slow.py:10) 20.0 ms" in finding.why


def test_other_python_between_steps_is_not_the_callbacks():
    """Half of what lies between two steps is the loop's own: each finding tells of its half."""
    length = COMPUTES_US + 2 * SLOW_US + 4 * MARGIN_US
    events: list[Ev] = []
    for step in range(12):
        at = MARGIN_US + step * length
        events += calls_function("train", at, COMPUTES_US)
        at += COMPUTES_US + MARGIN_US
        events += nested(["callback_list.py:194 on_train_batch_end", "slow.py:10 on_train_batch_end"], at, SLOW_US)
        events += nested(["loop.py:5 report"], at + SLOW_US + MARGIN_US, SLOW_US)
    found = of(space(Plane("/host:CPU", (line("python", *events, id=5),))))
    other = the(found, "Steps wait for Python code that launches nothing")
    assert places(other) == [("loop.py", 5, "report")]
    for finding in (the(found), other):
        assert finding.cost_ns_per_step == pytest.approx(SLOW_US * 1_000, rel=0.02)
        assert "slow.py" not in other.why


def test_callbacks_that_take_nothing_are_no_finding():
    assert not of(fit(12, 40)).findings


def predicting(step: int, at: int) -> list[Ev]:
    """A callback that calls ``predict``: it makes a graph anew, calls it, and waits for a batch of its own pipeline."""
    name = "keras.callback: Watch.on_train_batch_end (jobs/watch.py:10)"
    return [
        Ev(name, at * US, SLOW_US * US),
        Ev("tf.function-graph_building", (at + 10) * US, 8_000 * US),
        *calls_function("one_step", at + 9_000, 5_000),
        Ev("EagerLocalExecute: IteratorGetNext", (at + 15_000) * US, 3_000 * US),
    ]


def test_all_that_a_callback_of_keras_calls_is_its_own_time():
    """Graphs built, ops started and batches waited for in it are no causes beside it: without it they are gone."""
    length, events = COMPUTES_US + SLOW_US + 3 * MARGIN_US, list[Ev]()
    for step in range(12):
        at = MARGIN_US + step * length
        events.append(Ev("train", (at - 50) * US, (length - 50) * US, {"step_num": step, "_r": 1}))
        events += calls_function("multi_step_on_iterator", at, COMPUTES_US)
        events += predicting(step, at + COMPUTES_US + MARGIN_US)
    diagnosis = of(space(Plane("/host:CPU", (line("python", *events, id=5),))))
    assert [each.rule for each in diagnosis.findings] == ["callback_time"]
    finding = the(diagnosis)
    assert finding.cost_ns_per_step == pytest.approx(SLOW_US * 1_000, rel=0.01)
    assert places(finding) == [("jobs/watch.py", 10, "Watch.on_train_batch_end")]
    assert "predict_on_batch" in finding.fix
    assert "idle_untold" not in {each.code for each in diagnosis.notices}
    inside = [each for each in diagnosis.minor if each.cost_ns_per_step]
    assert {each.rule for each in inside} >= {"recompilation", "input_bound"}
    assert all(each.saving_after_ns_per_step == 0 for each in inside)


def test_on_a_device_the_step_without_the_callback_is_predicted():
    """Ten ms of a callback in front of each step's launches; the rest of the step keeps the device busy."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("keras/src/callbacks/callback_list.py(194): on_train_batch_end", start, 10_000)
        drawing.python("train.py(40): on_train_batch_end", start + 1, 9_998)
        work(drawing, start + 10_000, start + 30_000)
        drawing.sync(start + 10_000 + CALL, 20_000 - CALL)

    finding = the(diagnosed(loop(30_000, step)))
    assert finding.cost_ns_per_step == pytest.approx(10 * MS, rel=0.01)
    assert finding.saving_ns_per_step == pytest.approx(10 * MS, rel=0.02)
    assert places(finding) == [("train.py", 40, "on_train_batch_end")]


@pytest.mark.parametrize(
    "frames",
    [
        ("transformers/trainer_callback.py(519): call_event", "mine/watch.py(8): on_step_end"),
        ("lightning/pytorch/trainer/call.py(215): _call_callback_hooks", "mine/watch.py(8): on_train_batch_end"),
    ],
)
def test_callbacks_of_other_loops_are_named_too(frames: tuple[str, str]):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for depth, frame in enumerate(frames):
            drawing.python(frame, start + depth, 10_000 - 2 * depth)
        work(drawing, start + 10_000, start + 30_000)
        drawing.sync(start + 10_000 + CALL, 20_000 - CALL)

    finding = the(diagnosed(loop(30_000, step)))
    assert places(finding)[0][:2] == ("mine/watch.py", 8)
    assert "steps_per_execution" not in finding.fix
