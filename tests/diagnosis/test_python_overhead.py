"""Where the host computes, Python around small ops, and callbacks of the loop, are findings with their functions."""

from __future__ import annotations

import pytest

from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import diagnosed, looked, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

STEP, CALLS = 10_000, 20
TRAINER = "transformers/trainer.py(2100): training_step"


def around_ops(python_us: int, *frames: str) -> list[Event]:
    """Steps of twenty ops of 500 µs less so much Python in nested frames ahead of each."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        for call in range(CALLS):
            at = start + 10 + 499 * call
            for depth, frame in enumerate(frames):
                drawing.python(frame, at + depth, 499 - 2 * depth)
            drawing.host("aten::linear", at + python_us, 490 - python_us)

    return loop(STEP, step)


def told(events: list[Event], rule: str = "python_overhead") -> list[Finding]:
    return [found for found in diagnosed(events).findings if found.rule == rule]


def test_python_around_small_ops_is_told_with_its_functions():
    (found,) = told(around_ops(200, TRAINER, "train.py(40): tweak"))
    assert found.cost_ns_per_step == pytest.approx(CALLS * 209_000, rel=0.05)
    assert found.saving_ns_per_step is None
    assert (found.where[0].file, found.where[0].function) == ("train.py", "tweak")
    assert found.where[0].defined
    assert "torch_compile=True" in found.fix
    assert "logging_steps=100" in found.fix


def test_the_line_that_a_function_was_at_is_told_where_its_thread_was_looked_at():
    looks = [(STEP * step + 60, 43, "tweak") for step in range(6)]
    (found,) = [f for f in looked(around_ops(200, TRAINER, "train.py(40): tweak"), *looks).findings
                if f.rule == "python_overhead"]  # fmt: skip
    assert (found.where[0].line, found.where[0].function, found.where[0].defined) == (43, "tweak", False)


@pytest.mark.parametrize("job", ["python", "loop", "reads"])
def test_one_cure_is_read_first_and_each_other_begins_a_line_of_its_own(job: str):
    alone = around_ops(200, "train.py(20): log_all")
    events = alone if job == "python" else pairs(100) if job == "loop" else reading(20)
    (found,) = told(events)
    first, *others = found.fix.splitlines()
    assert first.count(". ") == 0  # One sentence.
    assert len(first.split()) <= 32
    assert others
    assert all(line.startswith(("- ", "    ")) for line in others)


def test_a_librarys_function_is_told_with_the_call_into_it():
    (found,) = told(around_ops(200, "lightning/pytorch/loops/training_epoch_loop.py(274): advance"))
    assert found.where[0].file == "lightning/pytorch/loops/training_epoch_loop.py"
    assert "called from `main`" in found.why
    assert "enable_progress_bar=False" in found.fix
    assert "TrainingArguments" not in found.fix


def test_a_loop_that_computes_is_healthy():
    assert told(around_ops(20, TRAINER)) == []


LIST = "lightning/pytorch/trainer/call.py(203): _call_callback_hooks"


def with_callback(reads: int, *, behind: str = LIST) -> list[Event]:
    """Each step ends with 2 ms in a callback, which reads so many numbers."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        drawing.host("aten::linear", start + 10, 7_900)
        drawing.python(behind, start + 7_950, 2_000)
        drawing.python("train.py(60): on_train_batch_end", start + 7_960, 1_980)
        for number_read in range(reads):
            drawing.host("aten::item", start + 7_970 + number_read * 45, 40)

    return loop(STEP, step)


def test_a_callback_is_told_with_all_that_it_calls():
    (found,) = told(with_callback(40), "callback_time")
    assert found.cost_ns_per_step == pytest.approx(1_980_000, rel=0.01)
    assert (found.where[0].file, found.where[0].function) == ("train.py", "on_train_batch_end")
    assert found.where[0].defined
    assert "reads 40 numbers" in found.why
    assert "between_steps" not in {each.rule for each in diagnosed(with_callback(40)).findings}


