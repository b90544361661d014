"""The random traces are legal neutral events, and reach the corners they are meant for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings

from tests.kit.events import CALLS, DEVICE_WORK, Event, Stream, Thread
from tests.kit.random_traces import random_traces


@given(random_traces())
def test_events_lie_on_tracks_of_their_kind(events: list[Event]) -> None:
    for event in events:
        on_device = event.cat in (*DEVICE_WORK, "cuda_sync", "gpu_user_annotation")
        assert isinstance(event.track, Stream if on_device else Thread)
        assert event.start_ns % 1000 == 0
        assert event.start_ns >= 0
        assert event.dur_ns is not None
        assert event.dur_ns >= 0


def crossing(events: list[Event]) -> bool:
    notes = [event for event in events if event.cat == "user_annotation"]
    return any(a.track == b.track and a.start_ns < b.start_ns < a.end_ns < b.end_ns for a in notes for b in notes)


def overlapping_kernels(events: list[Event]) -> bool:
    work = [event for event in events if event.cat == "kernel"]
    return any(a is not b and a.track == b.track and a.start_ns <= b.start_ns < a.end_ns for a in work for b in work)


def launched_afterwards(events: list[Event]) -> bool:
    calls = {event.correlation: event for event in events if event.cat in CALLS and event.correlation}
    return any(
        event.cat in DEVICE_WORK and event.correlation in calls and calls[event.correlation].start_ns > event.start_ns
        for event in events
    )


def unlaunched(events: list[Event]) -> bool:
    calls = {event.correlation for event in events if event.cat in CALLS}
    return any(event.cat in DEVICE_WORK and event.correlation not in calls for event in events)


def doubled(events: list[Event]) -> bool:
    return any(events[i] is events[j] for i in range(len(events)) for j in range(i))


def unsorted(events: list[Event]) -> bool:
    return [event.start_ns for event in events] != sorted(event.start_ns for event in events)


def two_devices(events: list[Event]) -> bool:
    return len({event.track.device for event in events if isinstance(event.track, Stream)}) > 1


def steps_and_work(events: list[Event]) -> bool:
    marked = {event.name for event in events if event.name.startswith("ProfilerStep#")}
    return len(marked) > 2 and any(event.cat == "kernel" for event in events)


@pytest.mark.parametrize(
    "corner",
    [
        pytest.param(crossing, marks=pytest.mark.slow),
        overlapping_kernels,
        launched_afterwards,
        unlaunched,
        doubled,
        unsorted,
        two_devices,
        steps_and_work,
    ],
    ids=lambda corner: corner.__name__,
)
def test_each_corner_is_reached(corner: Callable[[list[Event]], bool]) -> None:
    search = settings(max_examples=3000, database=None, phases=(Phase.generate,), derandomize=True)
    assert corner(find(random_traces(), corner, settings=search))
