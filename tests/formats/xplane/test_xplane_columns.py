"""What the XPlane reader does to whole columns, against the obvious way to do it."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.formats.xplane import grouping, wire
from stepscope.formats.xplane.moments import EventStretches, OnLines, around_or_of_task, first_from, outermost_around
from stepscope.formats.xplane.space import SpaceEvents

DRAWS = range(60)


@pytest.mark.parametrize("seed", DRAWS)
def test_rows_are_grouped_as_by_sorting(seed):
    draw = np.random.default_rng(seed)
    size, most = int(draw.integers(0, 3_000)), int(draw.choice([2, 50, 1 << 61]))
    columns = [draw.integers(-most, most, size), draw.integers(0, 3, size).astype(np.int32)]
    group, first = grouping.dense(*columns)
    _, expected_first, expected = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    assert first.tolist() == expected_first.tolist()
    assert group.tolist() == expected.reshape(-1).tolist()
    values, each = grouping.distinct(columns[0])
    assert values.tolist() == sorted(set(columns[0].tolist()))
    assert values[each].tolist() == columns[0].tolist()


@pytest.mark.parametrize("seed", DRAWS)
def test_the_first_equal_row_matches(seed):
    draw = np.random.default_rng(seed)
    known = [draw.integers(0, 9, int(draw.integers(0, 40))) for _ in range(2)]
    known[1] = known[1][: len(known[0])]
    known[0] = known[0][: len(known[1])]
    wanted = [draw.integers(0, 9, 30) for _ in range(2)]
    for width in (1, 2):
        rows = list(zip(*(column.tolist() for column in known[:width]), strict=True))
        keys = zip(*(column.tolist() for column in wanted[:width]), strict=True)
        expected = [rows.index(key) if key in rows else -1 for key in keys]
        assert grouping.match(wanted[:width], known[:width]).tolist() == expected


@pytest.mark.parametrize("seed", DRAWS)
def test_values_of_rows_in_any_order(seed):
    draw = np.random.default_rng(seed)
    of = np.flatnonzero(draw.random(60) < draw.random()).astype(np.int32)
    field, value = draw.integers(2, 8, of.size).astype(np.uint8), draw.integers(0, 99, of.size)
    rows = draw.integers(0, 70, int(draw.integers(0, 50)))
    rows = np.sort(rows) if seed % 3 else rows
    out = np.full(rows.size, -5)
    others = wire.values_of(rows, (of, field, value), (wire.UNSIGNED, wire.SIGNED), out)
    told = {row: (f, v) for row, f, v in zip(of.tolist(), field.tolist(), value.tolist(), strict=True)}
    whole = {row: v for row, (f, v) in told.items() if f in (wire.UNSIGNED, wire.SIGNED)}
    assert out.tolist() == [whole.get(row, -5) for row in rows.tolist()]
    assert others == sum(row in told and row not in whole for row in rows.tolist())


@pytest.mark.parametrize("seed", DRAWS)
def test_moments_on_lines(seed):
    draw = np.random.default_rng(seed)
    line, start, dur = draw.integers(0, 4, 80).astype(np.int32), draw.integers(0, 40, 80), draw.integers(0, 9, 80)
    events = SpaceEvents(np.arange(80), line, line, start, dur, np.zeros(80, np.uint8))
    rows, begins = np.flatnonzero(draw.random(80) < 0.3), np.flatnonzero(draw.random(80) < 0.3)
    calls, tasks = (OnLines.of(chosen, line, start) for chosen in (rows, begins))
    calls = EventStretches(calls, (start + dur)[calls.rows], calls.rows)
    tasks = EventStretches(tasks, tasks.start + 5, tasks.rows)
    around = outermost_around(calls, line, start, start + 2)
    found = around_or_of_task(calls, tasks, np.arange(80), events)
    moments = OnLines.of(np.arange(80), line, start)
    from_here = np.empty(80, np.intp)
    from_here[moments.rows] = first_from(rows, moments, line, start)
    for at in range(80):
        before, tasks_before = (
            sorted((r for r in of.tolist() if line[r] == line[at] and start[r] <= start[at]), key=lambda r: start[r])
            for of in (rows, begins)
        )
        holding = [r for r in before[-16:] if start[r] + dur[r] >= start[at] + 2]
        assert around[at] == (holding[0] if holding else -1)
        holding = [r for r in before[-16:] if start[r] + dur[r] >= start[at] + dur[at]]
        holding += [r for r in tasks_before[-1:] if start[at] <= start[r] + 5]
        assert found[at] == (holding[0] if holding else -1)
        after = [r for r in rows.tolist() if line[r] == line[at] and start[r] >= start[at]]
        assert from_here[at] == min(after, key=lambda r: start[r], default=-1)
