"""Rules about kernels: what could be fused, run in fewer bits or on the matrix units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.recording import run_of
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor, predictor
from tests.diagnosis.loops import CALL, diagnosed, facts_with, loop, rules
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.jobs_of_kinds import of_version
from tests.kit.kineto_writer import write_kineto
from tests.support import facts_of, trace_of_bytes

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


def test_ops_that_repeat_in_a_chain_are_counted():
    names = ("mul", "sigmoid", "sigmoid", "sigmoid", "add")
    filler: Op = ("aten::mm", [], [], "ampere_fp16_s16816gemm_fp16_128x128_nn", 2_000)
    events = stepping(*(pointwise(name, WIDE) for name in names), filler)
    finding = the(diagnosed(events, header(V100)), "memory_bound_chain")
    assert "`mul`, `sigmoid` x3, `add` (" in finding.why


def test_launches_that_fusion_takes_away_hold_up_no_later_cure():
    """Four launches of 90 µs in each step; fused, two of them are left."""
    slow = 90

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        free = start
        for i, name in enumerate(("relu", "sigmoid", "tanh", "mm")):
            at, dur = start + slow * i, 100 if name != "mm" else 2
            drawing.host(f"aten::{name}", at, slow, **{"Input Dims": [WIDE], "Input type": ["float"]})
            free = max(free, at + slow)
            drawing.kernel(drawing.launch(at + slow - 5, 5), ELEMENTWISE if dur > 2 else "gemm", free, dur)
            free += dur

    facts = facts_with(loop(4 * slow + 40, step), **header(V100))
    change = the(diagnose(facts), "memory_bound_chain").change
    assert change is not None
    ns = np.concatenate([activity.end - activity.start for activity in facts.activities])
    replayed = predictor(facts)
    assert isinstance(replayed, Predictor)
    tiny = Change(op_ns=(ns // 10).astype(np.int64))
    assert facts.mean_step_ns - replayed.saving_ns(tiny) >= 4 * slow * US
    assert facts.mean_step_ns - replayed.saving_ns(change | tiny) <= (2 * slow + 60) * US


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


def test_before_inductor_a_compiler_fuses_pointwise_ops_only():
    """TorchScript takes no normalisation into a kernel of its own: an older PyTorch is promised nothing for that."""
    norm: Op = ("aten::native_layer_norm", [WIDE, [], [1024], [1024], []], ["float", "", "float", "float", ""],
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>()", 500)  # fmt: skip
    relu = pointwise("relu", WIDE, 500)
    for ops, expected in (((relu, norm), []), ((relu, relu), ["memory_bound_chain"])):
        trace = trace_of_bytes(write_kineto(stepping(*ops), header=header(V100)))
        assert rules(diagnose(analyse(of_version(trace, (1, 13))))) == expected
        assert rules(diagnose(analyse(trace))) == ["memory_bound_chain"]


# --- mixed precision ---------------------------------------------------------------------------------------

SGEMM = "ampere_sgemm_128x128_nn"
HALF_GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn"


def product(kernel: str, dur: int, size: int = 1024, type_: str = "float") -> Op:
    return "aten::mm", [[size, size], [size, size]], [type_] * 2, kernel, dur


def test_tf32_is_offered_where_fp32_runs_beside_the_tensor_cores():
    events = stepping(product(SGEMM, 900))
    found = diagnosed(events, header(A100))
    (finding,) = (one for one in found.minor if one.rule == "tf32_off")
    assert the(found, "tensor_cores_unused").saving_ns_per_step > finding.saving_ns_per_step  # 16 bits gain all of it
    assert finding.saving_after_ns_per_step == 0
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (900 * US, round(900 * US * (1 - 19.5 / 156)))
    assert 'set_float32_matmul_precision("high")' in finding.fix


@pytest.mark.parametrize("name", [V100, "NVIDIA GeForce RTX 3090", "AMD Instinct MI300X", "A card of the future"])
def test_tf32_is_not_offered_where_it_gains_nothing(name: str):
    assert "tf32_off" not in rules(diagnosed(stepping(product(SGEMM, 900)), header(name)))


def test_a_product_takes_no_less_than_memory_allows():
    """A product of small intensity: 64 x 4096 by 4096 x 4096 in 16 bits moves 34.6 MB, 17 µs at 2.04 TB/s."""
    op: Op = ("aten::mm", [[64, 4096], [4096, 4096]], ["float"] * 2, SGEMM, 100)
    other: Op = ("aten::custom", [], [], "mystery_kernel", 1_500)
    finding = the(diagnosed(stepping(op, other), header(A100)), "tensor_cores_unused")
    least = (2 * 64 * 4096 + 4096 * 4096) * 2 / 2039e9 * 1e9
    assert finding.saving_ns_per_step == pytest.approx(100 * US - least, abs=2)


def test_a_product_runs_no_faster_than_others_like_it_in_the_same_profile():
    """The ratio of the peaks would make 200 µs of 1,600; the same product takes 300 µs in 16 bits here."""
    half = product(HALF_GEMM, 300, type_="c10::Half")
    alone = the(diagnosed(stepping(product(SGEMM, 1_600)), header(V100)), "tensor_cores_unused")
    beside = the(diagnosed(stepping(product(SGEMM, 1_600), half), header(V100)), "tensor_cores_unused")
    assert alone.saving_ns_per_step == pytest.approx(1_600 * US * (1 - 15.7 / 125), abs=2)
    assert beside.saving_ns_per_step == pytest.approx(1_300 * US, abs=2)


def test_a_product_takes_no_less_than_its_operations_at_the_peak():
    """2048 x 2048 x 2048 are 17.2 GFLOP: 110 µs at 156 TFLOP/s, not the 100 µs that the ratio of peaks makes of 800."""
    found = diagnosed(stepping(product(SGEMM, 800, 2048)), header(A100))
    (finding,) = (one for one in found.minor if one.rule == "tf32_off")
    assert finding.saving_ns_per_step == pytest.approx(800 * US - 2 * 2048**3 / 156e12 * 1e9, abs=2)


def test_sixteen_bits_halve_what_memory_bounds_but_not_what_autocast_keeps():
    """relu at 800 GB/s gains; pow, at the same rate, stays in fp32."""
    gelu, pow_ = pointwise("relu", WIDE, 42), pointwise("pow", WIDE, 42)
    plain = the(diagnosed(stepping(product(SGEMM, 900)), header(V100)), "tensor_cores_unused")
    beside = the(diagnosed(stepping(product(SGEMM, 900), gelu, pow_), header(V100)), "tensor_cores_unused")
    assert plain.saving_ns_per_step is not None
    assert beside.saving_ns_per_step == plain.saving_ns_per_step + 21 * US
    assert "taken to halve" in beside.why
    assert "taken to halve" not in plain.why


def test_what_mixed_precision_leaves_out_is_another_finding_than_its_absence():
    events = stepping(product(HALF_GEMM, 600, 2048, "c10::Half"), product(SGEMM, 400))
    diagnosis = diagnosed(events, header(V100))
    assert rules(diagnosis) == ["amp_partial"]
    assert the(diagnosis, "amp_partial").cost_ns_per_step == 400 * US
    off = diagnosed(stepping(product(HALF_GEMM, 400, type_="c10::Half"), product(SGEMM, 600)), header(V100))
    assert rules(off) == ["tensor_cores_unused"]


def test_mixed_precision_throughout_is_quiet():
    events = stepping(product(HALF_GEMM, 900, type_="c10::Half"))
    found = diagnosed(events, header(A100))
    assert (found.findings, found.minor) == ((), ())


# --- alignment ---------------------------------------------------------------------------------------------

PLAIN_HALF = "turing_fp16_sgemm_fp16_128x64_tn"
OTHER: Op = ("aten::custom", [], [], "mystery_kernel", 1_500)
HALF = ["c10::Half"] * 2


def half_product(columns: int, kernel: str, dur: int) -> Op:
    return "aten::mm", [[4096, 1024], [1024, columns]], HALF, kernel, dur


def test_odd_sizes_beside_the_tensor_cores():
    """The ratio of 16-bit peaks, and 1008 columns in place of 1001."""
    finding = the(diagnosed(stepping(half_product(1001, PLAIN_HALF, 500), OTHER), header(V100)), "alignment")
    assert finding.cost_ns_per_step == 500 * US
    assert finding.saving_ns_per_step == pytest.approx(500 * US * (1 - 31.4 / 125 * 1008 / 1001), abs=2)
    assert "4096 × 1024 × 1001" in finding.why
    assert "multiples of 8" in finding.fix


def test_odd_sizes_on_tensor_cores_at_the_rate_of_those_that_fit():
    """1024 columns take 100 µs; at that rate 1008 take 98.4."""
    events = stepping(half_product(1001, HALF_GEMM, 400), half_product(1024, HALF_GEMM, 100), OTHER)
    finding = the(diagnosed(events, header(A100)), "alignment")
    assert finding.cost_ns_per_step == 400 * US
    assert finding.saving_ns_per_step == pytest.approx(400 * US - 100 * US * 1008 / 1024, abs=2)


@pytest.mark.parametrize(
    "ops",
    [
        [half_product(1008, PLAIN_HALF, 500)],
        [half_product(1001, HALF_GEMM, 500)],
        [half_product(1001, HALF_GEMM, 98), half_product(1024, HALF_GEMM, 100)],
        [half_product(1001, HALF_GEMM, 400), half_product(4096, HALF_GEMM, 400)],
        [product("ampere_sgemm_128x64_nn", 500, 1001)],
        [("aten::mm", [], [], PLAIN_HALF, 500)],
        [("aten::mv", [[4096, 1001], [1001]], HALF, PLAIN_HALF, 500)],
    ],
    ids=["fits", "nothing to compare", "as fast as others", "others are larger", "fp32", "no shapes", "a vector"],
)
def test_sizes_that_fit_or_of_which_nothing_tells(ops: list[Op]):
    assert "alignment" not in rules(diagnosed(stepping(*ops, OTHER), header(V100)))


def test_padding_saves_no_more_than_memory_allows():
    """A product that only moves data: 12.4 MB at 900 GB/s are 13.8 µs; the ratio of peaks would make 10 of 40."""
    op: Op = ("aten::mm", [[4096, 8], [8, 1501]], HALF, PLAIN_HALF, 40)
    found = diagnosed(stepping(op, ("aten::custom", [], [], "mystery_kernel", 400)), header(V100))
    (finding,) = [one for one in (*found.findings, *found.minor) if one.rule == "alignment"]
    moved = 2 * (4096 * 8 + 8 * 1504 + 4096 * 1504)
    assert finding.saving_ns_per_step == pytest.approx(40 * US - moved / 900e9 * 1e9, abs=200)


@pytest.mark.parametrize(
    ("fast", "said"),
    [(half_product(1001, HALF_GEMM, 98), False), (half_product(1001, HALF_GEMM, 130), True),
     (half_product(1004, HALF_GEMM, 98), True)],
    ids=["fits no better and runs as fast", "runs slower itself", "fits better"],
)  # fmt: skip
def test_where_sizes_that_fit_no_better_run_at_full_rate_they_slow_nothing(fast: Op, said: bool):
    slow = ("aten::bmm", [[1, 4096, 1024], [1, 1024, 1003]], HALF, HALF_GEMM, 400)
    events = stepping(slow, fast, half_product(1024, HALF_GEMM, 100), OTHER)
    assert ("alignment" in rules(diagnosed(events, header(A100)))) is said


def test_what_a_size_stands_for_is_not_guessed():
    finding = the(diagnosed(stepping(half_product(1001, PLAIN_HALF, 500), OTHER), header(V100)), "alignment")
    assert not any(word in finding.fix for word in ("vocabulary", "classes", "hidden"))
    assert "(1001 no multiple of 8)" in finding.why


# --- loss_scaling ------------------------------------------------------------------------------------------


def scaling(check: str, *, asks: str = "aten::item", frame: str = "") -> list[Event]:
    """Each step checks its gradients and, 50 µs later, waits for the step's kernel in an op."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 1_400)
        drawing.host(check, start + 20, 20)
        if frame:
            drawing.python(frame, start + 65, 1_400)
        drawing.host(asks, start + 70, 1_340)
        drawing.sync(start + 75, 1_330)
        drawing.host("aten::view", start + 1_450, 500)

    return loop(2_000, step)


