"""Waits of the host and copies of the device: by which op, where, how often, at what cost (one column is 10 µs)."""

from __future__ import annotations

import pytest
from hypothesis import given

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.copies import Copies
from stepscope.analysis.limits import SHORT_WAIT_NS, WAIT_COST_NS
from stepscope.analysis.syncs import Sync
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.kineto_writer import Form, write_kineto
from tests.kit.random_traces import random_traces
from tests.support import facts_of, facts_of_drawing, trace_of_bytes

US = 1_000


def syncs(drawing: str) -> list[Sync]:
    return facts_of_drawing(drawing).syncs[0]


def copies(drawing: str) -> list[Copies]:
    return facts_of_drawing(drawing).copies[0]


# --- syncs -------------------------------------------------------------------------------------------------


def test_a_wait_is_known_by_the_blocking_call_not_by_the_ops_name():
    (sync,) = syncs("""
        main  |[S                          ]
        main  |[a] [mylib::fast        ][b]
        main  |      [s              ]
        gpu0/7|   [a                 ]     [b]
        S = step 1
        s = sync cudaStreamSynchronize
    """)
    assert (sync.op, sync.call, sync.hint) == ("mylib::fast", "cudaStreamSynchronize", None)
    assert (sync.count, sync.steps, sync.where.op) == (1, {0}, "mylib::fast")
    assert sync.blocked_ns == 170 * US


def test_an_op_that_could_wait_and_does_not_is_no_sync():
    assert not syncs("""
        main  |[S                    ]
        main  |[a] [aten::item     ]
        gpu0/7|   [a                 ]
        S = step 1
    """)


def test_a_branch_on_a_tensor_is_called_that():
    """``if loss > 0:`` is is_nonzero, which calls item: the outermost op says what the user wrote."""
    (sync,) = syncs("""
        main  |[S                                   ]
        main  |[P                                   ]
        main  |[a] [aten::is_nonzero             ][b]
        main  |     [aten::item                 ]
        main  |      [aten::_local_scalar_dense]
        main  |        [s                    ]
        gpu0/7|   [a                       ]         [b]
        S = step 1
        P = py train.py(61): clip
        s = sync cudaStreamSynchronize
    """)
    assert sync.op == "aten::is_nonzero"
    assert sync.hint is not None
    assert "condition" in sync.hint.cause
    assert (sync.where.file, sync.where.line) == ("train.py", 61)


@pytest.mark.parametrize("op", ["aten::nonzero", "aten::_unique2", "aten::masked_select"])
def test_why_an_op_must_wait_is_said(op: str):
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    drawing.kernel(drawing.launch(0), "a", 10, 100)
    drawing.host(op, 20, 100)
    drawing.host("aten::copy_", 30, 85)
    drawing.sync(40, 72)
    (sync,) = facts_of(drawing.events()).syncs[0]
    assert sync.hint is not None
    assert "size depends on the input's values" in sync.hint.cause


def test_a_bare_call_has_no_op():
    (sync,) = syncs("""
        main  |[S                    ]
        main  |[P                    ]
        main  |[a] [s             ][b]
        gpu0/7|   [a            ]     [b]
        S = step 1
        P = py train.py(5): time_it
        s = sync cudaDeviceSynchronize
    """)
    assert (sync.op, sync.call) == (None, "cudaDeviceSynchronize")
    assert sync.where.file == "train.py"


def test_waits_of_one_place_are_one_and_of_two_places_two():
    drawing = TraceDrawing()
    for number in range(2):
        start = 600 * number
        drawing.step(number, start, 600)
        drawing.python("train.py(5): f", start, 400)
        drawing.python("train.py(9): g", start + 400, 200)
        for at in (start, start + 200, start + 400):
            drawing.kernel(drawing.launch(at), "a", at + 10, 100)
            drawing.sync(at + 20, 95)
    assert {(s.where.line, s.count, s.steps, s.blocked_ns) for s in facts_of(drawing.events()).syncs[0]} == {
        (5, 4, frozenset({0, 1}), 360 * US),
        (9, 2, frozenset({0, 1}), 180 * US),
    }


def test_waits_of_one_place_in_two_calls_are_two():
    found = syncs("""
        main  |[S                     ]
        main  |[a][s   ] [a][e   ]
        gpu0/7|  [a   ]    [a   ]
        S = step 1
        s = sync cudaStreamSynchronize
        e = sync cudaEventSynchronize
    """)
    assert {sync.call for sync in found} == {"cudaStreamSynchronize", "cudaEventSynchronize"}


