"""Validation, sampling and saving lie beside the steps of training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.names.loop_phases import LoopPhase
from tests.diagnosis.loops import facts_with, work
from tests.kit.builder import TraceDrawing

STEP, PHASE = 10_000, 40_000
MS = 1_000_000
VALIDATE, SAVE = "train.py(20): validate", "train.py(30): save"


def trained(drawing: TraceDrawing, at: int, *, device: bool) -> None:
    """A model is called, differentiated and stepped: ten milliseconds."""
    drawing.python("nn.Module: Net_0", at + 10, 3_000)
    drawing.python("torch/_tensor.py(566): backward", at + 3_100, 4_000)
    drawing.annotation("Optimizer.step#AdamW.step", at + 7_200, 2_000)
    if device:
        work(drawing, at, at + STEP)
    else:
        drawing.host("aten::linear", at + 20, 2_900)


def validated(drawing: TraceDrawing, at: int, name: str = VALIDATE, *, device: bool = False, dur: int = PHASE) -> None:
    drawing.python(name, at, dur)
    drawing.python("nn.Module: Net_0", at + 10, dur - 20)
    if device:
        work(drawing, at + 20, at + dur)
    else:
        drawing.host("aten::linear", at + 20, dur - 40)


def saved(drawing: TraceDrawing, at: int) -> None:
    drawing.python(SAVE, at, 15_000)
    drawing.python("torch/serialization.py(900): save", at + 10, 14_980)


Held = Callable[[TraceDrawing, int], int]
"""Draws what a step holds from an instant on, beside training; how long that takes."""


def one(drawing: TraceDrawing, at: int) -> int:
    validated(drawing, at)
    return PHASE


def one_and_a_checkpoint(drawing: TraceDrawing, at: int) -> int:
    validated(drawing, at)
    saved(drawing, at + PHASE)
    return PHASE + 15_000


def facts_of(held: Held, holding: tuple[int, ...] = (3,), *, ahead: bool = True, device: bool = False) -> Facts:
    """Eight marked steps, of which those ``holding`` something have it ahead of training, or behind it."""
    drawing, at = TraceDrawing(), 0
    for number in range(8):
        begun = at
        if number in holding and ahead:
            at += held(drawing, at)
        trained(drawing, at, device=device)
        at += STEP
        if number in holding and not ahead:
            at += held(drawing, at)
        drawing.step(number, begun, at - begun)
    return facts_with(drawing.events())


def told(facts: Facts) -> str | None:
    notices = {notice.code: notice.text for notice in diagnose(facts).notices}
    return notices.get("loop_phases")


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("held", [one, one_and_a_checkpoint])
def test_a_step_that_holds_validation_is_as_long_as_the_others(held: Held, ahead: bool):
    facts = facts_of(held, ahead=ahead)
    assert len(facts.markers) == 8
    assert facts.step_ns[1:-1] == pytest.approx(np.full(6, STEP * 1_000), rel=0.01)
    assert facts.slow == ()
    assert LoopPhase.VALIDATION in {each.kind for each in facts.markers.aside}


def test_the_notice_says_what_how_long_how_often_and_where():
    text = told(facts_of(one_and_a_checkpoint, (2, 5)))
    assert text == (
        "Beside training the loop also spends time on validation 80.0 ms (2 times, in `validate` (train.py:20)); "
        "saving 30.0 ms (2 times, in `save` (train.py:30)): the steps are those of training, without it."
    )


def test_what_a_library_saves_is_told_with_the_program_s_line_that_calls_it():
    drawing = TraceDrawing()
    drawing.python("train.py(7): train", 0, 8 * STEP + 10)
    for number in range(8):
        drawing.step(number, number * STEP, STEP)
        trained(drawing, number * STEP, device=False)
        if number in (2, 5):
            drawing.python("torch/serialization.py(900): save", number * STEP + 9_210, 780)
    text = told(facts_with(drawing.events()))
    assert text is not None
    assert "in `save` (torch/serialization.py:900), called from `train` (train.py" in text


def test_of_a_device_too_the_step_is_that_of_training():
    def held(drawing: TraceDrawing, at: int) -> int:
        validated(drawing, at, device=True)
        return PHASE

    facts = facts_of(held, device=True)
    assert facts.step_ns[1:-1] == pytest.approx(np.full(6, STEP * 1_000), rel=0.01)


def test_writing_a_checkpoint_alone_leaves_its_step_a_slow_one():
    def held(drawing: TraceDrawing, at: int) -> int:
        saved(drawing, at)
        return 15_000

    facts = facts_of(held)
    assert [found.cause for found in facts.slow] == [Category.CHECKPOINT_IO]
    assert "it is in the steps that it comes in" in (told(facts) or "")


@pytest.mark.parametrize("name", ["train.py(20): targets", "train.py(20): sample_actions"])
def test_passes_in_every_step_belong_to_training(name: str):
    def held(drawing: TraceDrawing, at: int) -> int:
        validated(drawing, at, name, dur=5_000)
        return 5_000

    facts = facts_of(held, tuple(range(8)))
    assert facts.markers.aside == ()
    assert facts.step_ns[1:-1] == pytest.approx(np.full(6, 15_000_000), rel=0.01)


def test_a_job_that_only_infers_has_no_phases():
    drawing = TraceDrawing()
    for number in range(6):
        drawing.step(number, number * STEP, STEP)
        validated(drawing, number * STEP, "serve.py(9): answer" if number != 3 else VALIDATE, dur=STEP)
    assert facts_with(drawing.events()).markers.aside == ()
