"""A part of a trace holds what was chosen, unchanged, under new numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import UsageError
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.select import TracePart, by_duration, by_time, extent, overlapping, select, with_partners
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.support import trace_of
from tests.trace.traces import assert_same, traces


def kept(trace: Trace, keep: t.Bools, window: tuple[int, int] | None = None) -> Trace:
    return select(trace, TracePart(keep, "some slices", window))


@given(traces(), st.data())
def test_what_is_kept_is_what_it_was(trace, data):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(trace.slices), max_size=len(trace.slices))))
    if not keep.any():
        return
    part = kept(trace, keep)
    old_id = np.flatnonzero(keep)
    for name in ("tracks", "slices"):
        rows = old_id if name == "slices" else slice(None)
        for f in dataclasses.fields(t.TABLES[name]):
            if f.name not in ("depth", "parent"):
                one, other = trace.table(name)[f.name].cast(str)[rows], part.table(name)[f.name].cast(str)
                assert one.to_list() == other.to_list()
    for name in ("host_ops", "launches", "flows", "step_marks", "xla_ops", "tensors"):
        owners = [f.name for f in dataclasses.fields(t.TABLES[name]) if f.metadata["table"] == "slices"]
        before = trace.table(name).rows(named=True)
        after = part.table(name).rows(named=True)
        expected = [row for row in before if all(keep[row[owner]] for owner in owners)]
        assert [row | {owner: int(old_id[row[owner]]) for owner in owners} for row in after] == expected
    assert len(part.memory) == len(trace.memory)


@given(traces(), st.data())
def test_parents_are_those_that_a_reader_would_have_found(trace, data):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(trace.slices), max_size=len(trace.slices))))
    if not keep.any():
        return
    part = kept(trace, keep)
    builder = TraceBuilder(trace.strings)
    for _ in range(len(trace.tracks)):
        builder.track(t.TrackKind.HOST_THREAD, "1", None)
    names = [f.name for f in dataclasses.fields(t.Slices) if f.name not in ("depth", "parent")]
    builder.slices(**{name: getattr(trace.slices, name)[keep] for name in names})
    rebuilt = builder.build(trace.info, trace.completeness)
    assert part.slices.parent.tolist() == rebuilt.slices.parent.tolist()
    assert part.slices.depth.tolist() == rebuilt.slices.depth.tolist()


@given(traces())
def test_keeping_all_changes_nothing_but_the_record_and_unused_texts(trace):
    part = kept(trace, np.ones(len(trace.slices), np.bool_))
    (loss,) = part.completeness.losses[len(trace.completeness.losses) :]
    assert (loss.code, loss.count, loss.damaged, loss.lost_events) == ("sliced", 0, False, 0)
    assert set(part.strings) <= set(trace.strings)
    again = kept(part, np.ones(len(part.slices), np.bool_))
    assert_same(dataclasses.replace(again, completeness=part.completeness), part)


@given(traces(), st.integers(-10, 60), st.integers(1, 40))
def test_overlapping_is_sharing_an_instant(trace, start, length):
    found = overlapping(trace, start, start + length)
    for row in range(len(trace.slices)):
        begin, end = int(trace.slices.start_ns[row]), trace.end_ns(row)
        instants = {2 * begin} | set(range(2 * begin, 2 * end))  # Halves: a slice of no length is its start.
        assert found[row] == bool(instants & set(range(2 * start, 2 * (start + length))))


def loop() -> Trace:
    """Step 1 (0-100 us) launches a kernel that runs at 150; step 2 (100-200) one that runs at 250."""
    drawing = TraceDrawing()
    for step in (1, 2):
        at = 100 * (step - 1)
        drawing.step(step, at, 100)
        op = drawing.host("aten::mm", at + 10, 40)
        launch = drawing.launch(at + 20, 5)
        drawing.kernel(launch, f"gemm{step}", at + 150, 30)
        drawing.memory(at + 30, 512)
        assert op
    return trace_of(drawing.events())


def names(trace: Trace) -> list[str]:
    """The slices' names, without that of the profile's own span."""
    found = sorted(trace.name_of(row) for row in range(len(trace.slices)))
    return [name for name in found if not name.startswith("PyTorch Profiler")]


def test_a_range_of_time_keeps_launches_with_their_ops_and_the_other_way_round():
    trace = loop()
    part = select(trace, by_time(trace, 0, 100_000))
    assert names(part) == ["ProfilerStep#1", "aten::mm", "cudaLaunchKernel", "gemm1"]
    assert len(part.memory) == 1
    part = select(trace, by_time(trace, 240_000, 300_000))
    assert names(part) == ["cudaLaunchKernel", "gemm2"]
    assert part.name_of(int(part.device_ops.launch[0])) == "cudaLaunchKernel"
    assert len(part.memory) == 0
    loss = part.completeness.losses[-1]
    assert (loss.code, loss.count) == ("sliced", 6)
    assert loss.text == "slices were cut out of this profile, which keeps only the time from 240 µs to 300 µs"
    assert part.completeness.complete


def test_short_slices_go_but_steps_and_the_launches_of_kept_ops_stay():
    trace = loop()
    part = select(trace, by_duration(trace, 35_000))
    assert names(part) == ["ProfilerStep#1", "ProfilerStep#2", "aten::mm", "aten::mm"]
    part = select(trace, by_duration(trace, 30_000))
    assert names(part).count("cudaLaunchKernel") == 2
    assert len(part.memory) == 2


def test_an_op_without_its_launch_has_none():
    trace = loop()
    calls = trace.slices.kind == t.Kind.RUNTIME_CALL
    part = kept(trace, ~calls)
    assert part.device_ops.launch.tolist() == [-1, -1]
    assert len(part.launches) == 0
    assert with_partners(trace, ~calls).all()


def test_parts_are_kept_together():
    trace = loop()
    part = select(trace, by_time(trace, 0, 100_000), by_duration(trace, 30_000))
    assert names(part) == ["ProfilerStep#1", "aten::mm", "cudaLaunchKernel", "gemm1"]
    assert part.completeness.losses[-1].text.endswith("the time from 0 ns to 100 µs and slices of 30.0 µs and longer")


def test_texts_that_nothing_uses_are_dropped_and_devices_stay():
    trace = loop()
    part = select(trace, by_time(trace, 0, 100_000))
    assert "gemm2" in trace.strings
    assert "gemm2" not in part.strings
    assert part.info == trace.info


def test_an_empty_part_is_refused():
    trace = loop()
    with pytest.raises(UsageError, match=r"holds nothing of the time from 1\.00 s to 2\.00 s: it lasts from 0 ns to "):
        select(trace, by_time(trace, 1_000_000_000, 2_000_000_000))
    assert extent(trace)[0] == 0
