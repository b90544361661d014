"""At which line of a function something happened: by the callers' lines, by looks at the thread, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stepscope.analysis.where import Locator, Where
from stepscope.formats.beside.rows import table_of
from stepscope.report import phrases
from stepscope.trace.tables import NULL, Begun, Frames, Looks
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.kit.drawing import draw
from tests.kit.kineto_writer import write_kineto
from tests.support import trace_of, trace_of_bytes

US = 1_000


def with_lines(trace: Trace, *calls: tuple[str, int], looks: tuple[tuple[int, int], ...] = ()) -> Trace:
    """A trace in which slices of these names were called at these lines, and ``main`` was seen at lines at times."""
    names = dict(calls)
    rows = [
        (s, names[trace.name_of(s)], int(Begun.CALLED)) for s in range(len(trace.slices)) if trace.name_of(s) in names
    ]
    strings, frames = table_of(trace.strings, Frames, rows)
    trace = replace(trace, strings=strings, frames=frames)
    seen = [(at * US, 0, "/home/ana/train.py", line, "main", NULL) for at, line in looks]
    strings, found = table_of(trace.strings, Looks, seen)
    return replace(trace, strings=strings, looks=found)


def line_of(trace: Trace, name: str, number: int = 0) -> Where:
    found = [s for s in range(len(trace.slices)) if trace.name_of(s) == name]
    return Locator(trace).where(found[number])


def loop() -> Trace:
    """A body of calls and, from 120 to 290 us, operators."""
    d = TraceDrawing()
    d.python("train.py(12): main", 0, 600)
    d.python("train.py(3): load", 20, 90)
    d.host("aten::cat", 30, 50)
    d.host("aten::mm", 120, 80)
    d.host("aten::add", 210, 80)
    d.python("torch/_tensor.py(566): backward", 300, 150)
    d.python("<built-in method run_backward>", 310, 130)
    d.host("aten::sum", 320, 100)
    d.python("<built-in function collect>", 460, 130)
    return trace_of(d.events())


CALLED = (
    ("train.py(3): load", 14),
    ("torch/_tensor.py(566): backward", 17),
    ("<built-in method run_backward>", 600),
    ("<built-in function collect>", 18),
)


def test_what_runs_in_a_call_is_at_the_line_that_called() -> None:
    trace = with_lines(loop(), *CALLED)
    assert line_of(trace, "<built-in function collect>") == Where("train.py", 18, "main")
    assert line_of(trace, "aten::sum") == Where("train.py", 17, "main", "aten::sum")
    assert line_of(trace, "torch/_tensor.py(566): backward") == Where("train.py", 17, "main")


def test_a_function_as_a_whole_has_the_line_at_which_it_begins_and_an_instant_of_it_that_of_the_call() -> None:
    trace = with_lines(loop(), *CALLED)
    main = next(s for s in range(len(trace.slices)) if trace.name_of(s) == "train.py(12): main")
    assert Locator(trace).where(main) == Where("train.py", 12, "main", defined=True)
    assert Locator(trace).where(main, 500 * US) == Where("train.py", 18, "main")


def test_an_operator_between_two_calls_has_no_line_unless_it_was_looked_at() -> None:
    bare = with_lines(loop(), *CALLED)
    assert line_of(bare, "aten::mm") == Where("train.py", 12, "main", "aten::mm", defined=True)
    seen = with_lines(loop(), *CALLED, looks=((130, 15),))
    assert line_of(seen, "aten::mm") == Where("train.py", 15, "main", "aten::mm")
    assert line_of(seen, "aten::add") == Where("train.py", 12, "main", "aten::add", defined=True)


def repeated(times: int) -> Trace:
    """A loop whose body is a call, an operator and a call."""
    d = TraceDrawing()
    d.python("train.py(12): main", 0, 100 * times)
    for i in range(times):
        d.python("train.py(3): load", 100 * i + 1, 20)
        d.host("aten::mm", 100 * i + 30, 30)
        d.python("<built-in function collect>", 100 * i + 70, 20)
    return trace_of(d.events())


@pytest.mark.parametrize(("lines", "told"), [((15,), 15), ((15, 15, 15), 15), ((15, 16), None)])
def test_a_stretch_is_told_by_others_like_it_where_these_agree(lines: tuple[int, ...], told: int | None) -> None:
    looks = tuple((100 * (i + 1) + 40, line) for i, line in enumerate(lines))
    trace = with_lines(repeated(6), *CALLED, looks=looks)
    found = line_of(trace, "aten::mm", 5)
    assert (found.line, found.defined) == ((told, False) if told else (12, True))


def test_of_a_stretch_at_several_lines_the_look_tells_that_was_as_far_from_its_beginning_or_its_end() -> None:
    """Two turns of a loop were looked at; the one that is asked for took longer by 300 us."""
    d = TraceDrawing()
    d.python("train.py(12): main", 0, 5_000)
    for i in range(5):
        d.host("aten::mm", 1_000 * i + 100, 400 + 300 * (i == 3))
    seen = ((50, 15), (90, 15), (310, 16), (350, 16))
    looks = tuple((1_000 * i + 100 + at, line) for i in (1, 2) for at, line in seen)
    trace = with_lines(trace_of(d.events()), looks=looks)
    asked = [s for s in range(len(trace.slices)) if trace.name_of(s) == "aten::mm"][3]
    found = [Locator(trace).where(asked, (3_100 + at) * US) for at in (70, 650, 200)]
    assert [(place.line, place.defined) for place in found] == [(15, False), (16, False), (12, True)]


def test_a_look_at_another_function_of_that_name_tells_nothing() -> None:
    trace = with_lines(loop(), *CALLED, looks=((130, 15),))
    strings, looks = table_of(trace.strings, Looks, [(130 * US, 0, "/home/ana/other.py", 15, "main", NULL)])
    found = line_of(replace(trace, strings=strings, looks=looks), "aten::mm")
    assert (found.file, found.line, found.defined) == ("train.py", 12, True)


def test_without_any_frame_the_look_itself_is_the_place() -> None:
    trace = trace_of(
        draw("""
        1 char = 10 us
        main  | [aten::mm ] [aten::add]
    """)
    )
    trace = with_lines(trace, looks=((60, 15),))
    assert line_of(trace, "aten::mm") == Where("/home/ana/train.py", 15, "main", "aten::mm")
    assert line_of(trace, "aten::add") == Where(op="aten::add")


def test_the_range_of_a_callback_is_apart_from_what_is_around_it() -> None:
    """Looks in it tell of others of its kind at any instant, and those around it of all around."""
    d = TraceDrawing()
    name = "keras.callback: Writes.on_train_batch_end (train.py:10)"
    for i in range(6):
        d.host("aten::mm", 1_000 * i + 100, 50)
        d.annotation(name, 1_000 * i + 300 + 50 * i, 200)
        d.host("aten::add", 1_000 * i + 320 + 50 * i, 20)
    trace = trace_of(d.events())
    met = [(250, 30, "main"), (1_600, 30, "main"), (2_420, 13, "on_train_batch_end"), (3_600, 13, "on_train_batch_end")]
    seen = [(at * US, 0, "/home/ana/train.py", line, function, NULL) for at, line, function in met]
    strings, looks = table_of(trace.strings, Looks, seen)
    trace = replace(trace, strings=strings, looks=looks)
    called = [line_of(trace, "aten::add", i) for i in range(6)]
    assert {(place.function, place.line) for place in called} == {("on_train_batch_end", 13)}
    callbacks = [s for s in range(len(trace.slices)) if trace.name_of(s) == name]
    assert Locator(trace).where(callbacks[5], 5_700 * US).line == 13
    assert Locator(trace).where(callbacks[0], 480 * US).line == 13


def test_between_callbacks_of_one_loop_its_caller_is_told_if_looks_before_and_behind_met_it() -> None:
    d = TraceDrawing()
    for i in range(6):
        d.host("aten::mm", 1_000 * i + 100, 50)
        d.annotation("keras.callback: Writes.on_train_batch_end (train.py:10)", 1_000 * i + 300, 200)
    d.host("aten::sum", 2_600, 50)
    d.host("aten::cat", 5_600, 50)
    trace = trace_of(d.events())
    met = [(120, 30), (2_000, 30), (3_000, 30), (5_580, 31), (5_700, 31)]
    seen = [(at * US, 0, "/home/ana/train.py", line, "main", NULL) for at, line in met]
    strings, looks = table_of(trace.strings, Looks, seen)
    trace = replace(trace, strings=strings, looks=looks)
    assert line_of(trace, "aten::sum").line == 30
    assert line_of(trace, "aten::cat").line is None


# --- the reader -------------------------------------------------------------------------------------------------------


def recorded(given: dict[str, Any] | None = None) -> Trace:
    """What PyTorch writes of a loop in ``main`` that starts its profiler, and calls ``load`` behind that."""
    d = TraceDrawing()
    frames = (
        ("train.py(40): <module>", 0, 1_000),
        ("train.py(24): main", 2, 996),
        ("torch/profiler/profiler.py(1128): start", 4, 100),
        ("torch/autograd/profiler.py(414): _start_trace", 6, 60),
        ("<built-in function perf_counter_ns>", 50, 2),
        ("train.py(3): load", 200, 300),
        ("<built-in function sleep>", 250, 200),
    )
    for number, (name, start, dur) in enumerate(frames, 1):
        d.host(name, start, dur, "python_function", **{"Python id": number})
    d.python("threading.py(1002): _bootstrap", 1, 990, thread="other")
    d.python("train.py(31): log", 3, 300, thread="other")
    d.python("train.py(31): log", 400, 300, thread="other")
    d.host("aten::add", 600, 50)
    header = {} if given is None else {"stepscopeLines": given}
    return trace_of_bytes(write_kineto(d.events(), header=header))


def lines_in(trace: Trace) -> dict[str, tuple[int | None, str]]:
    rows = trace.table("frames").to_dicts()
    return {trace.name_of(row["slice"]): (row["call_line"], str(row["begun"])) for row in rows}


def test_a_function_that_ran_when_recording_began_has_no_line() -> None:
    trace = recorded()
    assert line_of(trace, "aten::add") == Where("train.py", None, "main", "aten::add")
    assert line_of(trace, "train.py(3): load") == Where("train.py", 3, "load", defined=True)
    place = {"module": None, "annotation": None, "op": None, "file": "train.py", "line": None, "function": "main"}
    assert phrases.where(place) == "in main (train.py)"
    assert phrases.locator(place) == "train.py in main"


def test_its_caller_s_name_tells_where_that_called_it() -> None:
    found = lines_in(recorded())
    assert found["train.py(24): main"] == (40, "before")
    assert found["torch/profiler/profiler.py(1128): start"] == (24, "before")
    assert "<built-in function perf_counter_ns>" not in found
    assert "train.py(3): load" not in found


def test_on_other_threads_it_is_what_began_before_anything_was_recorded() -> None:
    trace = recorded()
    begun = {row["slice"] for row in trace.table("frames").to_dicts() if str(row["begun"]) == "before"}
    logs = [s for s in range(len(trace.slices)) if trace.name_of(s) == "train.py(31): log"]
    assert [log in begun for log in logs] == [True, False]


def test_the_callers_lines_are_read_by_the_numbers_of_the_calls() -> None:
    trace = recorded({"calls": [0, 40, 24, 1128, 415, 27, 5]})
    found = lines_in(trace)
    assert found["train.py(3): load"] == (27, "called")
    assert found["<built-in function sleep>"] == (5, "called")
    assert line_of(trace, "<built-in function sleep>") == Where("train.py", 5, "load")


@pytest.mark.parametrize(
    "given",
    [{"calls": "x"}, {"calls": [1.5]}, {"calls": [1 << 70]}, {"calls": [-3] * 9}, {"looks": 3}, 3, {"looks": {}},
     {"looks": {"places": [], "time_ns": [1], "place": [0], "thread": 1}}],
)  # fmt: skip
def test_lines_that_make_no_sense_are_left_aside(given: Any) -> None:
    assert lines_in(recorded(given)) == lines_in(recorded())
    assert not len(recorded(given).looks)


def test_looks_are_read_with_their_times() -> None:
    trace = recorded()
    epoch, thread = trace.info.origin_epoch_ns, trace.table("tracks")["thread"].to_list()[0]
    assert epoch is not None
    looks = {"places": [["/job/train.py", 33, "main"]], "time_ns": [epoch + 620_000, 5, 5], "place": [0, -1, 0]}
    found = recorded({"looks": looks | {"thread": int(thread)}})
    assert found.looks.time_ns.tolist() == [620_000, 620_010]
    assert line_of(found, "aten::add") == Where("train.py", 33, "main", "aten::add")
    assert not len(recorded({"looks": looks | {"thread": 999_999}}).looks)
