"""The drawing notation means what it looks like, and goes both ways."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import assume, given

from tests.kit.builder import TraceDrawing
from tests.kit.drawing import LOADER, DrawingError, draw, render
from tests.kit.events import CALLS, DEVICE_WORK, Event, FlowEnd, Stream, Thread
from tests.kit.random_traces import random_traces

US = 1_000

DRAWING = """
    1 char = 10 us
    main   |[S                              ]
    main   |[aten::linear   ] [s           ] i>
    main   |    a  b                      m
    gpu0/7 |     [a    ][b            ]
    gpu1/20|               [c   ]
    S = step 5
    s = sync cudaStreamSynchronize
    i = input
    m = memory -512 Device~Id=0
    b = kernel sgemm grid=[1,2,3] est.~achieved~occupancy~%=50
    c = copy HtoD 4096 Pinned
"""


def by_name(events: Iterable[Event]) -> dict[str, Event]:
    return {event.name: event for event in events}


def test_columns_are_times() -> None:
    events = by_name(draw(DRAWING))
    step, wait = events["ProfilerStep#5"], events["cudaStreamSynchronize"]
    assert (step.start_ns, step.end_ns, step.cat) == (0, 330 * US, "user_annotation")
    assert (wait.start_ns, wait.end_ns, wait.cat) == (180 * US, 320 * US, "cuda_runtime")
    assert (events[LOADER].start_ns, events[LOADER].dur_ns) == (330 * US, 20 * US)
    assert events["a"] == Event("kernel", "a", Stream(0, 7), 50 * US, 70 * US, events["a"].correlation)
    assert events["[memory]"].dur_ns is None
    assert events["[memory]"].args == {"Bytes": -512, "Device Id": 0}


def test_a_label_on_both_sides_is_a_launch() -> None:
    events = draw(DRAWING)
    launches = [event for event in events if event.name == "cudaLaunchKernel"]
    kernels = by_name(events)
    assert [(call.start_ns, call.correlation) for call in launches] == [
        (40 * US, kernels["a"].correlation),
        (70 * US, kernels["sgemm"].correlation),
    ]
    assert kernels["sgemm"].args == {"grid": [1, 2, 3], "est. achieved occupancy %": 50}


def test_work_without_a_host_label_has_no_launch() -> None:
    events = draw(DRAWING)
    copy = by_name(events)["copy"]
    assert copy.track == Stream(1, 20)
    assert copy.args == {"direction": "HtoD", "bytes": 4096, "memory": "Pinned"}
    assert not [event for event in events if event.cat in CALLS and event.correlation == copy.correlation]


def test_a_label_drawn_often_pairs_up_or_is_a_graph() -> None:
    pairs = draw("main  |a a\ngpu0/7|  [a ][a ]")
    assert [e.correlation for e in pairs] == [1, 2, 1, 2]
    graph = draw("main  |g\ngpu0/7|  [a ][a ]\ng = launch a cudaGraphLaunch")
    assert [(e.name, e.correlation) for e in graph] == [("cudaGraphLaunch", 1), ("a", 1), ("a", 1)]


def test_arrows_frames_and_overrides() -> None:
    events = by_name(
        draw("""
        main    |[f ]  z
        main    |[p        ]
        autograd|     [b ]
        f = op aten::linear fwd=3
        b = op AddmmBackward0 bwd=3
        p = py train.py(12): main
        z = call cudaEventRecord dur=0
    """)
    )
    assert events["aten::linear"].flows == (FlowEnd(3, True),)
    assert events["AddmmBackward0"].flows == (FlowEnd(3, False),)
    assert events["AddmmBackward0"].track == Thread("autograd")
    assert events["train.py(12): main"].cat == "python_function"
    assert events["cudaEventRecord"].dur_ns == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("main|[a\n", "bracket"),
        ("main|a]\n", "bracket"),
        ("main|a\ngpu0/7 |a", "bar"),
        ("nonsense", "neither"),
        ("main|a\na = kernel sgemm", "cannot|can be"),
        ("gpu0/7|a\na = py x", "can be"),
    ],
)
def test_a_drawing_that_makes_no_sense_is_refused(text: str, says: str) -> None:
    with pytest.raises(DrawingError, match=says):
        draw(text)


def numbered(events: Iterable[Event]) -> list[Event]:
    """Events in one order, correlations renumbered by first appearance."""
    listed = sorted(
        events,
        key=lambda e: (str(e.track), e.start_ns, e.dur_ns or -1, e.cat, e.name, str(e.args), str(e.flows)),
    )
    known: dict[int, int] = {}
    return [
        event
        if event.correlation is None
        else replace(event, correlation=known.setdefault(event.correlation, len(known)))
        for event in listed
    ]


def test_a_drawing_survives_render_and_draw() -> None:
    events = draw(DRAWING)
    assert numbered(draw(render(events))) == numbered(events)


@given(random_traces(most=8))
def test_any_trace_that_can_be_drawn_survives(events: list[Event]) -> None:
    calls = [event.correlation for event in events if event.cat in CALLS]
    assume(len(set(calls)) == len(calls))
    # What a drawing cannot say: an empty name, the number of a device wait, a call or work without a number,
    # and that several pieces of work share a number when no call does.
    numbers, kept = set(), []
    for event in events:
        if event.cat in DEVICE_WORK and event.correlation in numbers:
            continue
        if event.cat in DEVICE_WORK:
            numbers.add(event.correlation)
        if event.name and event.cat != "cuda_sync" and (event.correlation or event.cat not in (*CALLS, *DEVICE_WORK)):
            kept.append(event)
    assert numbered(draw(render(kept, US))) == numbered(kept)


def test_what_lies_between_columns_cannot_be_drawn() -> None:
    with pytest.raises(DrawingError, match="column"):
        render([Event("cpu_op", "aten::add", Thread(), 5, 10)])


def test_the_builder_draws_the_same() -> None:
    trace = TraceDrawing()
    trace.step(5, 0, 320)
    trace.kernel(trace.launch(40, 10), "sgemm", 50, 70)
    drawn = draw("""
        main  |[S                             ]
        main  |    a
        gpu0/7|     [a    ]
        S = step 5
        a = kernel sgemm
    """)
    assert numbered(trace.events()) == numbered(drawn)


def test_the_builder_joins_launches_waits_and_arrows() -> None:
    trace = TraceDrawing(first_correlation=7)
    forward, backward = (
        trace.host("aten::linear", 0, 5),
        trace.host("AddmmBackward0", 9, 5, thread="autograd"),
    )
    trace.backward_of(forward, backward)
    record = trace.call("cudaEventRecord", 5, 1)
    trace.stream_wait(6, Stream(0, 20), Stream(0, 7), record)
    trace.sync(12.5, 2, stream=Stream(0, 7))
    events = by_name(trace.events())
    assert events["aten::linear"].flows == (FlowEnd(1, True),)
    assert events["AddmmBackward0"].flows == (FlowEnd(1, False),)
    assert events["Stream Wait Event"].track == Stream(0, 20)
    assert events["Stream Wait Event"].args["wait_on_cuda_event_record_corr_id"] == record == 7
    assert events["Stream Sync"].start_ns == 12_500
    assert events["Stream Sync"].correlation == events["cudaStreamSynchronize"].correlation
