"""PyTorch Profiler on synchronisation points, C1-C19: a loss in which the host waits for the GPU three times."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli.experiments import outcome
from tests.diagnosis.loops import CALL, copying, loop, synchronising
from tests.diagnosis.test_efficiency_rules import SGEMM, header, product, stepping
from tests.guides.shown import Shown, shown, stepscope
from tests.guides.test_gpu_input import run
from tests.kit.builder import TraceDrawing
from tests.kit.kineto_writer import write_kineto
from tests.kit.masked_loss import VARIANTS, MaskedLoss
from tests.kit.traces import REPOSITORY
from tests.support import planted_file

US, MS = 1_000, 1_000_000
PROFILES = REPOSITORY / "examples" / "profiles"


def variant(name: str) -> Shown:
    """The profile of the loss with some of its waits."""
    return Shown(PROFILES / f"simulated_masked_loss_{name}.json.gz")


@functools.cache
def step_ns(name: str) -> float:
    """What a step of a variant takes, simulated."""
    return MaskedLoss(VARIANTS[name]).run()[1].mean_step_ns()


def waits() -> dict[str, Any]:
    """The finding of the three waits, each of which has its part."""
    return variant("before").finding("sync_bound")


def test_c1_what_the_profiler_s_trace_handler_writes_is_read(tmp_path: Path) -> None:
    """``schedule``, ``tensorboard_trace_handler``, ``with_stack``: its folder, by the names it gives."""
    file = tmp_path / "runs" / "node1_4242.1700000000000000000.pt.trace.json.gz"
    file.parent.mkdir()
    file.write_bytes(variant("before").path.read_bytes())
    found = Shown(tmp_path / "runs")
    assert [step["number"] for step in found.report["steps"]] == list(range(8))
    assert found.finding("sync_bound")["where"][0]["file"] == "train.py"


def test_c2_record_function_ranges_have_their_time_on_host_and_device() -> None:
    """`loss` takes 4 ms on the host, gives the device 4 ms of work, and leaves it idle for 2."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 4_000 - CALL)
        drawing.annotation("loss", start + 4_000, 4_000)
        drawing.python("train.py(9): loss", start + 4_000, 4_000)
        drawing.kernel(drawing.launch(start + 5_995, CALL), "k", start + 6_000, 2_000)
        drawing.kernel(drawing.launch(start + 7_995, CALL), "k", start + 8_000, 2_000)

    found = shown(write_kineto(loop(10_000, step)))
    (row,) = found.analyses["annotations"]["annotations"]
    assert (row["name"], row["count"]) == ("loss", 4)
    assert row["whole"]["per_step"] == {"host_ns": 4 * MS, "device_ns": 4 * MS, "idle_ns": 2 * MS}
    assert "loss 1 4.00 ms 4.00 ms 4.00 ms 4.00 ms 2.00 ms 2.00 ms" in found.flat


