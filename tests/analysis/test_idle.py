"""Why a device was idle, one rule of attribution per drawing (one column is 10 µs)."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.gaps import crosses_step, longest_gaps
from stepscope.analysis.idle_pieces import Pieces
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.support import facts_of, facts_of_drawing

US = 1_000


def parts(drawing: str) -> dict[str, int]:
    """Categories over all rows of the first device, in µs."""
    account = facts_of_drawing(drawing).accounts[0]
    totals = account.parts.sum(axis=0)
    return {str(CATEGORIES[code]): int(ns) // US for code, ns in enumerate(totals.tolist()) if ns}


def test_before_the_call_the_host_is_dispatching_in_it_it_launches_after_it_comes_latency():
    assert parts("""
        main  |[S                  ]
        main  |[a]     [b ]
        gpu0/7|   [a  ]     [b   ]
        S = step 1
    """) == {"compute": 110, "launch": 30 + 40, "launch_latency": 10}


def test_input_beats_launch_and_ops_inside_the_range_are_its_stages():
    found = parts("""
        main  |[S                             ]
        main  |[a]   [I            ]  [b]
        main  |        [aten::stack]
        gpu0/7|   [a ]                    [b  ]
        S = step 1
        I = input
    """)
    assert found["input"] == 140
    assert found["launch"] == 30 + 20 + 30


def test_an_unpinned_copy_is_staged_by_the_host():
    found = parts("""
        main  |[S                      ]
        main  |[a]    [c      ]
        gpu0/7|   [a ]        [c      ]
        S = step 1
        c = copy HtoD 4096 Pageable
    """)
    assert found["copy_staging"] == 80
    assert found["copy_h2d"] == 90


def test_a_call_that_began_while_the_device_worked_holds_its_op_up_as_long_as_it_lasts():
    found = parts("""
        main  |[S                                       ]
        main  |[a]  [b                            ]
        gpu0/7|   [a      ]                        [b   ]
        S = step 1
    """)
    assert found["launch"] == 30 + 240
    assert "unknown_device" not in found
    waiting = parts("""
        main  |[S                                       ]
        main  |[a]  [b ]
        gpu0/7|   [a      ]                        [b   ]
        S = step 1
    """)
    assert waiting["launch"] == 30


def test_allocation_inside_a_launch_call_and_before_it():
    found = parts("""
        main  |[S                      ]
        main  |[a]    [m   ] [b      ]
        main  |                [n ]
        gpu0/7|   [a ]                  [b]
        S = step 1
        m = call cudaMalloc
        n = call cudaMalloc
    """)
    assert found["allocator"] == 60 + 40


def test_a_sync_is_to_blame_only_for_the_lead_it_destroyed():
    """The host was blocked 50 µs; of the 140 µs of host time that follow 50 are the sync's."""
    found = parts("""
        main  |[S                            ]
        main  |[a] [s     ]        [b]
        gpu0/7|   [a   ]               [b   ]
        S = step 1
        s = sync cudaStreamSynchronize
    """)
    assert found["sync"] == 50
    assert found["launch"] == 30 + (140 - 50)


def test_the_same_blocked_time_pays_only_once():
    """Two gaps follow one wait: together they get what it blocked and no more."""
    found = parts("""
        main  |[S                                  ]
        main  |[a] [s     ]    [b]      [c]
        gpu0/7|   [a   ]          [b]      [c   ]
        S = step 1
        s = sync cudaStreamSynchronize
    """)
    assert found["sync"] == 50


def test_a_recorded_wait_for_another_stream_is_a_dependency():
    """The op was queued before the gap, and its stream had been told to wait for an op of the other device."""
    drawing = TraceDrawing()
    drawing.step(1, 0, 400)
    drawing.kernel(drawing.launch(0, 10), "first", 20, 60)
    drawing.kernel(drawing.launch(10, 10), "other", 30, 170, Stream(1, 20))
    record = drawing.call("cudaEventRecord", 20, 5)
    drawing.stream_wait(25, Stream(0, 7), recorded_on=Stream(1, 20), record=record)
    drawing.kernel(drawing.launch(30, 10), "second", 210, 50)
    found = facts_of(drawing.events()).accounts[0].parts.sum(axis=0)
    assert found[Category.DEPENDENCY.code] == 120 * US
    assert found[Category.DEVICE_LATENCY.code] == 10 * US


def test_without_a_recorded_wait_the_other_party_is_not_named():
    found = parts("""
        main  |[S                                  ]
        main  |[a][b]
        gpu0/7|    [a  ]                   [b   ]
        S = step 1
    """)
    assert found["device_latency"] == 40  # this trace's own latency, from its first launch
    assert found["unknown_device"] == 150
    assert "dependency" not in found


def test_a_long_stretch_without_ops_is_python_only_where_a_frame_or_annotation_covers_it():
    long = """
        1 char = 100 us
        main  |[S                                  ]
        main  |[a]  {cover}  [b]
        gpu0/7|   [a]                [b]
        S = step 1
        P = py train.py(7):~log
    """
    covered = parts(long.replace("{cover}", "[P        ]"))
    bare = parts(long.replace("{cover}", "           "))
    assert covered["python"] > 800
    assert "python" not in bare
    assert bare["unknown_host"] > 800


def test_a_copy_that_ends_a_gap_hands_the_cause_to_the_compute_behind_it():
    """The batch is copied by an op that was launched at once; the loader before it is the cause all the same."""
    found = parts("""
        main  |[S                                     ]
        main  |[a]   [I              ][c][b]
        gpu0/7|   [a]                     [c ][b    ]
        S = step 1
        I = input
        c = copy HtoD 4096 Pinned
    """)
    assert found["input"] == 170


def test_gaps_know_whether_a_step_begins_in_them():
    facts = facts_of_drawing("""
        main  |[S        ][T              ]
        main  |[a] [b]     [c]  [d]
        gpu0/7|   [a] [b]     [c]  [d   ]
        S = step 1
        T = step 2
    """)
    account = facts.accounts[0]
    assert [bool(x) for x in crosses_step(account)] == [False, False, True, False]
    assert account.between_steps_ns.tolist() == [30 * US, 50 * US]
    longest = longest_gaps(facts)
    assert (longest[0].crosses_step, longest[0].dur_ns) == (True, 50 * US)
    assert sum(longest[0].parts.values()) == longest[0].dur_ns


def test_copies_and_collectives_count_only_where_exposed():
    found = parts("""
        main   |[S                           ]
        main   |[a][n][c]
        gpu0/7 |   [a         ]
        gpu0/20|      [n             ]
        gpu0/21|         [c               ]
        S = step 1
        n = kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL
        c = copy DtoH 4096 Pinned
    """)
    assert found == {"launch": 30, "compute": 120, "collective": 70, "copy_d2h": 50}


def test_idle_time_across_a_bound_is_a_piece_on_each_side():
    pieces = Pieces(
        np.array([0, 10, 30]), np.array([10, 20, 60]), np.array([1, 2, 3], np.uint8), np.array([0, 0, 1], np.int32)
    )
    cut = pieces.cut_at(np.array([0, 10, 15, 25, 40, 50, 60]))
    assert list(zip(cut.start.tolist(), cut.end.tolist(), cut.category.tolist(), cut.gap.tolist(), strict=True)) == [
        (0, 10, 1, 0), (10, 15, 2, 0), (15, 20, 2, 0), (30, 40, 3, 1), (40, 50, 3, 1), (50, 60, 3, 1)
    ]  # fmt: skip
