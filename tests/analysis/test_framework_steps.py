"""Steps that no marker tells, inferred from what a framework calls once in each."""

from __future__ import annotations

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from tests.formats.xplane.xplane_files import read
from tests.kit.keras_frames import COMPUTES_US, MARGIN_US, US, calls_function, fit, nested
from tests.kit.xplanes import Ev, Plane, line, space

STEP_US = 5_000


def of(*events: Ev) -> Facts:
    return analyse(read(space(Plane("/host:CPU", (line("python", *events, id=5),)))))


def calls(*functions: str) -> list[Ev]:
    """One call after the other, a step's length apart."""
    return [ev for at, name in enumerate(functions) for ev in calls_function(name, at * STEP_US, STEP_US - 1_000)]


def test_a_step_ends_with_the_callbacks_of_its_batch():
    markers = analyse(read(fit(6, 2_000))).markers
    length = (COMPUTES_US + 2_000 + 3 * MARGIN_US) * 1_000
    first_end = (COMPUTES_US + MARGIN_US + 2_000) * 1_000  # The profile begins with its first event.
    assert markers.end.tolist() == [first_end + step * length for step in range(6)]
    assert markers.start.tolist()[1:] == markers.end.tolist()[:-1]


def test_the_kind_of_batch_that_comes_most_often_is_the_step():
    """Two batches of training and ten of the evaluation after it."""
    kinds = ["on_train_batch_end"] * 2 + ["on_test_batch_end"] * 10
    events = [ev for at, kind in enumerate(kinds)
              for ev in nested([f"callback_list.py:194 {kind}", "mine.py:3 hook"], at * STEP_US, 2_000)]  # fmt: skip
    markers = of(*events).markers
    assert (markers.source, len(markers)) == ("calls of on_test_batch_end", 10)


def test_marks_of_the_program_are_preferred():
    marks = [Ev("train", step * STEP_US * US, STEP_US * US, {"step_num": step, "_r": 1}) for step in range(3)]
    assert analyse(read(fit(6, 2_000, more=marks))).markers.source == "train"


def test_one_end_of_a_batch_is_no_step():
    assert analyse(read(fit(1, 2_000))).markers.source == "whole profile"


def test_without_frames_calls_of_the_compiled_function_begin_steps():
    markers = of(*calls(*["train"] * 5)).markers
    assert markers.source == "calls of train"
    assert markers.start.tolist() == [(at * STEP_US + 12) * 1_000 for at in range(5)]
    assert markers.inferred


def test_of_several_functions_the_first_of_an_iteration_begins_it():
    markers = of(*calls(*["discriminate", "generate"] * 4)).markers
    assert (markers.source, len(markers)) == ("calls of discriminate", 4)


def test_what_is_called_now_and_then_is_no_step():
    markers = of(*calls(*(["train"] * 10 + ["validate"]) * 3)).markers
    assert (markers.source, len(markers)) == ("calls of train", 30)


def test_functions_called_too_rarely_are_no_steps():
    assert of(*calls("build", "train", "train")).markers.source == "whole profile"


def test_a_function_inside_another_is_a_part_of_it():
    inner = [ev for at in range(4) for part in (1_000, 2_000)
             for ev in calls_function("inner", at * STEP_US + part, 500)]  # fmt: skip
    markers = of(*calls(*["outer"] * 4), *inner).markers
    assert (markers.source, len(markers)) == ("calls of outer", 4)
