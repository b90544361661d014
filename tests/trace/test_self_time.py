"""Time of a track belongs to one slice at every instant: the one that began last and still runs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.trace import tables as t
from stepscope.trace.self_time import self_time

SLICES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 9)), max_size=9)


def slices_of(rows: list[tuple[int, int, int]]) -> t.Slices:
    """Slices (track, start, duration) in the order of a trace."""
    columns = {name: np.zeros(len(rows), t.dtype_of(f)) for name, f in t.Slices.__dataclass_fields__.items()}
    for name, values in zip(("track", "start_ns", "dur_ns"), zip(*rows, strict=True), strict=False):
        columns[name] = np.array(values, columns[name].dtype)
    return t.Slices(**columns)


@given(SLICES, st.integers(-2, 10), st.integers(0, 15))
def test_every_instant_goes_to_the_slice_begun_last(rows, begin, length):
    rows = sorted(rows, key=lambda row: (row[0], row[1], -row[2]))
    expected = [0] * len(rows)
    for track in (0, 1):
        for instant in range(begin, begin + length):
            running = [i for i, (on, start, dur) in enumerate(rows) if on == track and start <= instant < start + dur]
            if running:
                expected[running[-1]] += 1
    assert self_time(slices_of(rows), begin, begin + length).tolist() == expected


def test_many_slices_at_once():
    """More than the kernel makes room for at first."""
    rows = [(0, at, 1000 - 2 * at) for at in range(200)]
    own = self_time(slices_of(rows), 0, 1000)
    assert own.sum() == 1000
    assert own[:-1].tolist() == [2] * 199