def test_the_costliest_comes_first():
    found = syncs("""
        main  |[S                                                ]
        main  |[a][s   ][b] [a][e                  ]          [b]
        gpu0/7|  [a   ]   [b] [a                  ]              [b ]
        S = step 1
        s = sync cudaStreamSynchronize
        e = sync cudaEventSynchronize
    """)
    assert [sync.call for sync in found] == ["cudaEventSynchronize", "cudaStreamSynchronize"]
    assert found[0].cost_ns > found[1].cost_ns


@pytest.mark.parametrize(("blocked_ns", "listed"), [(SHORT_WAIT_NS - 1000, False), (SHORT_WAIT_NS, True)])
def test_a_wait_that_blocked_hardly_and_cost_nothing_is_not_listed(blocked_ns: int, listed: bool):
    drawing = TraceDrawing()
    drawing.step(1, 0, 200)
    drawing.kernel(drawing.launch(0), "a", 10, 40)
    drawing.sync(50 - blocked_ns / 1000, blocked_ns / 1000 + 5)
    assert bool(facts_of(drawing.events()).syncs[0]) is listed


@pytest.mark.parametrize(("blocked_ns", "listed"), [(WAIT_COST_NS, True), (WAIT_COST_NS - 100, False)])
def test_a_wait_that_cost_less_than_a_clock_can_tell_is_not_listed(blocked_ns: int, listed: bool):
    """The device ends so soon after the wait began, and idles then for what the host had lost."""
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    drawing.kernel(drawing.launch(0), "a", 10, 40)
    drawing.sync(50 - blocked_ns / 1000, blocked_ns / 1000 + 5)
    drawing.kernel(drawing.launch(100), "b", 110, 40)
    facts = facts_of(drawing.events())
    assert int(facts.accounts[0].parts[:, Category.SYNC.code].sum()) == blocked_ns
    assert [sync.cost_ns for sync in facts.syncs[0]] == ([blocked_ns] if listed else [])


def test_a_wait_counts_as_blocked_only_while_the_device_works():
    (sync,) = syncs("""
        main  |[S                              ]
        main  |[a] [s                   ]
        gpu0/7|   [a      ]
        S = step 1
        s = sync cudaStreamSynchronize
    """)
    assert sync.blocked_ns == 80 * US


def test_a_copy_to_pageable_memory_waits():
    (sync,) = syncs("""
        main  |[S                         ]
        main  |[a] [aten::to       ]  [b]
        main  |     [c            ]
        gpu0/7|   [a          ][c]       [b]
        S = step 1
        c = copy DtoH 4 Pageable
    """)
    assert (sync.op, sync.call) == ("aten::to", "cudaMemcpyAsync")
    assert sync.hint is not None
    assert "pageable" in sync.hint.cause


def test_a_copy_to_pinned_memory_does_not():
    assert not syncs("""
        main  |[S                         ]
        main  |[a] [c]                [b]
        gpu0/7|   [a          ][c]       [b]
        S = step 1
        c = copy DtoH 4 Pinned
    """)


def test_only_waits_of_the_used_steps_count():
    """Of five steps the first and last are left out."""
    drawing = TraceDrawing()
    for number in range(5):
        drawing.step(number, 200 * number, 200)
        drawing.kernel(drawing.launch(200 * number), "a", 200 * number + 10, 100)
        drawing.sync(200 * number + 20, 95)
    drawing.sync(1010, 50)
    (sync,) = facts_of(drawing.events()).syncs[0]
    assert (sync.count, sync.steps) == (3, {1, 2, 3})
    assert sync.blocked_ns == 3 * 90 * US


def test_each_device_has_its_own_waits():
    """The host waits while device 1 works; device 0 has long been idle."""
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    drawing.kernel(drawing.launch(0), "a", 10, 10)
    drawing.kernel(drawing.launch(10), "b", 20, 150, Stream(1, 7))
    drawing.sync(30, 145)
    facts = facts_of(drawing.events())
    assert [[sync.blocked_ns for sync in found] for found in facts.syncs] == [[], [140 * US]]


