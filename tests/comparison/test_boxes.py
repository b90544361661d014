"""All work of two runs in one tree of layers, ops and kernels."""

from __future__ import annotations

import numpy as np

from stepscope.comparison.boxes import Box, boxes
from stepscope.comparison.work import StepWork, step_work
from tests.support import real_facts


def work(*rows: tuple[str | None, str | None, str, int]) -> StepWork:
    """Layer, op, kernel and ns of the work of each of two steps."""
    names = tuple(dict.fromkeys(one for row in rows for one in row[:3] if one))
    codes = np.array([[names.index(one) if one else -1 for one in row[:3]] for row in rows] * 2, np.int32)
    return StepWork(
        steps=2,
        devices=1,
        step=np.repeat(np.arange(2, dtype=np.int32), len(rows)),
        ns=np.array([row[3] for row in rows] * 2, np.int64),
        codes={"layer": codes[:, 0], "op": codes[:, 1], "name": codes[:, 2], "dims": np.full(len(codes), -1, np.int32)},
        names=dict.fromkeys(("layer", "op", "name", "dims"), names),
    )


def test_work_of_layers_that_are_alike_is_one_and_what_is_new_stands_beside_what_is_gone():
    before = work(("Net_0/Block_0", "mm", "old", 100), ("Net_0/Block_1", "mm", "old", 50), (None, None, "memset", 7))
    after = work(("Net_0/Block_0", "mm", "new", 40), ("Net_0/Block_1", "mm", "old", 50), (None, "copy", "copy", 9))
    assert boxes(before, after) == (
        Box(("Net_*", "Block_*", "mm", "old"), 150, 50),
        Box(("Net_*", "Block_*", "mm", "new"), 0, 40),
        Box(("copy",), 0, 9),
        Box(("memset",), 7, 0),
    )


def test_a_real_run_beside_itself_holds_all_its_work_and_no_difference():
    one = step_work(real_facts("kineto/h100_bert_small.json.gz"))
    found = boxes(one, one)
    assert all(box.before_ns == box.after_ns for box in found)
    assert sum(box.before_ns for box in found) == sum(
        int(item.per_step_ns.sum()) // one.steps for item in one.by("layer", "op", "name")
    )
    assert any(box.path[3] == "BertLayer_*" for box in found if len(box.path) > 5)
