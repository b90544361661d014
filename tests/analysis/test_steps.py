"""Which steps a profile has, and the windows they take on each device (one column is 10 µs)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from stepscope.analysis.facts import Facts
from stepscope.analysis.repeated import period
from stepscope.analysis.summary import behind_ns
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.random_traces import random_traces
from tests.support import facts_of, facts_of_drawing

US = 1_000

Row = tuple[str | int, int, int]


def rows(facts: Facts, device: int = 0) -> list[Row]:
    """Rows of a device: step or phase, start and duration in µs."""
    account = facts.accounts[device]
    return [
        (phase if step is None else step, int(start) // US, int(ns) // US)
        for step, phase, start, ns in zip(
            account.rows.steps, account.rows.phases, account.rows.bounds, account.duration_ns, strict=False
        )
    ]


def steps(facts: Facts) -> list[tuple[int | None, int, int]]:
    """Number, start and end of each step on the host, in µs."""
    markers = facts.markers
    return [
        (number, int(start) // US, int(end) // US)
        for number, start, end in zip(markers.numbers, markers.start, markers.end, strict=True)
    ]


# --- markers -----------------------------------------------------------------------------------------------


def test_the_best_source_with_two_markers_is_chosen():
    facts = facts_of_drawing("""
        main  |[S       ][T       ]
        main  |[a  ][b ]  [a ][b ]
        S = ann stepscope.step#4
        T = ann stepscope.step#5
        a = ann [pl][profile]run_training_batch
        b = ann [pl][profile]run_training_batch
    """)
    assert facts.markers.source == "stepscope.step"
    assert steps(facts) == [(4, 0, 100), (5, 100, 200)]
    assert not facts.markers.inferred


@pytest.mark.parametrize(("late_us", "whole"), [(0, True), (1, True), (10, True), (50, False)])
def test_markers_that_overlap_by_what_rounding_shifts_follow_each_other(late_us: int, whole: bool):
    drawing = TraceDrawing()
    for number in range(5):
        drawing.step(number, 1_000 * number, 1_000 + late_us * (number in (1, 3)))
    found = steps(facts_of(drawing.events()))
    if whole:
        assert found == [(number, 1_000 * number, 1_000 * (number + 1)) for number in range(5)]
    else:
        assert [number for number, _, _ in found] == [0, 1, 3]


def test_a_better_source_with_one_marker_loses_to_one_with_two():
    facts = facts_of_drawing("""
        main  |[S                ]
        main  |[a     ]  [b     ]
        S = step 3
        a = ann execute_context_1(64)_generation_0(0)
        b = ann execute_new_0
    """)
    assert steps(facts) == [(None, 0, 80), (None, 100, 180)]


def test_one_marker_is_one_step_where_no_source_has_two():
    facts = facts_of_drawing("""
        main  |   [S            ]
        main  |    [a     ]
        S = step 3
        a = ann execute_new_0
    """)
    assert steps(facts) == [(3, 30, 180)]
    assert facts.markers.source == "ProfilerStep"


@pytest.mark.parametrize("marker", ["ann Profiled~batch", "ann train~7"])
def test_markers_nested_in_markers_are_no_steps(marker: str):
    drawing = TraceDrawing()
    name = marker.removeprefix("ann ").replace("~", " ")
    for start in (0, 100):
        drawing.annotation(name, start, 90)
        drawing.annotation(name, start + 10, 20)
    assert [(start, end) for _, start, end in steps(facts_of(drawing.events()))] == [(0, 90), (100, 190)]


def test_the_thread_with_most_markers_counts():
    facts = facts_of_drawing("""
        main  |[S  ][T  ][U  ]
        other |   [S  ][T  ]
        S = step 1
        T = step 2
        U = step 3
    """)
    assert steps(facts) == [(1, 0, 50), (2, 50, 100), (3, 100, 150)]


def test_a_marker_drawn_on_the_device_is_no_marker_of_the_host():
    facts = facts_of_drawing("""
        main  |[a] [b]
        gpu0/7|[S     ][T   ]
        gpu0/7|  [a ]  [b]
        S = mark ProfilerStep#1
        T = mark ProfilerStep#2
    """)
    assert facts.markers.source == "whole profile"


def test_optimizer_steps_end_steps():
    """The range stands at the end of the iteration: the first step begins with the first thing the host did."""
    facts = facts_of_drawing("""
        main  |  [a      ][O ]   [b      ][O ] [c]
        O = ann Optimizer.step#AdamW.step
    """)
    assert steps(facts) == [(None, 20, 150), (None, 150, 310)]
    assert (facts.markers.source, facts.markers.inferred) == ("Optimizer.step#AdamW.step", True)


def test_of_several_optimizers_the_one_that_steps_last_ends_the_step():
    """Generator and discriminator: an iteration is both."""
    facts = facts_of_drawing("""
        main  |[a ][O ][b ][P ][a ][O ][b ][P ]
        O = ann Optimizer.step#SGD.step
        P = ann Optimizer.step#Adam.step
    """)
    assert [(start, end) for _, start, end in steps(facts)] == [(0, 160), (160, 320)]


def test_an_optimizer_that_steps_more_rarely_does_not_end_steps():
    facts = facts_of_drawing("""
        main  |[a ][O ][a ][O ][a ][O ][P ]
        O = ann Optimizer.step#SGD.step
        P = ann Optimizer.step#Adam.step
    """)
    assert [end for _, _, end in steps(facts)] == [80, 160, 240]


def test_any_explicit_marker_beats_optimizer_steps():
    facts = facts_of_drawing("""
        main  |[S                        ]
        main  |  [a      ][O ]   [b  ][O ]
        S = step 8
        O = ann Optimizer.step#AdamW.step
    """)
    assert [number for number, _, _ in steps(facts)] == [8]


def test_one_optimizer_step_says_nothing():
    facts = facts_of_drawing("""
        main  |  [a      ][O ]
        O = ann Optimizer.step#AdamW.step
    """)
    assert facts.markers.source == "whole profile"


# --- inference ---------------------------------------------------------------------------------------------


def launches(names: str) -> TraceDrawing:
    """One kernel per letter, launched 20 µs apart."""
    drawing = TraceDrawing()
    for at, name in enumerate(names):
        drawing.kernel(drawing.launch(20 * at), name, 20 * at + 8, 10)
    return drawing


def test_steps_are_the_period_of_the_launches():
    facts = facts_of(launches("abc" * 4).events())
    assert (facts.markers.source, facts.markers.inferred) == ("repetition of the launches", True)
    assert steps(facts) == [(None, 0, 60), (None, 60, 120), (None, 120, 180), (None, 180, 225)]
    assert [row for row in rows(facts) if row[0] != "before"] == [(0, 0, 58), (1, 58, 60), (2, 118, 60), (3, 178, 60)]


def test_a_profile_that_begins_in_the_middle_of_a_step_is_still_seen_to_repeat():
    facts = facts_of(launches("c" + "abc" * 5).events())
    lengths = [end - start for _, start, end in steps(facts)]
    assert lengths[:4] == [60] * 4


@pytest.mark.parametrize(
    "names",
    [
        "abcdefghijkl",  # nothing repeats
        "abcabc",  # twice is not a habit
        "aaaaaaaaaaaa",  # one kernel over and over: no period to tell
        "abcadbcabdcacb",  # noise
    ],
)
def test_what_does_not_repeat_is_one_window(names: str):
    facts = facts_of(launches(names).events())
    assert facts.markers.source == "whole profile"
    assert len(facts.markers) == 1


@pytest.mark.parametrize(
    ("sequence", "found"),
    [
        ([1, 2, 3] * 3, (0, 3)),
        ([9, *[1, 2, 3] * 8], (1, 3)),
        ([1, 1, 2] * 4, (2, 3)),  # the rarest name sets the distance
        ([1, 2] * 2, None),
        ([1, 2, 3, 1, 2, 3, 1], None),  # two and a bit
        ([], None),
        ([5] * 8, None),
    ],
)
def test_the_period_of_a_sequence(sequence: list[int], found: tuple[int, int] | None):
    assert period(np.array(sequence, np.int32)) == found


@pytest.mark.parametrize(("changed", "periodic"), [(4, True), (12, False)])
def test_a_period_may_be_broken_here_and_there(changed: int, periodic: bool):
    sequence = np.tile(np.arange(10, dtype=np.int32), 20)
    sequence[np.linspace(1, 199, changed).astype(int)] = 99
    assert (period(sequence) is not None) is periodic


def test_without_markers_and_launches_the_whole_profile_is_one_window():
    facts = facts_of_drawing("""
        main  |  [aten::add  ]
        gpu0/7|             [a  ]
        gpu0/7|                   [b ]
    """)
    assert steps(facts) == [(None, 20, 230)]
    assert facts.complete == (True,)


# --- windows -----------------------------------------------------------------------------------------------


def test_a_window_reaches_from_the_end_of_the_last_steps_work_to_the_end_of_its_own():
    facts = facts_of_drawing("""
        main  |[S     ][T     ][U     ]
        main  | [a] [b] [c]     [d]
        gpu0/7|    [a ]   [b ][c     ]  [d]
        S = step 1
        T = step 2
        U = step 3
    """)
    assert rows(facts) == [(0, 0, 150), (1, 150, 80), (2, 230, 50)]
    assert facts.step_ns.tolist() == [150 * US, 80 * US, 50 * US]
    assert facts.host_step_ns.tolist() == [80 * US, 80 * US, 80 * US]


def test_work_that_overtakes_a_later_step_makes_no_window_negative():
    """The copy of step 1 outlasts everything of step 2."""
    facts = facts_of_drawing("""
        main   |[S     ][T     ]
        main   | [a]    [b]
        gpu0/7 |            [b]
        gpu0/21|    [a              ]
        S = step 1
        T = step 2
    """)
    assert rows(facts) == [(0, 0, 210), (1, 210, 0)]


def test_a_step_without_a_launch_has_a_row_of_no_length():
    facts = facts_of_drawing("""
        main  |[S     ][T     ][U     ]
        main  | [a]             [b]
        gpu0/7|    [a ]            [b ]
        S = step 1
        T = step 2
        U = step 3
    """)
    assert rows(facts) == [(0, 0, 80), (1, 80, 0), (2, 80, 160)]
    assert facts.step_ns[1] == 0


def test_work_from_before_the_profile_is_charged_to_no_step():
    facts = facts_of_drawing("""
        main  |  [S     ][T     ]
        main  |   [a]    [b]
        gpu0/7|[x        ][a][b]
        S = step 1
        T = step 2
    """)
    assert rows(facts) == [("before", 0, 110), (0, 110, 30), (1, 140, 30)]
    assert facts.activities[0].before_profile.tolist() == [True, False, False]


def test_each_stream_has_its_own_last_op_from_before_the_profile():
    """On stream 7 launches are recorded from the start; stream 20 still works off what came before."""
    facts = facts_of_drawing("""
        main   |[S           ][T     ]
        main   |[a]  [n]       [b]
        gpu0/7 |   [a ]          [b ]
        gpu0/20| [x   ][x ][n]
        S = step 1
        T = step 2
    """)
    names = [facts.trace.name_of(int(s)) for s in facts.activities[0].slice]
    before = [name for name, early in zip(names, facts.activities[0].before_profile, strict=True) if early]
    assert before == ["x", "x"]
    assert rows(facts)[0] == ("before", 0, 110)


def test_an_op_without_a_launch_behind_ones_with_is_not_from_before():
    facts = facts_of_drawing("""
        main  |[S           ]
        main  |[a]
        gpu0/7|   [a ][x ]
        S = step 1
    """)
    assert not facts.activities[0].before_profile.any()


def test_what_was_launched_before_the_first_marker_ends_before_the_first_window():
    facts = facts_of_drawing("""
        main  |[a]   [S       ]
        main  |       [b]
        gpu0/7|     [a    ][b ]
        S = step 1
    """)
    assert rows(facts) == [("before", 50, 70), (0, 120, 40)]


def test_what_was_launched_after_the_last_marker_comes_after_the_last_window():
    facts = facts_of_drawing("""
        main  |[S     ]
        main  | [a]     [b]
        gpu0/7|    [a ]    [b ]
        S = step 1
    """)
    assert rows(facts) == [(0, 0, 80), ("after", 80, 80)]


def test_between_two_cycles_lies_a_gap_that_is_no_step():
    facts = facts_of_drawing("""
        main  |[S  ][T  ]         [U  ][V  ]
        main  |[a]  [b]           [a]  [b]
        gpu0/7|   [a]  [b]           [a]  [b]
        S = step 1
        T = step 2
        U = step 11
        V = step 12
    """)
    assert facts.markers.gap_after.tolist() == [False, True, False, False]
    assert rows(facts) == [(0, 0, 60), (1, 60, 50), ("gap", 110, 80), (2, 190, 60), (3, 250, 50)]
    assert facts.host_step_ns.tolist() == [50 * US] * 4


@pytest.mark.parametrize(
    ("number", "pause_us"),
    [(2, 300), (12, 30)],
    ids=["numbers go on", "shorter than a step"],
)
def test_a_pause_is_no_gap_between_cycles_unless_numbers_jump_and_it_is_a_step_long(number: int, pause_us: int):
    drawing = TraceDrawing()
    drawing.step(1, 0, 100)
    drawing.step(number, 100 + pause_us, 100)
    drawing.kernel(drawing.launch(10), "a", 20, 10)
    drawing.kernel(drawing.launch(110 + pause_us), "b", 120 + pause_us, 10)
    facts = facts_of(drawing.events())
    assert facts.markers.gap_after.tolist() == [False, False]
    assert [row[0] for row in rows(facts)] == [0, 1]


def test_a_second_device_has_windows_of_its_own_and_the_step_ends_with_the_last():
    facts = facts_of_drawing("""
        main  |[S     ][T     ]
        main  | [a] [b] [c][d]
        gpu0/7|    [a ]    [c]
        gpu1/7|       [b       ][d  ]
        S = step 1
        T = step 2
    """)
    assert rows(facts, 0) == [(0, 0, 80), (1, 80, 70)]
    assert rows(facts, 1) == [(0, 0, 170), (1, 170, 50)]
    assert facts.step_ns.tolist() == [170 * US, 50 * US]


@given(random_traces())
def test_steps_of_any_number_of_devices_add_up_to_the_time_that_they_cover(events):
    facts = facts_of(events)
    begun, over = facts.step_bounds
    paused = facts.markers.gap_after[:-1]
    assert (begun[1:][~paused] == over[:-1][~paused]).all()
    assert facts.step_ns.sum() <= over[-1] - begun[0]
    if not paused.any():
        assert facts.step_ns.sum() == over[-1] - begun[0]


def test_of_devices_that_take_turns_to_be_late_the_steps_add_up():
    """Each device is late in every other step: the longest windows would add up to more than the time there is."""
    facts = facts_of_drawing("""
        main  |[S     ][T     ][U     ][V     ]
        main  | [a][b]  [c][d]  [e][f]  [g][h]
        gpu0/7|  [a       ] [c]    [e       ] [g]
        gpu1/7|     [b] [d       ]    [f] [h        ]
        S = step 1
        T = step 2
        U = step 3
        V = step 4
    """)
    own = [account.duration_ns[account.step_rows((0, 1, 2, 3))] for _, account in facts.devices]
    begun, over = facts.step_bounds
    assert np.maximum(*own).sum() > over[-1] - begun[0] == facts.step_ns.sum()
    assert behind_ns(facts, facts.accounts[0]) is not None


def test_a_device_whose_launches_were_not_recorded_goes_by_the_time_its_ops_start():
    facts = facts_of_drawing("""
        main  |[S     ][T     ]
        gpu0/7|  [a ]    [b    ]
        S = step 1
        T = step 2
    """)
    assert rows(facts) == [(0, 0, 60), (1, 60, 110)]
    assert not facts.activities[0].before_profile.any()


@given(random_traces())
def test_windows_tile_and_every_step_has_one(events):
    facts = facts_of(events)
    for _, account in facts.devices:
        assert (account.duration_ns >= 0).all()
        assert [step for step in account.rows.steps if step is not None] == list(range(len(facts.markers)))
        named = set(account.rows.phases)
        assert named <= {"before", "step", "gap", "after"}
    assert len(facts.step_ns) == len(facts.host_step_ns) == len(facts.complete) == len(facts.markers)
    assert (facts.step_ns >= 0).all()


@given(random_traces())
def test_a_window_ends_with_the_last_op_launched_in_the_steps_so_far(events):
    """The definition, by brute force; work without a launch or around a pause between cycles is left out."""
    facts = facts_of(events)
    markers = facts.markers
    for activity, account in facts.devices:
        if not activity.launched.all() or markers.gap_after.any():
            continue
        launched = sorted(zip(activity.launch.tolist(), activity.end.tolist(), strict=True))
        counted = [(at, end) for at, end in launched if at < markers.end[-1]]
        for k in range(len(markers)):
            until = markers.start[k + 1] if k + 1 < len(markers) else markers.end[-1]
            wanted = max([int(markers.start[0]), *(end for at, end in counted if at < until)])
            row = account.step_row(k)
            assert row is not None
            assert account.rows.bounds[row + 1] == min(wanted, int(activity.end.max()))


# --- where nothing is to be told ---------------------------------------------------------------------------


def test_without_a_device_the_host_has_the_rows():
    facts = facts_of_drawing("""
        main  |[aten::x]   [S     ][T     ] [aten::y]
        S = step 1
        T = step 2
    """)
    (account,) = facts.accounts
    assert account.rows.device is None
    assert rows(facts) == [("before", 0, 120), (0, 120, 80), (1, 200, 80), ("after", 280, 100)]
    assert facts.basis == "host"


def test_device_work_without_any_host_is_one_window():
    facts = facts_of_drawing("""
        gpu0/7|[a ]   [b ]
        gpu1/7|    [c ]
    """)
    assert rows(facts, 0) == [(0, 0, 110)]
    assert rows(facts, 1) == [(0, 0, 80)]


def test_a_device_that_only_waits_has_no_rows():
    drawing = TraceDrawing()
    drawing.step(1, 0, 100)
    drawing.kernel(drawing.launch(10), "a", 20, 10)
    drawing.sync(30, 20, stream=Stream(1, 7))
    assert [activity.device for activity in facts_of(drawing.events()).activities] == [0]
