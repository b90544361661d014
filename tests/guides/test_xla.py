"""PyTorch/XLA on TPU VMs, D1-D25: capturing from its server, and what its traces tell."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stepscope import cli
from stepscope.doctor.checks import frameworks
from stepscope.formats import saved
from stepscope.trace.tables import Kind
from tests.analysis.test_xla import BUILD, EXECUTE, TRANSFER, compiling, lazy_loop
from tests.guides.shown import Shown, shown, shown_trace, stepscope
from tests.kit.lazy_reports import AFTER, BEFORE, STEPS
from tests.kit.traces import real_trace
from tests.kit.xla import HostRange, Job, Line, Op, build
from tests.remote.peers import nothing_listens, serving
from tests.remote.test_client import capture, impatient, sends_xspace
from tests.support import planted_file
from tests.web.test_app_capture import ask, ended, job, server, wanted

__all__ = ["impatient", "job", "server"]

US, MS = 1_000, 1_000_000
LAZY = "PyTorch/XLA"
READ = "PjRtComputationClient::TransferFromDevice"
"""How PyTorch/XLA reads a value."""


def told(made: Job) -> Shown:
    return shown_trace(build(replace(made, framework=LAZY)))


def test_d1_a_server_that_was_not_kept_is_named_as_a_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with nothing_listens() as address:
        assert capture(tmp_path, address) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "PyTorch/XLA's server ends with the object that start_server returns, so the script must keep it" in said


def test_d2_a_running_job_is_captured_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(sends_xspace) as address:
        assert capture(tmp_path, address) == 0
    (path,) = tmp_path.rglob("*.xplane.pb")
    said = capsys.readouterr()
    assert f"{address}: captured" in said.err
    assert said.out.startswith(f"{path.name} · JAX · ")


def test_d3_a_running_job_is_captured_from_the_page(server, job) -> None:  # type: ignore[no-untyped-def]
    assert ask(server, "POST", wanted("localhost:9012", 2))[0] == 200
    job.let_go.set()
    assert (ended(server)["captured"], job.asked) == (1, [("localhost:9012", 2)])
    status, body = ask(server, "GET", path=urlsplit(server.url).path + "api/1/report")
    assert (status, json.loads(body)["report"]["schema"]) == (200, "stepscope.report/1")


def test_d4_step_traces_mark_and_number_the_steps() -> None:
    report = told(lazy_loop()).report
    assert [step["number"] for step in report["steps"]] == [40, 41, 42, 43, 44, 45]
    assert report["summary"]["step_source"] == "train"
    assert report["summary"]["step_time_ns"]["median"] == 1 * MS


def named(name: str) -> Job:
    """A range of the user's takes 6.5 ms of each step of 10, and gives the device nothing to do."""
    host, ops = [], []
    for k in range(6):
        at = 10_000 * k
        host.append(HostRange("train", at, 10_000, Kind.STEP, step=40 + k))
        host.append(HostRange(name, at, 6_500))
        host.append(HostRange(EXECUTE, at + 6_500, 50, Kind.RUNTIME_CALL))
        ops.append(Op("fusion.1", at + 6_560, 3_440, execute=len(host) - 1, run=k))
    return Job(host, ops)


def test_d5_ranges_of_one_s_own_are_found_by_name() -> None:
    path = told(named("augment")).path
    rows = stepscope("query", path, "--format", "csv",
                     "SELECT name, COUNT(*), SUM(dur_ns) FROM slices WHERE name = 'augment' GROUP BY name")  # fmt: skip
    assert rows.splitlines()[1] == f"augment,6,{6 * 6_500 * US}"


def test_d6_forward_and_backward_ranges_of_a_lazy_framework_are_said_to_build_the_graph() -> None:
    made = lazy_loop()
    host = [*made.host, HostRange("forward", 100, 50), HostRange("Backward pass", 1_100, 50)]
    text = told(replace(made, host=host)).notices()["lazy_phases"]
    assert "graph" in text


def read_in_the_middle() -> Job:
    """Two programs a step; between them the host reads a value, and the device waits 300 us for the second."""
    host, ops = [], []
    for k in range(6):
        at = 1_000 * k
        host.append(HostRange("train", at, 1_000, Kind.STEP, step=k))
        for half, start in enumerate((at, at + 600)):
            host.append(HostRange(EXECUTE, start, 50, Kind.RUNTIME_CALL))
            ops.append(
                Op(f"fusion.{half}", start + 60, 240, execute=len(host) - 1, run=2 * k + half, module=f"m{half}")
            )
        host.append(HostRange(READ, at + 100, 210))
        host.append(HostRange("train.py(31): train_step", at, 1_000, Kind.PYTHON_FRAME))
    return Job(host, ops)


