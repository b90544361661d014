"""Rules about kernels: what could be fused, run in fewer bits or on the matrix units."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.diagnosis.engine import Diagnosis
from stepscope.diagnosis.finding import Finding
from tests.diagnosis.loops import CALL, diagnosed, loop, rules
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

US = 1_000
A100, V100, H100 = "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB", "NVIDIA H100 80GB HBM3"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::Functor<float>, std::array<char*, 2ul>>()"

Op = tuple[str, list[Any], list[str], str, int]
"""Name, shapes and types of an op; its one kernel and that kernel's duration in µs."""


def header(name: str) -> dict[str, Any]:
    return {"deviceProperties": [{"id": 0, "name": name}]}


def stepping(*ops: Op) -> list[Event]:
    """Steps in which the device does nothing but the kernels of some ops."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start + CALL
        for i, (name, dims, types, kernel, dur) in enumerate(ops):
            drawing.host(name, start + CALL * i, CALL, **{"Input Dims": dims, "Input type": types})
            drawing.kernel(drawing.launch(start + CALL * i, CALL), kernel, at, dur)
            at += dur

    return loop(CALL + sum(op[4] for op in ops), step)


def the(diagnosis: Diagnosis, rule: str) -> Finding:
    (finding,) = [finding for finding in diagnosis.findings if finding.rule == rule]
    return finding


# --- memory_bound_chain ------------------------------------------------------------------------------------


def pointwise(name: str, dims: list[int], dur: int = 100) -> Op:
    return f"aten::{name}", [dims], ["float"], ELEMENTWISE, dur


WIDE, NARROW = [4096, 1024], [2048, 1024]


def test_a_fused_kernel_does_not_read_what_is_handed_on():
    """3 x (16.8 MB in, 16.8 MB out), less two reads: 67.1 MB at 90 % of 900 GB/s are 82.8 µs."""
    short: Op = ("aten::mm", [], [], "ampere_fp16_s16816gemm_fp16_128x128_nn", 2)
    events = stepping(*(pointwise(name, WIDE) for name in ("relu", "sigmoid", "tanh")), short)
    finding = the(diagnosed(events, header(V100)), "memory_bound_chain")
    fused = 4 * 4096 * 1024 * 4 / (0.9 * 900e9) * 1e9
    assert finding.cost_ns_per_step == 300 * US
    assert finding.saving_ns_per_step == pytest.approx(300 * US - fused, abs=5)
    assert (finding.basis, finding.confidence) == ("modelled", "low")
    assert "`relu`, `sigmoid`, `tanh`" in finding.why
    assert "torch.compile" in finding.fix


@pytest.mark.parametrize(
    "ops",
    [
        [pointwise("relu", WIDE)],
        [pointwise("relu", WIDE), pointwise("relu", NARROW)],
        [pointwise("relu", WIDE), ("aten::custom", [WIDE], ["float"], ELEMENTWISE, 100), pointwise("relu", WIDE)],
        [("aten::relu", [], [], ELEMENTWISE, 100), ("aten::relu", [], [], ELEMENTWISE, 100)],
        [pointwise("relu", WIDE, 42), pointwise("relu", WIDE, 42), pointwise("relu", WIDE, 0)],
    ],
    ids=["alone", "another shape", "something between", "no shapes", "as fast as it can be"],
)
def test_what_is_no_chain_or_gains_nothing(ops: list[Op]):
    filler: Op = ("aten::mm", [], [], "ampere_fp16_s16816gemm_fp16_128x128_nn", 10_000)
    assert "memory_bound_chain" not in rules(diagnosed(stepping(*ops, filler), header(V100)))


def test_without_a_known_bandwidth_there_is_no_chain():
    events = stepping(pointwise("relu", WIDE), pointwise("relu", WIDE))
    assert rules(diagnosed(events, header("A card of the future"))) == []


def test_a_reduction_in_a_chain_takes_what_it_takes_now():
    """Fusing does not make a slow normalisation fast: only what is beside it goes."""
    norm: Op = ("aten::native_layer_norm", [WIDE, [], [1024], [1024], []], ["float", "", "float", "float", ""],
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>()", 500)  # fmt: skip
    finding = the(diagnosed(stepping(pointwise("relu", WIDE), norm), header(V100)), "memory_bound_chain")
    assert finding.cost_ns_per_step == 600 * US
    assert finding.saving_ns_per_step == 100 * US
