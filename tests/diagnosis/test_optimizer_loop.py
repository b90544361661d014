"""Adam that updates parameters one by one on a host that computes."""

from __future__ import annotations

import pytest

from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.rules.optimizer_loop import FUSED_LEAVES, FUSED_LEAVES_LEAST, OPTIMIZER_SHARE
from tests.diagnosis.loops import diagnosed, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

STEP, UPDATE = 10_000, 4_000


def updating(
    optimizer: str = "Adam", *, ops: int = 40, op: str = "aten::mul_", update: int = UPDATE, clears: int = 1
) -> list[Event]:
    """Steps that compute, and of ``update`` µs in ops of an optimizer; every so many clear gradients."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(5): main", start, STEP - 10)
        if number % clears == 0:
            drawing.annotation(f"Optimizer.zero_grad#{optimizer}.zero_grad", start + 10, 20)
        drawing.host("aten::linear", start + 40, STEP - update - 100)
        at = start + STEP - update - 20
        drawing.annotation(f"Optimizer.step#{optimizer}.step", at, update)
        drawing.python(f"torch/optim/{optimizer.lower()}.py(400): _single_tensor", at + 1, update - 2)
        for number_of_op in range(ops):
            drawing.host(op, at + 2 + number_of_op * (update - 4) // ops, (update - 4) // ops // 2)

    return loop(STEP, step)


def told(events: list[Event], rule: str = "optimizer_loop") -> list[Finding]:
    return [found for found in diagnosed(events).findings if found.rule == rule]


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW"])
def test_it_is_told_with_what_fused_leaves(optimizer: str):
    (found,) = told(updating(optimizer))
    assert found.cost_ns_per_step == UPDATE * 1_000
    assert found.saving_ns_per_step == pytest.approx((1 - FUSED_LEAVES) * UPDATE * 1_000)
    assert found.best_step_ns == pytest.approx((STEP - (1 - FUSED_LEAVES_LEAST) * UPDATE) * 1_000, rel=0.01)
    assert f"torch.optim.{optimizer}(params, ..., fused=True)" in found.fix
    assert "accumulated" not in found.fix
    assert (found.where[0].file, found.where[0].function) == ("train.py", "main")


def test_what_is_told_of_it_is_no_python_overhead():
    assert not told(updating(), "python_overhead")
    assert told(updating("Prodigy"), "python_overhead")


@pytest.mark.parametrize(
    "events",
    [
        updating(op="aten::_foreach_mul_"),
        updating(op="aten::_fused_adam_", ops=1),
        updating("SGD"),
        updating("MyAdam"),
        updating(ops=10),
        updating(update=int(OPTIMIZER_SHARE * STEP) - 50),
    ],
    ids=["foreach", "fused", "another", "own", "few parameters", "little time"],
)
def test_these_have_nothing_to_gain_that_is_known(events: list[Event]):
    assert not told(events)


def test_updates_between_which_no_gradients_are_cleared_are_said():
    (found,) = told(updating(clears=2))
    assert "2 times for each time that gradients are cleared" in found.fix.replace("\n", " ")
    assert "`optimizer.step()` once" in found.fix