def reading(reads: int, *, reader: str = "", inside: str = "", long: int = 30) -> list[Event]:
    """Steps of 3 ms of Python in a helper, which reads so many numbers, ahead of an op; a function that it calls or an
    op may be what reads."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        drawing.python("train.py(3): metrics", start + 10, 3_000)
        if reader:
            drawing.python(reader, start + 12, 2_990)
        for at in range(start + 20, start + 20 + reads * (2_900 // reads), 2_900 // reads):
            if inside:
                drawing.host(inside, at - 2, long + 4)
            drawing.host("aten::item", at, long)
            drawing.host("aten::_local_scalar_dense", at + 2, long // 3)
        drawing.host("aten::linear", start + 3_020, 6_900)

    return loop(STEP, step)


def test_numbers_read_one_at_a_time_are_told_with_their_line_and_number():
    (found,) = told(reading(40))
    assert "`aten::item` in `metrics` (train.py) 40 times per step, 1.20 ms in the reads alone" in found.why
    assert found.fix.startswith("Read the numbers every N steps")
    assert found.saving_ns_per_step == 1_200_000
    assert (found.predicted_step_ns, found.best_step_ns) == (8_800_000, 7_000_000)
    assert (found.where[0].file, found.where[0].line, found.where[0].op) == ("train.py", None, "aten::item")
    (few,) = told(reading(9))
    assert "one at a time" not in few.why + few.fix
    looks = [(STEP * step + 390, 6, "metrics") for step in range(6)]
    (found,) = [f for f in looked(reading(40), *looks).findings if f.rule == "python_overhead"]
    assert (found.where[0].line, found.where[0].op, found.where[0].function) == (6, "aten::item", "metrics")


@pytest.mark.parametrize(
    ("reader", "inside", "are_told"),
    [
        ("torch/_tensor.py(1103): __format__", "", True),  # The tensor's own, for its caller.
        ("torch/optim/adamw.py(244): step", "", False),
        ("", "aten::multinomial", False),
    ],
)
def test_numbers_that_a_library_reads_for_itself_are_none_of_the_programs(reader: str, inside: str, are_told: bool):
    (found,) = told(reading(40, reader=reader, inside=inside))
    assert ("one at a time" in found.why) == are_told
    assert found.fix.startswith("Read the numbers every N steps") == are_told


def pairs(turns: int, *, function: str = "train.py(3): pairs", handed: str = "", gap: int = 30) -> list[Event]:
    """Steps of 4 ms in a function that runs an op of 40 us so often, with Python between, ahead of a long one."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        drawing.python(function, start + 10, 4_000)
        for turn in range(turns):
            at = start + 20 + turn * (40 + gap)
            if handed:
                drawing.python(handed, at, 38)
            drawing.host("aten::sub", at + 1, 35)
        drawing.host("aten::linear", start + 4_020, 5_900)

    return loop(STEP, step)


@pytest.mark.parametrize("handed", ["", "torch/functional.py(1600): norm", "torch/_tensor.py(9): norm"])
def test_a_loop_of_small_ops_is_told_with_its_function_and_what_few_ops_leave(handed: str):
    (found,) = told(pairs(50, handed=handed))
    assert "A loop in `pairs` (train.py:3) runs 50 small ops per step: 1.75 ms in them" in found.why
    assert found.fix.startswith("Do the work of the loop in few ops on larger tensors")
    assert (found.where[0].function, found.where[0].ns_per_step) == ("pairs", 4_000_000)
    assert found.saving_ns_per_step == 2_250_000  # The Python between the ops, at least.
    assert (found.predicted_step_ns, found.best_step_ns) == (7_750_000, 6_000_000)


@pytest.mark.parametrize(
    "events",
    [
        pairs(20, gap=155),  # As layers that are written out.
        pairs(50, function="site-packages/torch/optim/sgd.py(3): step"),
        pairs(50, handed="site-packages/torch/nn/modules/linear.py(130): forward"),
    ],
    ids=["few turns", "a library's", "layers"],
)
def test_what_is_no_loop_of_the_program_is_not_told_as_one(events: list[Event]):
    (found,) = told(events)
    assert "A loop in" not in found.why
    assert found.saving_ns_per_step is None


