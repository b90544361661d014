"""Where the host computes, batches that a job makes itself are input; what else leads a step is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.categories import Category
from stepscope.diagnosis.evidence import booked
from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import diagnosed, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

US = 1_000
STEP = 10_000
MODEL = "nn.Module: Sequential_0"
Drawn = tuple[str, int]
"""A frame or op and how long it takes."""


def on_host(*before: tuple[Drawn, ...], behind: tuple[tuple[Drawn, ...], ...] = ()) -> list[Event]:
    """Steps whose thread calls its model from the fourth millisecond on; before it, and behind it, what is nested."""

    def draw(drawing: TraceDrawing, chain: tuple[Drawn, ...], at: int) -> int:
        for depth, (name, dur) in enumerate(chain):
            if name.startswith("aten::"):
                drawing.host(name, at + depth, dur - 2 * depth)
            else:
                drawing.python(name, at + depth, dur - 2 * depth)
        return at + chain[0][1]

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(50): main", start, STEP - 10)
        at = start + 10
        for chain in before:
            at = draw(drawing, chain, at)
        drawing.python(MODEL, start + 4_000, 3_000)
        drawing.host("aten::linear", start + 4_010, 2_900)
        at = start + 7_100
        for chain in behind:
            at = draw(drawing, chain, at)

    return loop(STEP, step)


def input_of(events: list[Event]) -> int:
    facts = facts_with(events)
    return booked(facts, facts.accounts[0], Category.INPUT)


def told(events: list[Event]) -> Finding:
    return next(found for found in diagnosed(events).findings if found.rule == "input_bound")


TENSOR = "<built-in method tensor of type object at 0x7f>"
MAKES = (("waves.py(20): following", 3_000), (TENSOR, 1_000))


@pytest.mark.parametrize(
    "events",
    [
        on_host(MAKES),
        on_host((("train.py(9): get_batch", 3_000), ("aten::index", 2_000))),
        # After the model, as code that prepares the next batch in the meantime does: its name says it.
        on_host(behind=((("train.py(9): get_batch", 2_900), ("aten::stack", 100)),)),
        # A generator that gives arrays, and the loop that makes tensors of them.
        on_host((("waves.py(20): arrays", 2_900),), ((TENSOR, 100),)),
        # In the loop itself: a comprehension, and what stacks its parts.
        on_host((("train.py(51): <listcomp>", 2_900), ("aten::mean", 900)), (("aten::stack", 100),)),
    ],
    ids=["function", "named", "behind", "arrays", "inline"],
)
def test_a_batch_that_the_loop_makes_is_input(events: list[Event]):
    assert input_of(events) == pytest.approx(3_000 * US, rel=0.05)
    assert "which the loop makes itself" in told(events).title


@pytest.mark.parametrize(
    "events",
    [
        on_host((("train.py(9): log_metrics", 3_000), ("aten::stack", 100))),
        on_host((("train.py(9): average", 3_000), ("aten::lerp_", 2_000)), (("aten::randn", 50),)),
        on_host((("train.py(9): update", 3_000), ("aten::mul", 2_000)), (("aten::randn", 50),)),
        on_host((("aten::item", 3_000),)),
        on_host((("train.py(9): schedule", 3_000),)),
        on_host((("train.py(9): spread_batch", 3_000), ("c10d::allreduce_", 500)), ((TENSOR, 50),)),
        on_host(behind=((("waves.py(20): following", 2_900), (TENSOR, 1_000)),)),
        # A pass of another model (a teacher) is none.
        on_host((("train.py(9): targets", 3_000), ("nn.Module: Teacher_0", 2_000), ("aten::stack", 100))),
    ],
    ids=[
        "logging",
        "average of weights",
        "average in new tensors",
        "number read",
        "makes no tensor",
        "exchanged",
        "behind the model",
        "a pass",
    ],
)
def test_what_makes_no_batch_is_no_input(events: list[Event]):
    assert input_of(events) < 100 * US


def test_it_is_told_with_the_function_and_a_cure_that_needs_no_loader_of_old():
    found = told(on_host(MAKES))
    assert found.title == "The main thread waits for input data, which the loop makes itself in `following`"
    assert (found.where[0].file, found.where[0].function) == ("waves.py", "following")
    assert "from torch.utils.data import DataLoader, IterableDataset" in found.fix
    assert "ThreadPoolExecutor" in found.fix
    assert "every N steps" not in found.fix


def test_without_frames_nothing_is_taken_for_a_batch():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("## sparse_data_dist ##", start, 3_000)
        drawing.host("aten::stack", start + 10, 2_900)
        drawing.host("aten::linear", start + 4_000, 5_000)

    assert input_of(loop(STEP, step)) == 0


def test_a_small_batch_of_random_numbers_is_no_finding():
    assert not [f for f in diagnosed(on_host((("aten::randn", 40),))).findings if f.rule == "input_bound"]


def test_steps_that_the_jobs_own_profiler_marks_again_are_the_same_steps():
    events = on_host(MAKES)
    marked = [each for each in events if each.name.startswith("ProfilerStep")]
    again = [replace(each, start_ns=each.start_ns + 5_000, dur_ns=(each.dur_ns or 0) - 10_000) for each in marked]
    assert input_of(events + again) == pytest.approx(3_000 * US, rel=0.05)


def test_a_function_is_not_told_again_as_a_whole():
    places = [(place.file, place.function) for place in told(on_host(MAKES)).where]
    assert len(places) == len(set(places))


OPS = (("train.py(9): get_batch", 3_000), ("aten::index", 2_000))


def test_what_ops_make_saves_at_least_what_workers_do_and_at_most_all_of_it():
    found = told(on_host(OPS))
    workers, cheaper = found.options
    assert f"num_workers={workers.workers})" in found.fix
    assert found.fix.startswith("A batch takes 3.0")
    assert found.predicted_step_ns == workers.predicted_step_ns > cheaper.predicted_step_ns
    assert found.best_step_ns is not None
    assert found.best_step_ns <= cheaper.predicted_step_ns
    assert found.saving_ns_per_step is not None
    assert 0 < found.saving_ns_per_step < input_of(on_host(OPS))


def test_what_python_makes_saves_all_of_it_and_what_workers_leave_is_told():
    found = told(on_host(MAKES))
    cheaper, workers = found.options
    assert found.saving_ns_per_step == pytest.approx(3_000 * US, rel=0.05)
    assert found.predicted_step_ns == cheaper.predicted_step_ns < workers.predicted_step_ns
    assert found.fix.startswith("A batch takes 3.0")
    assert "Cheaper code saves all of it at most, the saving told above." in found.fix


def shorter(events: list[Event]) -> list[Event]:
    return [replace(each, start_ns=each.start_ns // 16, dur_ns=each.dur_ns and each.dur_ns // 16) for each in events]


def test_where_workers_gain_nothing_cheaper_code_is_the_only_cure():
    python, ops = (told(shorter(on_host(batch))) for batch in (MAKES, OPS))
    assert [option.workers for option in (*python.options, *ops.options)] == [None, None]
    assert python.saving_ns_per_step == pytest.approx(3_000 * US / 16, rel=0.1)
    assert ops.saving_ns_per_step == 0
    assert ops.predicted_step_ns is not None
    assert ops.best_step_ns == pytest.approx(ops.predicted_step_ns - 3_000 * US / 16, rel=0.1)


def test_a_function_that_makes_little_of_it_is_not_named():
    random = "<built-in method rand of type object at 0x7f>"
    found = told(on_host(((random, 2_000), ("aten::rand", 1_900)), (("waves.py(20): following", 500), (TENSOR, 100))))
    assert found.title == "The main thread waits for input data, which the loop makes itself"
