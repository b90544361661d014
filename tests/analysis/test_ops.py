"""Op statistics: counts and times by hand, and each device op counted for one op (one column is 10 µs)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.ops import OpUse
from stepscope.formats.tf1 import step_stats
from stepscope.inputs.source import Source
from tests.kit import step_stats as written
from tests.kit.planted import CASES
from tests.kit.some import some
from tests.kit.traces import KINETO_TRACES
from tests.support import facts_of_drawing, planted_facts, real_facts

US = 1_000


def by_type(facts: Facts) -> dict[str, OpUse]:
    assert facts.ops is not None
    assert facts.ops.device_ns == sum(use.device_self_ns for use in facts.ops.by_type)
    return {use.op: use for use in facts.ops.by_type}


def test_time_of_an_op_its_own_and_the_devices_by_hand():
    uses = by_type(
        facts_of_drawing(
            """
            1 char = 10 us
            main  |[S                             ]
            main  | [aten::linear   ] [aten::view]
            main  |  [aten::t]
            main  |            [m]
            main  |             a        b
            gpu0/7|               [a   ]    [b    ]
            S = step 1
            m = op aten::addmm
            """
        )
    )
    linear, addmm, view = uses["aten::linear"], uses["aten::addmm"], uses["aten::view"]
    assert (linear.count, linear.total_ns, linear.self_ns, linear.side) == (1, 170 * US, 50 * US, "device")
    assert (linear.device_ops, linear.device_ns, linear.device_self_ns) == (1, 60 * US, 0), "launched deeper inside"
    assert (addmm.total_ns, addmm.device_ns, addmm.device_self_ns) == (30 * US, 60 * US, 60 * US)
    assert (view.side, view.device_ops, view.device_self_ns) == ("device", 1, 70 * US)
    assert (uses["aten::t"].side, uses["aten::t"].device_ops, uses["aten::t"].launch_sized) == ("host", 0, None)
    assert uses["aten::t"].share == 1.0, "of the time of the ops of its side"


def test_a_call_inside_one_of_the_same_type_counts_but_its_time_does_so_once():
    uses = by_type(
        facts_of_drawing(
            """
            1 char = 10 us
            main  |[S                    ]
            main  | [aten::to       ]
            main  |  [aten::to     ]
            main  |   a
            gpu0/7|     [a   ]
            S = step 1
            """
        )
    )
    use = uses["aten::to"]
    assert (use.count, use.total_ns, use.self_ns) == (2, 170 * US, 170 * US)
    assert (use.device_ops, use.device_ns, use.device_self_ns) == (1, 60 * US, 60 * US)


def test_what_runs_no_longer_than_a_launch_costs_is_flagged():
    """Launches cost 40 µs here: the sum of 20 µs is no longer, the product of 80 is."""
    facts = facts_of_drawing(
        """
        1 char = 10 us
        main  |[S                                  ]
        main  | [aten::add]      [aten::mm   ]
        main  |  a                b
        gpu0/7|     a>                [b      ]
        S = step 1
        """
    )
    assert facts.ops is not None
    assert facts.ops.launch_cost_ns == 40 * US
    uses = by_type(facts)
    assert uses["aten::add"].launch_sized is True
    assert uses["aten::mm"].launch_sized is False


def test_device_work_outside_any_op_is_told_apart():
    facts = facts_of_drawing(
        """
        1 char = 10 us
        main  |[S                    ]
        main  | [aten::mm]   b
        main  |  a
        gpu0/7|    [a]         [b ]
        S = step 1
        """
    )
    assert facts.ops is not None
    assert (facts.ops.device_ns, facts.ops.outside_ns) == (30 * US, 40 * US)


MUL = 126_224
"""Executions of Mul in 2.77 s: 21.9 µs each, the example of a loop that runs too many small ops."""


@pytest.mark.parametrize("count", some([MUL // 32, MUL], 1))
def test_126224_multiplications_take_21_9_us_each(tmp_path: Path, count: int):
    """A TensorFlow 1 loop: its Mul takes 2.77 s of launching, for kernels of 3 µs."""
    total = 2_770_000 * count // MUL
    starts = [total * k // count for k in range(count + 1)]
    nodes = [
        written.node("while/mul", at, after - at, "while/mul = Mul(while/x, while/y)") for at, after in pairwise(starts)
    ]
    kernels = [
        written.node("while/mul:Mul", at + 21, 3, "MulKernel regs:8 grid:1,1,1 block:64,1,1@@while/mul:Mul")
        for at in starts[:-1]
    ]
    path = tmp_path / "step_stats.pb"
    path.write_bytes(
        written.step_stats(written.device(written.GPU, *nodes), written.device("/gpu:0/stream:7", *kernels))
    )
    facts = analyse(step_stats.read(Source(str(path))))
    mul = by_type(facts)["Mul"]
    assert (mul.count, mul.side, mul.name) == (count, "device", "while/mul")
    assert mul.total_ns == total * 1000
    assert mul.mean_ns == pytest.approx(21_945, abs=1)
    assert mul.device_ops == count
    assert mul.launch_sized is True


@pytest.mark.parametrize(
    "name", some([name for name in CASES if name not in ("sampled", "cpu_only", "graph_launched")], 7)
)
def test_every_device_op_is_one_ops_or_outside(name):
    facts = planted_facts(name)
    assert facts.ops is not None
    steps = list(facts.used)
    start = facts.markers.start[steps]
    end = start + facts.host_step_ns[steps]
    launched = 0
    for activity in facts.activities:
        for begin, until in zip(start.tolist(), end.tolist(), strict=True):
            rows = activity.launched & (activity.launch >= begin) & (activity.launch < until)
            launched += int((activity.end - activity.start)[rows].sum())
    assert facts.ops.device_ns + facts.ops.outside_ns == launched


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_times_of_real_ops_add_up(name):
    facts = real_facts(name)
    if facts.ops is None:
        pytest.skip("no ops were recorded")
    for uses in (facts.ops.by_type, facts.ops.by_place):
        assert sum(use.device_self_ns for use in uses) == facts.ops.device_ns
        assert all(use.self_ns <= use.total_ns and use.device_self_ns <= use.device_ns for use in uses)
        for side in {use.side for use in uses}:
            assert sum(use.share for use in uses if use.side == side) == pytest.approx(1, abs=1e-6)