def cells(module: str, *, op_us: int = 35, parts: int = 1) -> list[Event]:
    """Steps in which a function calls fifty modules of one op each (of so many), ahead of a long op."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        drawing.python("train.py(3): forward", start + 10, 50 * (op_us + 40) + 10)
        for turn in range(50):
            at = start + 20 + turn * (op_us + 40)
            drawing.python(module.format(turn), at, op_us + 20)
            drawing.python("torch/nn/modules/rnn.py(1844): forward", at + 5, op_us + 10)
            drawing.host("aten::gru_cell", at + 10, op_us)
            for part in range(parts if parts > 1 else 0):
                drawing.host("aten::linear", at + 10 + part * op_us // parts, op_us // parts)
        drawing.host("aten::linear", start + 5_900, 4_000)

    return loop(STEP, step)


@pytest.mark.parametrize(("op_us", "parts"), [(35, 1), (75, 3)])
def test_a_module_that_is_called_in_a_loop_saves_at_most_what_its_calls_take(op_us: int, parts: int):
    (found,) = told(cells("nn.Module: GRUCell_0", op_us=op_us, parts=parts))
    assert "A loop in `forward` (train.py:3) runs 50 small ops per step" in found.why
    assert found.fix.startswith("Call the module once for all that it goes over: a cell")
    place = found.where[0]
    assert (place.function, place.module) == ("forward", "GRUCell_0")
    assert place.ns_per_step == 50_000 * (op_us + 40) - 20_000
    assert (found.saving_ns_per_step, found.predicted_step_ns) == (0, 10_000_000)
    assert found.best_step_ns is not None
    assert found.best_step_ns <= 10_000_000 - place.ns_per_step


@pytest.mark.parametrize(
    "events",
    [cells("nn.Module: Layer_{}", op_us=35), cells("nn.Module: GRUCell_0", op_us=75)],
    ids=["layers", "long ops"],
)
def test_modules_that_are_no_loop_of_small_ops_promise_nothing(events: list[Event]):
    assert all("A loop in" not in found.why for found in told(events))


def test_reads_that_take_little_are_no_cure():
    (found,) = told(reading(40, long=3))
    assert "40 times per step, 120 µs in the reads alone" in found.why
    assert "That saves at most what is told here" in found.fix
    assert found.saving_ns_per_step == 0  # At most the Python of the function that reads.


def test_the_line_that_a_callback_was_at_is_told_where_its_thread_was_looked_at():
    looks = [(STEP * step + 9_900, 63, "on_train_batch_end") for step in range(6)]
    (found,) = [f for f in looked(with_callback(2), *looks).findings if f.rule == "callback_time"]
    assert (found.where[0].line, found.where[0].defined) == (63, False)


def test_the_same_function_called_by_no_list_of_callbacks_is_none():
    assert told(with_callback(40, behind="train.py(50): finish"), "callback_time") == []


def filtering(ops_us: int, *, function: str = "train.py(21): banned") -> list[Event]:
    """Steps of 3 ms in a function that takes so much of it in an op, ahead of twenty ops with Python around them."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        for call in range(6):
            at = start + 10 + 500 * call
            drawing.python(function, at, 490)
            drawing.host("aten::tensor", at + 5, ops_us)
        for call in range(20):
            drawing.host("aten::linear", start + 3_020 + 340 * call, 250)

    return loop(STEP, step)


def test_functions_of_the_program_that_compute_in_python_save_at_most_what_they_take():
    (found,) = told(filtering(30))
    assert (found.where[0].file, found.where[0].function) == ("train.py", "banned")
    assert "That saves at most what is told here" in found.fix
    assert found.saving_ns_per_step == 0
    assert (found.predicted_step_ns, found.best_step_ns) == (10_000_000, 10_000_000 - 6 * 490_000)


@pytest.mark.parametrize(
    "events",
    [filtering(250), filtering(30, function="site-packages/transformers/generation/logits_process.py(9): __call__")],
    ids=["ops", "a library's"],
)
def test_functions_around_ops_and_those_of_libraries_promise_nothing(events: list[Event]):
    (found,) = told(events)
    assert "That saves at most what is told here" not in found.fix
    assert found.saving_ns_per_step is None
