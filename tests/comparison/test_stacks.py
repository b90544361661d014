"""The Python of two runs in one tree of stacks."""

from __future__ import annotations

import pytest

from stepscope.comparison.stacks import Call, calls, stacks
from tests.kit.builder import TraceDrawing
from tests.support import facts_of, real_facts


def test_time_is_that_in_the_steps_without_lines_addresses_and_what_only_calls_modules() -> None:
    d = TraceDrawing()
    for step in range(2):
        at = 1_000 * step
        d.step(step, at + 100, 800)
        d.python(f"train.py({9 + step}): train_step", at + 120, 700)
        d.python("torch/nn/modules/module.py(17): _call_impl", at + 200, 500)
        d.python("nn.Module: Linear_3", at + 210, 100)
        d.python("nn.Module: Linear_4", at + 320, 300)
        d.host("aten::mm", at + 330, 200)
        d.python(f"<built-in method mm of Tensor object at 0x7f2{step}>", at + 340, 80)
    d.python("train.py(3): main", 0, 2_000)
    found = stacks(facts_of(d.events()))
    step = ("train.py: main", "train.py: train_step")
    assert found == {
        step[:1]: 900_000,
        step: 700_000,
        (*step, "nn.Module: Linear_*"): 400_000,
        (*step, "nn.Module: Linear_*", "<built-in method mm of Tensor object>"): 80_000,
    }


def test_what_both_call_is_one_tree_in_which_callers_come_first() -> None:
    before = {("main",): 1_000, ("main", "load"): 600, ("main", "f"): 300, ("main", "f", "tiny"): 2}
    after = {("main",): 500, ("main", "f"): 400, ("main", "f", "new"): 100}
    assert calls(before, after) == (
        Call("main", -1, 1_000, 500),
        Call("load", 0, 600, 0),
        Call("f", 0, 300, 400),
        Call("new", 2, 0, 100),
    )
    assert calls({}, {}) == ()


@pytest.mark.parametrize("name", ["h100_qwen05b", "b200_eager_rank0_of_8", "mi300_resnet_checkpointing_rank0_of_8"])
def test_a_real_run_beside_itself_is_small_and_no_caller_takes_less_than_what_it_calls(name: str) -> None:
    facts = real_facts(f"kineto/{name}.json.gz")
    one = stacks(facts)
    found = calls(one, one)
    assert 20 < len(found) < 200
    inside = [0] * len(found)
    for at, call in enumerate(found):
        assert call.before_ns == call.after_ns > 0
        assert call.caller < at
        if call.caller >= 0:
            inside[call.caller] += call.before_ns
    assert all(sum_ns <= call.before_ns + 1 for sum_ns, call in zip(inside, found, strict=True))
