"""What a step takes unrecorded, by the steps that were timed after a window."""

from __future__ import annotations

import pytest

from stepscope.capture.options import Options
from stepscope.capture.window import Window

MS = 1_000_000
EPOCH = [2, 3, 55, 5]
"""Milliseconds of its steps: the third waits for workers that start."""


@pytest.mark.parametrize(
    ("after", "unrecorded"),
    [
        ([1, 2, 40, 3, 1, 2], 8),  # An epoch's start is among them: their mean.
        ([1, 1, 2], 6),  # It is not: the others take two fifths of what they took recorded, and so does that.
        ([1, 1, 2, 1], 1),  # One in four has it while recorded; as many without it show that recording made it.
        ([], None),
    ],
)
def test_steps_timed_after_a_window_are_held_against_their_like(after: list[int], unrecorded: int | None):
    window = Window(Options())
    window.recorded, window.after = [ms * MS for ms in EPOCH * 5], [ms * MS for ms in after]
    times = window.facts([], settled=True)["step_ns"]
    assert times["recorded"] == sum(EPOCH) * MS // 4
    assert (times["unrecorded"] is None) if unrecorded is None else (times["unrecorded"] // MS == unrecorded)
    assert times["each"]["unrecorded"] == window.after