CHECK = "aten::_amp_foreach_non_finite_check_and_unscale_"


def test_the_scaler_asks_the_host():
    finding = the(diagnosed(scaling(CHECK)), "loss_scaling")
    assert finding.cost_ns_per_step == pytest.approx(595 * US, rel=0.02)
    assert finding.confidence == "medium"
    assert "fused=True" in finding.fix
    assert "bfloat16" in finding.fix
    assert "right value" in finding.fix
    with_frames = scaling(CHECK, frame="torch/amp/grad_scaler.py(370): step")
    assert the(diagnosed(with_frames), "loss_scaling").confidence == "high"


@pytest.mark.parametrize(
    "events",
    [
        scaling("aten::mul_"),
        scaling(CHECK, asks="aten::nonzero"),
        scaling(CHECK, frame="train.py(12): log"),
    ],
    ids=["no scaler", "another op waits", "the user's own item"],
)
def test_waits_that_are_not_the_scalers(events: list[Event]):
    assert "loss_scaling" not in rules(diagnosed(events))


# --- notices -----------------------------------------------------------------------------------------------


def notices(events: list[Event], root: dict[str, Any]) -> set[str]:
    return {notice.code for notice in diagnosed(events, root).notices}


def gridded(blocks: int, share: float) -> list[Event]:
    """Steps of which a share goes to a kernel of so many blocks."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        long = round(1_000 * share)
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, long, grid=[blocks, 1, 1])
        drawing.kernel(drawing.launch(start + CALL, CALL), "k2", start + CALL + long, 1_000 - long, grid=[500, 1, 1])

    return loop(1_000 + CALL, step)


@pytest.mark.parametrize(("blocks", "share", "said"), [(79, 0.6, True), (80, 0.6, False), (79, 0.4, False)])
def test_kernels_that_do_not_fill_the_device(blocks: int, share: float, said: bool):
    root = {"deviceProperties": [{"id": 0, "name": V100, "numSms": 80}]}
    assert ("small_grids" in notices(gridded(blocks, share), root)) is said
    assert "small_grids" not in notices(gridded(blocks, share), header(V100))


SMALL_DEVICE = {"deviceProperties": [{"id": 0, "name": V100, "numSms": 80}]}


def beside(*kernels: tuple[int, int, int, int]) -> list[Event]:
    """Steps of 1,000 µs with kernels of (stream, blocks, start, duration) in each."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for i, (stream, blocks, at, dur) in enumerate(kernels):
            call = drawing.launch(start + CALL * i, CALL)
            drawing.kernel(call, f"k{i}", start + 100 + at, dur, Stream(0, stream), grid=[blocks, 1, 1])

    return loop(1_000, step)


