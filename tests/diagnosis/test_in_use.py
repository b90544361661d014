"""Advice does not suggest what the profile shows in use already."""

from __future__ import annotations

import doctest

import pytest

from stepscope.analysis.workload import Feature, Workload
from stepscope.diagnosis.remedies import GIVING_OPS, LAUNCH, OPTIMIZER, ZERO_GRAD, RemedyPart, remedy
from stepscope.names import in_use
from stepscope.names.purposes import Purpose
from tests.diagnosis.loops import CALL, diagnosed, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event


def updating(*ops: str, launch: str = "cudaLaunchKernel") -> list[Event]:
    """Steps of many short kernels, launched by these ops inside an optimizer's step."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation("Optimizer.step#AdamW.step", start, 5_000)
        for i in range(100):
            at = start + 50 * i
            drawing.host(ops[i % len(ops)], at, 45)
            drawing.kernel(drawing.launch(at + 40, CALL, launch), "k", at + 46, 3)

    return loop(5_000, step)


def fix_of(events: list[Event]) -> str:
    return next(f.fix for f in diagnosed(events).findings if f.rule == "launch_bound")


@pytest.mark.parametrize(
    ("op", "fused", "foreach"),
    [
        ("aten::add_", "fused=True", "or foreach=True"),
        ("aten::_foreach_add_", "fused=True", ""),
        ("aten::_fused_adamw_", "", ""),
        ("aten::_foreach_norm", "fused=True", "or foreach=True"),  # gradients are clipped, no more
    ],
)
def test_an_optimizer_is_told_what_it_does_not_do_yet(op: str, fused: str, foreach: str) -> None:
    fix = fix_of(updating(op))
    assert ("fused=True" in fix) is bool(fused)
    assert ("foreach=True" in fix) is bool(foreach)


def test_compiled_code_and_graphs_are_not_suggested_where_they_are() -> None:
    assert "fused kernels, one graph" in fix_of(updating("aten::add_"))
    compiled = fix_of(updating("aten::add_", "Torch-Compiled Region: 0/0"))
    assert "what is compiled, as one graph" in compiled
    assert "fused kernels" not in compiled
    both = remedy(LAUNCH, Workload("PyTorch", Purpose.TRAINING, uses=frozenset({Feature.COMPILED, Feature.GRAPHS})))
    assert "reduce-overhead" not in both


def test_gradients_that_a_graph_writes_stay_where_they_are() -> None:
    by_hand = Workload("PyTorch", Purpose.TRAINING, uses=frozenset({Feature.GRAPHS}))
    assert remedy(ZERO_GRAD, by_hand) == ""
    assert "set_to_none=True" in remedy(ZERO_GRAD, Workload("PyTorch", Purpose.TRAINING))


def test_a_profile_tells_what_is_in_use() -> None:
    assert doctest.testmod(in_use).failed == 0
    graphs = facts_with(updating("aten::add_", launch="cudaGraphLaunch"))
    assert graphs.workload.uses == {Feature.GRAPHS, Feature.OPTIMIZER}
    assert facts_with(updating("aten::mm")).workload.uses == {Feature.OPTIMIZER}
    kernel = "void at::native::multi_tensor_apply_kernel<Meta, at::native::FusedAdamMathFunctor<float, 4>>(P)"
    assert in_use.in_use([kernel]) == {Feature.FUSED, Feature.OPTIMIZER}


@pytest.mark.parametrize("optimizer", [(), (Feature.OPTIMIZER,)])
@pytest.mark.parametrize("uses", [(), (Feature.FUSED,), (Feature.COMPILED,), (Feature.FUSED, Feature.COMPILED)])
def test_python_s_share_has_advice_left_whatever_is_in_use(
    uses: tuple[Feature, ...], optimizer: tuple[Feature, ...]
) -> None:
    uses += optimizer
    text = remedy(GIVING_OPS, Workload("PyTorch", Purpose.TRAINING, newest=(2, 6), oldest=(2, 6), uses=frozenset(uses)))
    assert ("fused=True" in text) is (bool(optimizer) and Feature.FUSED not in uses)
    assert ("torch.compile(model)" in text) is (Feature.COMPILED not in uses)
    assert text.startswith("Leave less of it to Python")


def test_parts_hold_given_and_unless_what_is_in_use() -> None:
    part = RemedyPart("x", given=(Feature.FOREACH,), unless=(Feature.FUSED,))
    assert part.fits(Workload(uses=frozenset({Feature.FOREACH})))
    assert not part.fits(Workload())
    assert not part.fits(Workload(uses=frozenset({Feature.FOREACH, Feature.FUSED})))
    assert OPTIMIZER[None] == ""