def test_c3_the_trace_is_shown_as_a_page_of_one_file(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    stepscope("diagnose", variant("before").path, "--format", "html", "-o", page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "stepscope.report/1" in text
    assert 'id="trace-pack"' in text or "pack" in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_c4_a_busy_device_does_not_hide_the_waits() -> None:
    found = variant("before")
    assert found.summary["device_busy_share"] > 0.8
    assert found.report["findings"][0]["rule"] == "sync_bound"


def blocked(op: str) -> dict[str, Any]:
    (row,) = (row for row in variant("before").analyses["syncs"] if row["op"] == op and "Stream" in row["call"])
    return dict(row)


def test_c5_nonzero_blocks_the_host_and_says_for_how_long() -> None:
    row = blocked("aten::nonzero")
    assert row["per_step"] == 1
    assert row["blocked_ns_per_step"] == pytest.approx(10.3 * MS, rel=0.02)
    assert "the host is blocked 10.3 ms per step" in variant("before").flat


def test_c6_the_second_wait_is_short_as_it_has_little_left_to_wait_for() -> None:
    assert blocked("aten::_unique2")["blocked_ns_per_step"] < 50 * US
    assert blocked("aten::index")["blocked_ns_per_step"] < 50 * US


def fixes() -> dict[str, str]:
    """What stands in for each op that waits."""
    return {part["where"]["op"]: part["fix"] for part in waits()["fix_set"]}


def test_c7_torch_where_stands_in_for_nonzero_and_is_charged() -> None:
    assert "torch.where(cond, a, b)" in fixes()["aten::nonzero"]
    assert "The prediction charges 13.4 µs per step for `torch.where` in place of `aten::nonzero`" in waits()["why"]


def test_c8_waits_that_hide_behind_each_other_are_one_chain_to_be_fixed_together() -> None:
    finding = waits()
    assert "Fix them together: removing one alone moves the wait to the next" in finding["why"]
    assert [part["where"]["op"] for part in finding["fix_set"]] == ["aten::nonzero", "aten::_unique2", "aten::index"]
    alone = sum(part["saving_alone_ns_per_step"] for part in finding["fix_set"])
    assert alone < 0.5 * finding["saving_ns_per_step"]
    gained = step_ns("before") - step_ns("after")
    assert finding["saving_ns_per_step"] == pytest.approx(gained, rel=0.1)


def test_c9_sorting_and_comparing_neighbours_stands_in_for_unique() -> None:
    assert "torch.sort" in fixes()["aten::_unique2"]
    assert "torch.diff(x) != 0" in fixes()["aten::_unique2"]


def test_c10_ignore_index_stands_in_for_selecting_targets() -> None:
    assert "ignore_index of F.cross_entropy" in fixes()["aten::index"]


def busy_all_along() -> Shown:
    """A nonzero blocks the host for 1.34 s of each step, in which the device works; 41 us it waits for a launch."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(44): loss_of", start, 1_340_060)
        drawing.host("aten::mm", start + 2, 20)
        drawing.kernel(drawing.launch(start + 5, CALL), "gemm", start + 10, 1_339_990)
        drawing.host("aten::nonzero", start + 50, 1_339_980)
        drawing.copy(drawing.call("cudaMemcpyAsync", start + 52, CALL), "DtoH", start + 1_340_002, 2, 8)
        drawing.sync(start + 60, 1_339_960)
        drawing.kernel(drawing.launch(start + 1_340_040, CALL), "k", start + 1_340_045, 9_950)

    return shown(write_kineto(loop(1_350_000, step)))


def test_c11_a_wait_of_a_second_is_worth_what_the_device_loses_by_it_and_no_more() -> None:
    """The guide's step got no faster although its loss became 240 times as fast on the host."""
    found = busy_all_along()
    (row,) = (row for row in found.analyses["syncs"] if row["op"] == "aten::nonzero")
    assert row["blocked_ns_per_step"] > 1_300 * MS
    assert row["cost_ns_per_step"] < MS
    assert "sync_bound" not in found.rules()
    assert "nonzero" in found.text()  # why that costs nothing, where one looks for it


def test_c12_that_a_wait_may_pay_for_itself_where_little_is_selected_is_told() -> None:
    for text in fixes().values():
        assert "where only a small part of a large tensor is kept" in text
        assert "so measure both" in text


OTHERS = {
    "aten::item": ("aten::item", "aten::_local_scalar_dense"),
    "aten::is_nonzero": ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"),
    "aten::_unique2": ("aten::_unique2",),
    "aten::masked_select": ("aten::masked_select", "aten::nonzero"),
    "mylib::thing": ("mylib::thing",),
}


@pytest.mark.parametrize("op", OTHERS)
def test_c13_every_op_that_waits_is_listed_whatever_its_name(op: str) -> None:
    found = shown(write_kineto(synchronising(20_000, 2_000, *OTHERS[op])))
    (row,) = found.analyses["syncs"]
    assert (row["op"], row["call"], row["per_step"]) == (op, "cudaStreamSynchronize", 1)
    assert row["cost_ns_per_step"] == pytest.approx(2 * MS, rel=0.01)
    assert f"{op}" in found.finding("sync_bound")["title"]


def test_c14_the_debug_mode_that_names_every_wait_is_told_with_what_it_prints() -> None:
    fix = waits()["fix"]
    assert 'torch.cuda.set_sync_debug_mode("warn")' in fix
    assert "called a synchronizing CUDA operation" in fix


def loader() -> str:
    return str(shown(planted_file("input_on_main_thread")).finding("input_bound")["fix"])


def test_c15_the_loader_s_options_are_told() -> None:
    assert "DataLoader(dataset, ..., num_workers=4, persistent_workers=True, pin_memory=True)" in loader()


@pytest.mark.parametrize("experiment", ["workers=8", "pinned-memory"])
def test_c16_a_run_with_another_loader_says_what_it_gains(experiment: str) -> None:
    plain, changed = run(10), run(6, experiment=experiment, started=2)
    assert outcome(changed, [plain, changed]) == [
        f"experiment {experiment}: a step took 6.00 ms instead of 10.0 ms, 4.00 ms less"
    ]


def test_c17_copies_that_make_the_host_wait_are_told() -> None:
    finding = shown(write_kineto(copying(10_000, 2_000))).finding("exposed_copy")
    assert "The host memory is pageable, which makes the copy slower and blocks the host" in finding["why"]
    assert "non_blocking=True" in finding["fix"]
    assert "pageable → device" in shown(write_kineto(copying(10_000, 2_000))).flat


def test_c18_ops_kernels_and_memory_have_their_views() -> None:
    text = variant("before").verbose
    for title in ("Ops by type, in the steps used", "Kernels by time", "Longest idle gaps",
                  "Waits of the host for the device (synchronisation), per step"):  # fmt: skip
        assert title in text
    nonzero = next(row for row in variant("before").analyses["ops"]["by_type"] if row["op"] == "aten::nonzero")
    assert nonzero["count"] == 12  # in six steps; indexing with a mask holds the other


def test_c19_an_a10g_is_known_with_its_peaks() -> None:
    """70 TFLOP/s of 16 bits on its tensor cores, 35 of fp32: half of the time."""
    found = shown(write_kineto(stepping(product(SGEMM, 2_000)), header=header("NVIDIA A10G")))
    assert found.told("tensor_cores_unused")["saving_ns_per_step"] == 1 * MS
    assert "NVIDIA A10G" in found.text()