@pytest.mark.parametrize(
    ("kernels", "share"),
    [
        ([(7, 10, 0, 900)], 0.9),
        ([(7, 10, 0, 900), (8, 10, 0, 900)], None),
        ([(7, 10, 0, 900), (8, 500, 100, 800)], None),
        ([(7, 10, 0, 900), (8, 10, 600, 100)], 0.8),
    ],
    ids=["alone", "two at once", "a large one beside it", "one beside it for a while"],
)
def test_multiprocessors_stand_still_only_while_nothing_else_runs(
    kernels: list[tuple[int, int, int, int]], share: float | None
):
    found = notices(beside(*kernels), SMALL_DEVICE)
    assert ("small_grids" in found) is (share is not None)
    (text,) = [n.text for n in diagnosed(beside(*kernels), SMALL_DEVICE).notices if n.code == "small_grids"] or [""]
    assert text.startswith(f"For {100 * share:.1f} % of step time" if share else "")


def test_few_blocks_are_a_collectives_way():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        drawing.kernel(drawing.launch(start, CALL), reduce, start + CALL, 900, grid=[8, 1, 1])
        drawing.kernel(drawing.launch(start + CALL, CALL), "k", start + CALL + 900, 50, grid=[500, 1, 1])

    assert "small_grids" not in notices(loop(1_000, step), SMALL_DEVICE)


