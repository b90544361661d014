"""Which steps are whole ones, and what the figures are made of."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stepscope.analysis.complete import used_steps
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from tests.kit.builder import TraceDrawing
from tests.support import facts_of

US = 1_000


def training(durations: Sequence[int], launches: Sequence[int], kernel: float = 3, ops: Sequence[int] = ()) -> Facts:
    """Steps of so many µs with so many launches each, and so many ops that launch nothing."""
    drawing, start = TraceDrawing(), 0
    for number, (dur, count) in enumerate(zip(durations, launches, strict=True)):
        drawing.step(number, start, dur)
        for i in range(count):
            drawing.kernel(drawing.launch(start + 10 * i, 4), "k", start + 10 * i + 6, kernel)
        for i in range(ops[number] if ops else 0):
            drawing.host("aten::empty", start + 1 + 10 * i + 5, 2)
        start += dur
    return facts_of(drawing.events())


@pytest.mark.parametrize(
    ("durations", "launches", "whole"),
    [
        ([100, 100, 100], [4, 4, 4], True),
        ([100, 100, 50], [4, 4, 4], True),
        ([100, 500, 100], [4, 4, 4], True),  # the one before was held up
        ([100, 100, 49], [4, 4, 4], False),
        ([100, 100, 100], [4, 4, 2], True),
        ([100, 100, 100], [4, 4, 1], False),
        ([100, 10], [4, 1], False),
        ([100, 20], [4, 2], True),  # half of the other's work: a short step
        ([1000, 100], [4, 4], True),  # the host took longer the first time: it did the same
    ],
)
def test_a_last_step_under_half_the_others_is_incomplete(durations: list[int], launches: list[int], whole: bool):
    facts = training(durations, launches)
    assert facts.complete == (*[True] * (len(durations) - 1), whole)
    assert facts.used == used_steps(facts.complete)


def test_of_three_only_the_last_can_be_cut_off():
    assert training([100, 10, 100], [4, 1, 4]).complete == (True, True, True)


@pytest.mark.parametrize(
    ("launches", "complete"),
    [
        ([50, 0], "yn"),
        ([0, 50], "ny"),
        ([20, 50], "ny"),
        ([50, 0, 0], "ynn"),
        ([0, 50, 50], "nyy"),
        ([50, 0, 50, 50], "ynyy"),  # prof.step() twice
        ([50, 2, 50, 50], "ynyy"),  # and a wait between, whose copy is all that it holds
        ([50, 3, 50, 50], "yyyy"),
        ([2, 2, 2, 50], "yyyy"),  # a first or last step that does more leaves the others what they are
        ([0, 0, 0], "yyy"),
    ],
)
def test_steps_that_hold_nothing_beside_the_others_are_none(launches: list[int], complete: str):
    facts = training([500] * len(launches), launches)
    assert "".join("y" if whole else "n" for whole in facts.complete) == complete
    (account,) = facts.accounts
    assert int(account.duration_ns.sum()) == int(account.rows.bounds[-1] - account.rows.bounds[0])


def test_a_step_in_the_middle_in_which_the_host_works_as_in_others_is_one():
    """The environment runs on the host, and the model learns in some of the steps."""
    facts = training([500] * 5, [40, 0, 40, 0, 40], ops=[40] * 5)
    assert facts.complete == (True,) * 5


def test_few_ops_that_take_as_long_as_the_others_are_a_step():
    drawing = TraceDrawing()
    for number, (count, kernel) in enumerate([(50, 3), (50, 3), (1, 150), (50, 3)]):
        drawing.step(number, number * 600, 600)
        for i in range(count):
            at = number * 600 + 10 * i
            drawing.kernel(drawing.launch(at, 4), "k", at + 6, kernel)
    assert facts_of(drawing.events()).complete == (True,) * 4


@pytest.mark.parametrize(
    ("ops", "complete"), [([40, 0], "yn"), ([0, 40, 40], "nyy"), ([40, 1, 40], "yny"), ([40, 30], "yy")]
)
def test_without_a_device_the_hosts_ops_tell(ops: list[int], complete: str):
    durations = [500 if count > 1 else 10 for count in ops]
    facts = training(durations, [0] * len(ops), ops=ops)
    assert "".join("y" if whole else "n" for whole in facts.complete) == complete


def test_an_empty_marker_behind_the_only_step_halves_nothing():
    drawing = TraceDrawing()
    drawing.step(3, 0, 9_180)
    drawing.step(4, 9_180, 60)
    for at in range(0, 9_180, 51):
        drawing.kernel(drawing.launch(at), "k", at + 6, 40 if at < 9_129 else 45)
    facts = facts_of(drawing.events())
    assert facts.mean_step_ns == 9_180 * US
    found = diagnose(facts)
    assert "too_little_work" not in [finding.rule for finding in (*found.findings, *found.minor)]
    told = {notice.code: notice.text for notice in found.notices}
    assert told["profile_steps_left_out"] == (
        "Step 4 is left out of all figures: it launches none of the 180 device ops that a whole step has."
    )
    assert told["profile_few_steps"].startswith("Only 1 complete step:")


def test_several_steps_that_are_left_out():
    told = {notice.code: notice.text for notice in diagnose(training([500] * 4, [50, 0, 0, 50])).notices}
    assert told["profile_steps_left_out"] == (
        "Steps 1, 2 are left out of all figures: each launches none of the 50 device ops that a whole step has."
    )


@pytest.mark.parametrize(
    ("complete", "used"),
    [
        ("yyy", (0, 1, 2)),
        ("yyyy", (1, 2)),
        ("yyyn", (0, 1, 2)),
        ("yyyyyn", (1, 2, 3)),
        ("y", (0,)),
    ],
)
def test_statistics_leave_out_the_first_and_last_where_four_or_more_are_whole(complete: str, used: tuple[int, ...]):
    assert used_steps(tuple(c == "y" for c in complete)) == used


def test_an_incomplete_step_has_a_window_and_no_say():
    facts = training([100] * 5 + [20], [4] * 5 + [1])
    assert facts.used == (1, 2, 3)
    assert len(facts.step_ns) == 6
    assert facts.median_step_ns == 100 * US
