"""Ops of one line are one row of a report."""

from __future__ import annotations

import dataclasses

from stepscope.analysis.op_lines import by_line
from stepscope.analysis.ops import OpUse
from stepscope.analysis.where import Where

LINE = Where(file="train.py", line=46, function="step", op="aten::conv2d", module="Conv2d_0", annotation="forward")
USE = OpUse("aten::conv", None, "device", 2, 20, 10, 0.1, 4, 400, 400, False, LINE)


def test_calls_that_differ_in_their_module_alone_are_one_row() -> None:
    other = dataclasses.replace(USE, count=3, device_ns=100, where=dataclasses.replace(LINE, module="Conv2d_1"))
    (row,) = by_line([USE, other], launch_cost_ns=80)
    assert (row.count, row.total_ns, row.device_ops, row.device_ns) == (5, 40, 8, 500)
    assert row.launch_sized
    assert row.where == dataclasses.replace(LINE, module=None)


def test_another_line_or_node_is_a_row_of_its_own() -> None:
    further = dataclasses.replace(USE, device_self_ns=900, where=dataclasses.replace(LINE, line=47))
    assert by_line([USE, further, dataclasses.replace(USE, name="node")], None)[0] == further
    assert len(by_line([USE, further, dataclasses.replace(USE, name="node")], None)) == 3