@given(random_traces())
def test_waits_never_cost_more_than_is_booked_to_them(events: list[Event]):
    facts = facts_of(events)
    for (_, account), found in zip(facts.devices, facts.syncs, strict=True):
        assert sum(sync.cost_ns for sync in found) <= int(account.parts[:, Category.SYNC.code].sum())
        for sync in found:
            assert sync.count == len(sync.slices) >= len(sync.steps)
            assert sync.steps or sync.cost_ns > 0  # the first used step may pay for a wait of one that is not used
            assert sync.steps <= set(facts.used)
            assert sync.blocked_ns >= 0
            assert sync.cost_ns >= 0


# --- copies ------------------------------------------------------------------------------------------------


def test_a_copy_knows_its_op_its_place_its_memory_and_its_size():
    (found,) = copies("""
        main  |[S               ]
        main  |[P               ]
        main  |[aten::to      ]
        main  | [aten::copy_ ]
        main  |   [c ]
        gpu0/7|       [c     ]
        S = step 1
        P = py train.py(52): batch_to_device
        c = copy HtoD 4096 Pageable
    """)
    assert (found.category, found.source_memory, found.target_memory) == (Category.COPY_H2D, "pageable", "device")
    assert (found.op, found.where.file, found.where.line) == ("aten::to", "train.py", 52)
    assert (found.count, found.steps, found.bytes) == (1, {0}, 4096)
    assert (found.total_ns, found.exposed_ns) == (80 * US, 80 * US)
    assert found.launch_recorded