def test_d7_a_value_read_in_the_middle_of_a_step_is_told_to_cut_the_graph() -> None:
    finding = told(read_in_the_middle()).finding("graph_cut_early")
    assert finding["cost_ns_per_step"] == pytest.approx(360 * US, rel=0.1)
    assert "xm.add_step_closure" in finding["fix"]
    assert finding["where"][0]["file"] == "train.py"


@pytest.mark.parametrize("name", ["load", "load_batch", "augment", "anything"])
def test_d8_idle_time_inside_a_range_of_one_s_own_is_a_finding_named_after_it(name: str) -> None:
    found = told(named(name))
    assert any(
        name in finding["title"] + finding["why"] + json.dumps(finding["where"])
        and (finding["saving_ns_per_step"] or 0) > 6 * MS
        for finding in found.report["findings"]
    )


def gap(*, ids: bool, thread: str = "python") -> Job:
    """Chunks of 100 ms on a TPU, 72 ms apart: meanwhile the host moves data. Without ids nothing joins the two."""
    host, ops, lines = [], [], []
    for k in range(6):
        at = 200_000 * k
        host.append(HostRange("train", at, 200_000, Kind.STEP, step=k))
        host.append(HostRange("PjRtComputationClient::TransferToDevice", at + 1_000, 72_000, thread=thread))
        if thread != "python":
            host.append(HostRange("WaitDeviceOps", at + 1_000, 72_000))
        host.append(HostRange(EXECUTE, at + 73_500, 500, Kind.RUNTIME_CALL))
        ops.append(Op("fusion.1", at + 75_000, 124_000, execute=len(host) - 1 if ids else -1, run=k))
        lines.append(Line("XLA Modules", "jit_step(1)", at + 75_000, 124_000))
    return Job(host, ops, lines)


@pytest.mark.parametrize("ids", [True, False])
def test_d9_a_gap_on_a_tpu_is_told_from_what_the_host_did_with_or_without_run_ids(ids: bool) -> None:
    found = told(gap(ids=ids))
    assert found.parts()["transfer"] == pytest.approx(72 * MS, rel=0.02)
    assert found.finding("transfer_bound")["cost_ns_per_step"] == pytest.approx(72 * MS, rel=0.02)


def test_d10_an_all_reduce_of_cross_replica_sum_is_communication() -> None:
    made = lazy_loop()
    ops = [replace(op, scope="cross_replica_sum") if op.name.startswith("all-reduce") else op for op in made.ops]
    found = told(replace(made, ops=ops))
    assert found.parts()["collective"] == 260 * US
    (row,) = found.analyses["xla"]["duty_cycle"]
    assert row["collective_share"] == 0.26


def test_d11_missing_scopes_are_told_with_the_variable_that_records_them() -> None:
    assert "XLA_HLO_DEBUG=1" in told(lazy_loop()).notices()["profile_no_scopes"]


def test_d12_the_duty_cycle_is_told() -> None:
    """From the first op of a program to its last: 500 of each 1,000 us."""
    found = told(lazy_loop())
    assert found.summary["duty_cycle_share"] == 0.5
    assert "duty cycle 50.0 % of the step time in compiled modules" in found.flat


def test_d13_what_the_host_did_in_a_gap_is_told_of_any_range_of_time() -> None:
    rows = stepscope("query", told(lazy_loop()).path, "--time", "1000us:1460us", "--format", "csv").splitlines()
    assert [row for row in rows if row.startswith("0,,,,idle,graph_build,300000,")]
    assert [row for row in rows if row.startswith(f",/host:CPU,1,python,annotation,{BUILD},300000,")]
    assert [row for row in rows if row.startswith(f",/host:CPU,1,python,annotation,{TRANSFER},100000,")]


def test_d14_a_transfer_on_a_thread_of_its_own_is_followed_through_the_wait() -> None:
    found = told(gap(ids=True, thread="TransferPool/7"))
    assert found.parts()["transfer"] == pytest.approx(72 * MS, rel=0.02)


def test_d15_a_graph_that_is_compiled_anew_is_told_with_the_shape_that_changed() -> None:
    (row,) = told(compiling()).analyses["xla"]["compilations"]
    assert (row["step"], row["dur_ns"], row["again"]) == (3, 200 * US, True)
    assert row["changed"] == "parameter 0: f32[64,256] → f32[128,256]"


def test_d16_building_the_next_step_s_graph_while_the_device_works_is_healthy() -> None:
    found = told(lazy_loop(overlapped=True))
    assert found.analyses["xla"]["graph_building"]["overlapped_share"] == pytest.approx(260 / 300)
    assert "graph_building" not in found.rules()
    assert "graph_building" in told(lazy_loop()).rules()


