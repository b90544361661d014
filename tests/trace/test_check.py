"""Each promise of a trace, broken: compiled loops read without bounds checks and rely on every one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given

from stepscope.errors import TraceInvariantError
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.check import check, fault_of
from stepscope.trace.trace import Completeness, InferredSteps, Info, Trace
from tests.trace.traces import traces


def trace() -> Trace:
    """Two threads: a slice that holds another and one behind it, then a single one; two memory events, two ops."""
    builder = TraceBuilder(["op"])
    for thread in ("1", "2"):
        builder.track(t.TrackKind.HOST_THREAD, "1", thread)
    builder.slices(
        track=np.array([0, 0, 0, 1], np.int32),
        start_ns=np.array([0, 1, 20, 5]),
        dur_ns=np.array([10, 2, 1, 1]),
        name=np.zeros(4, np.int32),
        kind=np.full(4, t.Kind.HOST_OP, np.uint8),
    )
    return builder.build(Info("test"), Completeness(4, {"slices": 4}))


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("dur_ns", [10, -2, 1, 1], "negative duration"),
        ("track", [1, 0, 0, 1], "not sorted by track"),
        ("track", [0, 0, 0, 2], "slices.track is out of range"),
        ("start_ns", [2, 1, 20, 5], "not sorted by start"),
        ("start_ns", [1, 1, 20, t.NULL], "slices.start_ns is absent"),
        ("start_ns", [0, 1, 20, 1 << 62], "more than 73 years away"),
        ("dur_ns", [10, 2, 1, 1 << 62], "more than 73 years away"),
        ("parent", [0, 0, -1, -1], "does not come before its child"),
        ("parent", [-1, 2, -1, -1], "does not come before its child"),
        ("parent", [-1, 0, -1, 0], "lies on another track"),
        ("parent", [-1, 4, -1, -1], "slices.parent is out of range"),
        ("depth", [0, 2, 0, 0], "depth does not follow"),
        ("depth", [1, 2, 0, 0], "depth does not follow"),
        ("name", [0, 0, 0, 9], "slices.name is out of range"),
        ("kind", [0, 0, 0, 99], "slices.kind is out of range"),
    ],
)
def test_a_broken_slice_is_named(column, values, words):
    whole = trace()
    dtype = getattr(whole.slices, column).dtype
    broken = dataclasses.replace(whole.slices, **{column: np.array(values, dtype)})
    with pytest.raises(TraceInvariantError, match=words):
        check(dataclasses.replace(whole, slices=broken))


def test_a_longer_slice_comes_before_a_shorter_one_of_the_same_start():
    whole = trace()
    broken = dataclasses.replace(whole.slices, start_ns=np.array([0, 0, 20, 5]), dur_ns=np.array([2, 10, 1, 1]))
    assert "falling duration" in fault_of(dataclasses.replace(whole, slices=broken))


def test_ops_of_a_device_and_memory_events_are_in_order():
    whole = trace()
    ops = t.DeviceOps.empty()
    ops = t.DeviceOps(*(np.ones(2, getattr(ops, f.name).dtype) for f in dataclasses.fields(ops)))
    ops = dataclasses.replace(ops, slice=np.array([2, 1], np.int32))
    assert fault_of(dataclasses.replace(whole, device_ops=ops)) == "device_ops are not sorted by device and start"
    memory = t.Memory(*(np.zeros(2, getattr(t.Memory.empty(), f.name).dtype) for f in dataclasses.fields(t.Memory)))
    memory = dataclasses.replace(memory, time_ns=np.array([2, 1]))
    assert fault_of(dataclasses.replace(whole, memory=memory)) == "memory is not in time order"


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (((), (), ()), "not told whole"),
        (((1, 2), (2,), (None, None)), "not told whole"),
        (((5, 1), (6, 2), (0, 1)), "not in order"),
        (((1,), (0,), (0,)), "not in order"),
        (((1,), (1 << 62,), (0,)), "73 years"),
        (((1,), (2,), (1 << 70,)), "73 years"),
    ],
)
def test_inferred_steps_that_can_be_none_are_named(steps, words):
    whole = trace()
    broken = dataclasses.replace(whole.info, steps=InferredSteps("repetition", *steps))
    assert words in fault_of(dataclasses.replace(whole, info=broken))


@given(traces())
def test_what_a_builder_makes_keeps_every_promise(made):
    assert fault_of(made) == ""