@pytest.mark.parametrize(("type_", "said"), [("c10::Half", True), ("float", False), ("c10::BFloat16", False)])
def test_a_softmax_in_fp16(type_: str, said: bool):
    kernel = f"void (anonymous namespace)::softmax_warp_forward<{type_}, {type_}, float, 10, false>({type_}*)"
    events = stepping(("aten::_softmax", [[64, 1024], [], []], [type_, "Scalar", "Scalar"], kernel, 500))
    assert ("softmax_in_fp16" in notices(events, header(V100))) is said


@pytest.mark.parametrize(("type_", "said"), [("double", True), ("float", False)])
def test_kernels_in_double_precision(type_: str, said: bool):
    kernel = f"void (anonymous namespace)::softmax_warp_forward<{type_}, {type_}, {type_}, 10, false>({type_}*)"
    events = stepping(("aten::_softmax", [[64, 1024], [], []], [type_, "Scalar", "Scalar"], kernel, 500))
    told = notices(events, header(V100))
    assert ("double_precision" in told) is said


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"float64": 900, "float32": 100}, "90.0 % of the parameters are float64, "),
        ({"float64": 100, "float32": 900}, None),
        ({"float64": "many"}, None),
        ({}, None),
    ],
)
def test_parameters_in_double_precision_on_a_host(parameters: dict[str, object], told: str | None):
    drawing = TraceDrawing()
    for number in range(8):
        drawing.step(number, 10_000 * number, 10_000)
        drawing.host("aten::mm", 10_000 * number, 10_000)
    facts = replace(facts_of(drawing.events()), run=run_of({"parameters": parameters}))
    (text,) = [each.text for each in diagnose(facts).notices if each.code == "double_precision"] or [None]
    assert text is None if told is None else str(text).startswith(told) and "model.float()" in str(text)


