"""Looks at the thread of a job that a manifest keeps beside its profile."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.where import Locator
from stepscope.formats.beside.looks import with_looks
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.kit.drawing import draw
from tests.support import trace_of


def job() -> Trace:
    return trace_of(draw("""
        other |[P                 ]
        main  |[S      ][T        ]
        main  |  [aten::mm]
        S = step 5
        T = step 6
        P = py threading.py(3): run
    """))  # fmt: skip


def told(trace: Trace, **changes: Any) -> dict[str, Any]:
    """A manifest that holds two looks at code of the job, and one at none."""
    assert trace.info.origin_epoch_ns is not None
    looks = {
        "thread": 4711,
        "places": [["/job/train.py", 12, "<module>"]],
        "time_ns": [trace.info.origin_epoch_ns + 1_000, 500, 500],
        "place": [0, -1, 0],
    }
    return {"files": [{"path": "sub/a.json", "looks": looks | changes}]}


def test_looks_are_at_the_thread_whose_steps_were_marked() -> None:
    trace = job()
    found = with_looks(trace, told(trace), "a.json")
    assert found.table("looks").select("time_ns", "line").rows() == [(1_000, 12), (2_000, 12)]
    assert found.table("looks")["core_wait_ns"].to_list() == [None, None]
    main = next(int(trace.slices.track[s]) for s in range(len(trace.slices)) if trace.name_of(s) == "aten::mm")
    assert set(found.looks.track.tolist()) == {main}


def test_looks_are_at_the_thread_of_that_number_where_the_profile_has_it() -> None:
    trace = job()
    other = next(int(trace.slices.track[s]) for s in range(len(trace.slices)) if "threading" in trace.name_of(s))
    number = int(trace.strings[int(trace.tracks.thread[other])])
    assert set(with_looks(trace, told(trace, thread=number), "a.json").looks.track.tolist()) == {other}


@pytest.mark.parametrize(
    "changes", [{"place": [0]}, {"place": [0, 1, 0]}, {"places": 3}, {"time_ns": [1 << 80, 0, 0]}, {"places": []}]
)
def test_looks_that_make_no_sense_are_left_aside(changes: dict[str, Any]) -> None:
    trace = job()
    assert with_looks(trace, told(trace, **changes), "a.json") is trace


@pytest.mark.parametrize("manifest", [None, {}, {"files": 3}, {"files": [3]}])
def test_without_looks_the_trace_stays_as_it_is(manifest: Any) -> None:
    trace = job()
    assert with_looks(trace, manifest, "a.json") is trace
    assert with_looks(trace, told(trace), "b.json") is trace


def test_waits_for_a_core_count_from_the_first_look() -> None:
    trace = job()
    found = with_looks(trace, told(trace, core_wait_ns=[7_000, 30, 12]), "a.json")
    assert found.table("looks")["core_wait_ns"].to_list() == [0, 42]
    found = with_looks(trace, told(trace, core_wait_ns=[7_000, None, 12]), "a.json")
    assert found.table("looks")["core_wait_ns"].to_list() == [0, 12]
    found = with_looks(trace, told(trace, core_wait_ns=[None, 7_000, None]), "a.json")
    assert found.table("looks")["core_wait_ns"].to_list() == [None, None]


@pytest.mark.parametrize("waited", [[1, 2], [1, -2, 3], ["x"] * 3, [1 << 61] * 3])
def test_waits_that_make_no_sense_are_left_aside_with_their_looks(waited: list[Any]) -> None:
    trace = job()
    assert not len(with_looks(trace, told(trace, core_wait_ns=waited), "a.json").looks)


def decoding() -> Trace:
    d = TraceDrawing()
    d.host("ProfilerStep#5", 0, 500)
    d.python("train.py(16): decode", 10, 300)
    d.python("<built-in function asarray>", 20, 200)
    d.python("<unknown> reshape", 230, 20)
    d.python("train.py(3): scaled", 260, 20)
    return trace_of(d.events())


def lines_of_calls(trace: Trace, *calls: Any) -> dict[str, int]:
    found = with_looks(trace, told(trace, calls=list(calls)), "a.json")
    names = [found.name_of(slice_id) for slice_id in found.frames.slice.tolist()]
    return dict(zip(names, found.frames.call_line.tolist(), strict=True))


def test_calls_that_the_profiler_kept_no_line_of_have_that_of_the_bytecode() -> None:
    calls = {"asarray": 20, "scaled": 21, "sleep": 18}
    trace = decoding()
    assert lines_of_calls(trace, ["/job/train.py", 16, "decode", calls]) == {
        "<built-in function asarray>": 20,
        "train.py(3): scaled": 21,
    }
    looked = with_looks(trace, told(trace, calls=[["/job/train.py", 16, "decode", calls]]), "a.json")
    asarray = next(s for s in range(len(trace.slices)) if "asarray" in trace.name_of(s))
    assert Locator(looked).where(asarray).line == 20


@pytest.mark.parametrize(
    "calls",
    [
        [["/job/train.py", 12, "decode", {"asarray": 20}]],  # Another function of that name.
        [["/job/other.py", 16, "decode", {"asarray": 20}]],
        [["/a/train.py", 16, "decode", {"asarray": 20}], ["/b/train.py", 16, "decode", {"asarray": 25}]],
    ],
)
def test_the_calls_of_another_function_tell_nothing(calls: list[Any]) -> None:
    assert not lines_of_calls(decoding(), *calls)


@pytest.mark.parametrize(
    "calls", [3, [["/job/train.py", 16, "decode", {"asarray": 0}]], [["x", 1, "y", {"z": 1 << 40}]]]
)
def test_calls_that_make_no_sense_are_left_aside(calls: Any) -> None:
    trace = decoding()
    assert with_looks(trace, told(trace, calls=calls), "a.json") is trace