def test_d17_scopes_that_are_scattered_over_the_step_are_summed() -> None:
    made = lazy_loop()
    parts = [Op(f"fusion.{k}", op.start + 50 * k, 40, execute=op.execute, run=op.run, scope=f"net/conv{k % 2}/mul")
             for op in made.ops if op.name == "fusion.1" for k in range(4)]  # fmt: skip
    (layers,) = told(replace(made, ops=parts)).analyses["layers"]
    sums = {row["path"]: row["forward_ns_per_step"] for row in layers["layers"]}
    assert (sums["net/conv0"], sums["net/conv1"]) == (80 * US, 80 * US)


def reading(every: int) -> Job:
    """Behind each step, or each so many, the loss is read; 300 us of host work follow before the next program."""
    host, ops, at = [], [], 0
    for k in range(12):
        reads = k % every == 0
        host.append(HostRange("train", at, 1_000 if reads else 700, Kind.STEP, step=k))
        host.append(HostRange(EXECUTE, at, 50, Kind.RUNTIME_CALL))
        ops.append(Op("fusion.1", at + 60, 600, execute=len(host) - 1, run=k))
        if reads:
            host.append(HostRange(READ, at + 100, 570))
        at += 1_000 if reads else 700
    return Job(host, ops)


def test_d18_reading_the_loss_in_every_step_is_told() -> None:
    finding = told(reading(1)).finding("sync_bound")
    assert finding["cost_ns_per_step"] == pytest.approx(330 * US, rel=0.2)
    assert "xm.add_step_closure" in finding["fix"]


def test_d19_the_counters_of_the_metrics_report_are_read(tmp_path: Path) -> None:
    saved.write(build(replace(lazy_loop(), framework=LAZY)), tmp_path / "job.stepscope")
    entry = {"path": "job.stepscope", "steps": STEPS, "metrics": {"before": BEFORE, "after": AFTER}}
    manifest = {"schema": "stepscope.capture/1", "framework": "torch_xla", "files": [entry]}
    (tmp_path / "job.stepscope.json").write_text(json.dumps(manifest))
    found = Shown(tmp_path)
    assert "cannot compile them: aten::_linalg_solve_ex and 2 more" in " ".join(found.text().split())
    assert "aten::nonzero 1 per step" in found.flat
    assert "PyTorch/XLA counted the transfers to the device: 7 per step" in found.flat
    assert re.search(r"Counters of PyTorch/XLA.* CompileTime +3 +0\.75 +1\.38 s", found.flat)


@pytest.mark.real
def test_d20_every_core_has_its_own_figures() -> None:
    found = Shown(real_trace("xplane/tpu_v6e_4_chips.xplane.pb"))
    rows = {row["device"]: row["step_ns"] for row in found.analyses["breakdown"]}
    assert sorted(rows) == [0, 1, 2, 3]
    assert all(step == pytest.approx(784 * MS, rel=0.01) for step in rows.values())
    assert "Device 3, TPU v6 Lite: where each step's time goes" in found.verbose


def test_d21_the_ranks_of_a_job_of_eight_are_read_together(tmp_path: Path) -> None:
    from tests.cluster.jobs import data_parallel, simulate

    found = Shown(simulate(8, data_parallel(), steps=5).write(tmp_path / "job"))
    assert found.report["analyses"]["ranks"]["present"] == 8
    assert "8 ranks" in found.text().splitlines()[0]


def test_d22_the_way_to_a_page_on_another_machine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.remote.test_client import addresses, parsed

    def refused(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(addresses.socket, "create_connection", refused)
    with pytest.raises(Exception, match="nothing listens there") as raised:
        addresses.check_listening(parsed("tpu-vm:9012")[0])
    assert "`ssh -N -L 9012:localhost:9012 tpu-vm`, and then stepscope capture localhost:9012" in str(raised.value)


def test_d23_two_profiler_plugins_of_tensorboard_are_told() -> None:
    from tests.doctor.test_checks import PROBE, WARNING, Machine, case, packages

    ran = packages(tensorboard_plugin_profile="2.19.0", xprof="2.24.2")
    outcome = frameworks.tensorboard(case(Machine(scripts={PROBE: ran})))
    assert outcome.state is WARNING
    assert "Duplicate plugins" in outcome.sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--duration", "4000s"], "a capture lasts from 1 ms to 3600 s, not 4000 s"),
        (["--duration", "0s"], "a capture lasts from 1 ms to 3600 s, not 0 s"),
        (["--max-bytes", "0"], "--max-bytes"),
    ],
)
def test_d24_a_capture_is_bounded_in_time_and_size(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["capture", "-o", str(tmp_path), *options, "localhost:9012"]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_d25_a_step_that_was_cut_off_is_left_out() -> None:
    steps = shown(planted_file("incomplete_last_step")).report["steps"]
    assert [step["complete"] for step in steps] == [True] * 7 + [False]
    assert shown(planted_file("incomplete_last_step")).summary["steps_used"] < 8