# --- cures that wait for others ----------------------------------------------------------------------------

MM = {"Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["float", "float"]}


def test_a_cure_of_kernels_that_wait_for_launches_is_told_with_what_it_gains_behind_theirs():
    """A product of 140 µs every 190 µs: a faster one gains nothing until the host launches faster."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for at in range(start, start + 20 * 190, 190):
            drawing.host("aten::mm", at, 190, **MM)
            drawing.kernel(drawing.launch(at + 185, CALL), "ampere_sgemm_128x64_tn", at + 190, 140)

    found = diagnosed(loop(20 * 190, step), header(A100))
    launches, cores = found.findings
    assert (launches.rule, cores.rule) == ("launch_bound", "tensor_cores_unused")
    assert (cores.saving_ns_per_step or 0) < 50 * US
    assert (cores.saving_after_ns_per_step or 0) > 1_000 * US
    assert 0 < (found.whatif.combined_step_ns or 0) < 20 * 140 * US


def test_fewer_launches_save_what_a_wait_is_to_blame_for_too():
    """Ten launches of 80 µs, then a kernel of 300 µs for which the host waits: without the wait 300 µs of launching lie
    under the kernel, without the launches there is none."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for at in range(start, start + 800, 80):
            drawing.host("aten::add", at, 80)
            drawing.kernel(drawing.launch(at + 75, CALL), "k", at + 80, 8)
        drawing.host("aten::mm", start + 800, 10)
        drawing.kernel(drawing.launch(start + 805, CALL), "gemm", start + 812, 300)
        drawing.sync(start + 815, 300)

    finding = the(diagnosed(loop(1_120, step), header(A100)), "launch_bound")
    assert finding.predicted_step_ns is not None
    assert finding.predicted_step_ns == pytest.approx(390 * US, abs=40 * US)