def test_a_copy_beside_a_kernel_costs_nothing_and_half_beside_one_half():
    found = copies("""
        main   |[S                          ]
        main   |[a][c][d]
        gpu0/7 |     [a                ]
        gpu0/21|        [c    ]   [d         ]
        S = step 1
        c = copy HtoD 4096 Pinned
        d = copy DtoH 4096 Pinned
    """)
    assert {(c.category, c.total_ns // US, c.exposed_ns // US) for c in found} == {
        (Category.COPY_H2D, 70, 0),
        (Category.COPY_D2H, 120, 60),
    }
    assert found[0].category is Category.COPY_D2H


def test_copies_that_overlap_share_what_is_exposed():
    """Both ways at once: each nanosecond of the device doing nothing but copy counts for one of them."""
    found = copies("""
        main   |[S                  ]
        main   |[c][d]
        gpu0/20|      [c    ]
        gpu0/21|         [d         ]
        S = step 1
        c = copy HtoD 4096 Pinned
        d = copy DtoH 4096 Pinned
    """)
    assert {(c.category, c.exposed_ns // US) for c in found} == {(Category.COPY_H2D, 70), (Category.COPY_D2H, 80)}


def test_a_memset_does_not_hide_a_copy_and_a_collective_does():
    found = copies("""
        main   |[S                         ]
        main   |[m][c]    [n][d]
        gpu0/20|      [m   ]     [n   ]
        gpu0/21|      [c   ]     [d   ]
        S = step 1
        m = memset 4096
        n = kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL
        c = copy HtoD 4096 Pinned
        d = copy DtoD 4096
    """)
    assert {(c.category, c.exposed_ns // US) for c in found} == {(Category.COPY_H2D, 60), (Category.COPY_D2D, 0)}


def test_copies_are_grouped_by_place_direction_and_memory():
    drawing = TraceDrawing()
    for number in range(3):
        start = 300 * number
        drawing.step(number, start, 300)
        drawing.python("train.py(5): f", start, 200)
        drawing.python("train.py(9): g", start + 210, 80)
        for i, (direction, memory) in enumerate((("HtoD", "Pageable"), ("HtoD", "Pinned"), ("DtoH", "Pinned"))):
            call = drawing.call("cudaMemcpyAsync", start + 50 * i, 5)
            drawing.copy(call, direction, start + 50 * i + 10, 20, 100, memory)
        drawing.copy(drawing.call("cudaMemcpyAsync", start + 220, 5), "HtoD", start + 230, 20, 7, "Pinned")
    found = facts_of(drawing.events()).copies[0]
    assert {(c.category.value, c.source_memory, c.where.line, c.count, c.bytes) for c in found} == {
        ("copy_h2d", "pageable", 5, 3, 300),
        ("copy_h2d", "pinned", 5, 3, 300),
        ("copy_d2h", "device", 5, 3, 300),
        ("copy_h2d", "pinned", 9, 3, 21),
    }
    assert all(c.steps == {0, 1, 2} for c in found)


def test_a_copy_that_does_not_recur_says_in_which_steps_it_was():
    drawing = TraceDrawing()
    for number in range(3):
        drawing.step(number, 300 * number, 300)
        drawing.kernel(drawing.launch(300 * number), "a", 300 * number + 10, 20)
    drawing.copy(drawing.call("cudaMemcpyAsync", 350, 5), "HtoD", 360, 20)
    (found,) = facts_of(drawing.events()).copies[0]
    assert found.steps == {1}


def test_without_a_launch_the_op_of_the_main_thread_at_that_time_is_a_guess():
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    drawing.host("aten::to", 40, 100)
    drawing.host("aten::cat", 40, 100, thread="other")
    drawing.copy(None, "HtoD", 60, 50)
    drawing.kernel(drawing.launch(150), "a", 160, 20)
    drawing.kernel(drawing.launch(0), "a", 10, 20)
    (found,) = facts_of(drawing.events()).copies[0]
    assert (found.launch_recorded, found.op) == (False, "aten::to")


def test_a_recorded_and_a_guessed_place_are_not_mixed():
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    drawing.host("aten::to", 0, 200)
    drawing.copy(drawing.call("cudaMemcpyAsync", 5, 5), "HtoD", 20, 20)
    drawing.copy(None, "HtoD", 60, 50)
    drawing.kernel(drawing.launch(150), "a", 160, 20)
    found = facts_of(drawing.events()).copies[0]
    assert {(c.launch_recorded, c.op) for c in found} == {(True, "aten::to"), (False, "aten::to")}


def test_a_copy_without_any_host_has_no_place():
    (found,) = copies("""
        gpu0/7|   [a ]   [c      ]
        c = copy HtoD 4096 Pinned
    """)
    assert (found.op, bool(found.where), found.launch_recorded) == (None, False, False)


def test_a_size_that_is_not_recorded_is_unknown_not_nought():
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    drawing.copy(drawing.call("cudaMemcpyAsync", 5, 5), "HtoD", 20, 20, 100)
    known = facts_of(drawing.events()).copies[0]
    bare = {"direction": "HtoD", "memory": "Pinned"}
    call = drawing.call("cudaMemcpyAsync", 50, 5)
    drawing.add(Event("gpu_memcpy", "copy", Stream(), 60_000, 20_000, call, args=bare))
    unknown = facts_of(drawing.events()).copies[0]
    assert [(c.count, c.bytes) for c in (*known, *unknown)] == [(1, 100), (2, None)]


def test_amd_does_not_name_the_kind_of_host_memory():
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    drawing.copy(drawing.call("cudaMemcpyAsync", 5, 5), "HtoD", 20, 20, 100)
    (found,) = analyse(trace_of_bytes(write_kineto(drawing.events(), Form(vendor="amd")))).copies[0]
    assert (found.category, found.source_memory, found.target_memory) == (Category.COPY_H2D, "unknown", "device")


def test_copies_between_devices_have_a_category_of_their_own():
    (found,) = copies("""
        main  |[S           ]
        main  |[c]
        gpu0/7|   [c      ]
        S = step 1
        c = copy PtoP 4096
    """)
    assert found.category is Category.COPY_P2P


@given(random_traces())
def test_copies_are_exposed_no_longer_than_the_device_does_nothing_but_copy(events: list[Event]):
    facts = facts_of(events)
    codes = [c.code for c in (Category.COPY_H2D, Category.COPY_D2H, Category.COPY_D2D, Category.COPY_P2P)]
    for (_, account), found in zip(facts.devices, facts.copies, strict=True):
        assert sum(c.exposed_ns for c in found) <= int(account.parts[:, codes].sum())
        for c in found:
            assert 0 <= c.exposed_ns <= c.total_ns
            assert c.count == len(c.slices) >= len(c.steps) >= 1
            assert c.steps <= set(facts.used)


def test_a_call_is_named_without_the_version_that_nsight_appends():
    drawing = TraceDrawing()
    for number in range(4):
        start = number * 5_000
        drawing.step(number, start, 5_000)
        drawing.kernel(drawing.launch(start, 5), "k", start + 10, 4_900)
        drawing.sync(start + 10, 4_950, "cudaStreamSynchronize_v3020")
    assert {sync.call for sync in facts_of(drawing.events()).syncs[0]} == {"cudaStreamSynchronize"}
