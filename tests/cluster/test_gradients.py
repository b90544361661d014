"""The quick estimate of what reducing gradients takes: from the trace, from a number of parameters, in one sentence."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepscope import cli, pipeline
from stepscope.analysis.analyse import analyse
from stepscope.analysis.exchange.asked import Asked
from stepscope.analysis.exchange.collectives import KINDS, Collectives
from stepscope.analysis.exchange.groups import Group
from stepscope.cluster.gradients import gradients
from stepscope.diagnosis.engine import diagnose
from stepscope.names.collectives import Collective
from stepscope.report.document import InputFile, make
from stepscope.report.gradients import headlines
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Device, Info
from tests.cluster.jobs import data_parallel, simulate
from tests.diagnosis.test_exchanges import exchanging
from tests.kit.builder import TraceDrawing
from tests.report import documents
from tests.support import real_profile, trace_of

A100 = tuple(Device(at, "NVIDIA A100-SXM4-80GB", compute_capability=(8, 0)) for at in range(8))
EIGHT = Group("0", None, 8)
LINK = 300e9
"""NVLink 3 of an A100: 600 GB/s, both directions together (NVIDIA's data sheet)."""


def table(*reduced: tuple[Collective, int], group: Group = EIGHT, width: int | None = 2) -> Collectives:
    """Collectives of one step of one device, of so many bytes each and 1 ms long."""
    count = len(reduced)
    zeros = np.zeros(count, np.int32)
    start = np.arange(count, dtype=np.int64) * 2_000_000
    kind = np.array([KINDS.index(kind) for kind, _ in reduced], np.int32)
    size = np.array([size for _, size in reduced], np.int64)
    element, other = np.full(count, NULL), np.zeros(count, np.bool_)
    return Collectives(zeros, zeros, kind, zeros, start, start + 1_000_000, size, element, other, (group,), width=width)


STEP = np.zeros(1, np.int64)
REDUCED = (Collective.ALL_REDUCE, 200_000_000), (Collective.ALL_GATHER, 1 << 30)


def test_bytes_of_the_trace_by_the_link_and_on_a_ring() -> None:
    found = gradients(table(*REDUCED), STEP, Info("Kineto", framework="PyTorch", devices=A100), None)
    assert found is not None
    assert (found.source, found.parameters, found.bytes_per_parameter) == ("trace", 100_000_000, 2)
    assert (found.ranks, found.one_host, found.link_bandwidth) == (8, True, LINK)
    assert found.estimate_ns == round(200e6 / LINK * 1e9)
    assert found.ring_estimate_ns == round(200e6 / LINK * 2 * 7 / 8 * 1e9)
    assert found.measured_ns == 1_000_000


def test_a_ring_that_scatters_carries_half() -> None:
    found = gradients(table((Collective.REDUCE_SCATTER, 200_000_000)), STEP, Info("Kineto", devices=A100), None)
    assert found is not None
    assert found.ring_estimate_ns == round(200e6 / LINK * 7 / 8 * 1e9)


def test_tensorflow_has_four_bytes_whatever_the_trace_says() -> None:
    setting = Info("XPlane", framework="TensorFlow", devices=A100)
    found = gradients(table(*REDUCED, width=2), STEP, setting, None, Asked(25_000_000))
    assert found is not None
    assert (found.source, found.bytes_per_parameter, found.bytes_per_step) == ("given", 4, 100_000_000)


def test_what_is_given_needs_no_sizes() -> None:
    few, setting = table((Collective.ALL_REDUCE, -1), width=None), Info("Kineto", devices=A100)
    found = gradients(few, STEP, setting, True, Asked(10**9))
    assert found is not None
    assert (found.bytes_per_step, found.estimate_ns) == (4 * 10**9, round(4e9 / LINK * 1e9))
    assert gradients(table((Collective.ALL_REDUCE, -1)), STEP, Info("Kineto", devices=A100), True) is None


@pytest.mark.parametrize(("world", "ranks"), [(128, None), (2, 2), (None, None)])
def test_the_job_is_not_the_group_unless_it_is_of_two(world: int | None, ranks: int | None) -> None:
    setting = Info("Kineto", devices=A100[:1], world_size=world)
    found = gradients(table(*REDUCED, group=Group("stream 84")), STEP, setting, None)
    assert found is not None
    assert found.ranks == ranks
    assert (found.ring_estimate_ns is None) == (ranks is None)


def test_between_hosts_and_of_unknown_devices_nothing_is_estimated() -> None:
    few = table(*REDUCED, group=Group("0", None, 64))
    for devices, one_host in ((A100, False), ((Device(0, "Accelerator 9000"),), None)):
        found = gradients(few, STEP, Info("Kineto", devices=devices), one_host)
        assert found is not None
        assert (found.estimate_ns, found.ring_estimate_ns) == (None, None)
    assert headlines({"analyses": {"gradients": None}}) == []
    assert headlines({"analyses": {}}, verbose=False) == []


def test_between_hosts_and_of_unknown_devices_the_bandwidth_that_is_given_counts() -> None:
    few, asked = table(*REDUCED, group=Group("0", None, 64)), Asked(bandwidth=25e9)
    for devices, one_host in ((A100, False), ((Device(0),), None), ((), None)):
        found = gradients(few, STEP, Info("XPlane", framework="TensorFlow", devices=devices), one_host, asked)
        assert found is not None
        assert (found.link_bandwidth, found.link_source, found.estimate_ns) == (25e9, "given", 8_000_000)
        assert found.ring_estimate_ns == round(8_000_000 * 2 * 63 / 64)
        ((_, told),) = headlines({"analyses": {"gradients": dataclasses.asdict(found)}}, verbose=False)
        assert "/ 25.0 GB/s = 8.00 ms (the bandwidth as given); corrected for a ring of 64" in told


def test_without_it_the_long_report_says_what_is_missing() -> None:
    few = table(*REDUCED, group=Group("0", None, 64))
    for devices, one_host, why in ((A100, False, "the ranks are on several hosts"),
                                   ((Device(0),), None, "the device's link is not known")):  # fmt: skip
        found = gradients(few, STEP, Info("XPlane", devices=devices), one_host)
        assert found is not None
        assert (found.link_bandwidth, found.link_source) == (None, None)
        document = {"analyses": {"gradients": dataclasses.asdict(found)}}
        ((_, told),) = headlines(document)
        assert f"{why}: no estimate (`--bandwidth 25GB/s` makes one)" in told
        assert headlines(document, verbose=False) == []


def test_what_is_given_counts_before_the_peak() -> None:
    for asked, link, source in ((Asked(), LINK, "device"), (Asked(bandwidth=50e9), 50e9, "given")):
        found = gradients(table(*REDUCED), STEP, Info("Kineto", devices=A100), True, asked)
        assert found is not None
        assert (found.link_bandwidth, found.link_source) == (link, source)


def test_short_reports_have_the_estimate_where_it_was_asked_for() -> None:
    for given, lines in ((None, 0), (25_000_000, 1)):
        found = gradients(table(*REDUCED), STEP, Info("Kineto", framework="PyTorch", devices=A100), None, Asked(given))
        assert found is not None
        document = {"analyses": {"gradients": dataclasses.asdict(found)}}
        assert len(headlines(document, verbose=False)) == lines
        assert len(headlines(document)) == 1


def test_the_group_that_reduces_over_most_ranks_counts() -> None:
    found = table((Collective.ALL_REDUCE, 10**9), (Collective.ALL_REDUCE, 10**6))
    groups = Group("tensor parallel", None, 2), Group("data parallel", None, 4)
    both = replace(found, group=np.array([0, 1], np.int32), groups=groups)
    told = gradients(both, STEP, Info("Kineto", devices=A100), None)
    assert told is not None
    assert (told.ranks, told.bytes_per_step) == (4, 10**6)


@pytest.mark.parametrize(
    ("around", "description", "gradients"),
    [
        ("train.py(9): f", "TENSOR_MODEL_PARALLEL_GROUP", False),
        ("megatron/core/tensor_parallel/mappings.py(25): _reduce", "default_pg", False),
        ("torchmetrics/metric.py(400): _sync_dist", "default_pg", False),
        ("train.py(9): f", "default_pg", True),
        ("DistributedDataParallel.backward", "mesh_dp", True),
    ],
)
def test_parts_of_layers_and_metrics_are_no_gradients(around: str, description: str, gradients: bool) -> None:
    args = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Group size": 8, "dtype": "Float"}
    args |= {"Process Group Name": "3", "Process Group Description": description}
    events = exchanging(("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum", 2_000), around=around, **args)
    drawing = TraceDrawing()
    drawing.host("Optimizer.step#SGD.step", 1, 5, "user_annotation")
    facts = analyse(trace_of([*drawing.events(), *events]))
    document = documents.check(make(facts, diagnose(facts), [InputFile("a.json", 1, 1)]))
    assert ("gradients" in document["analyses"]) is gradients


def test_the_command_prints_both_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = simulate(4, data_parallel(world=4), steps=4, hosts=lambda rank: "node0")
    folder = str(job.write(tmp_path / "job"))
    assert cli.main(["diagnose", folder, "--params", "0.35B"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "350,000,000 parameters × 4 B = 1.30 GiB per step" in text
    assert "the link's peak in one direction); corrected for a ring of 4: " in text
    assert cli.main(["diagnose", folder, "--params", "0.35B", "--format", "json"]) == 0
    document = documents.check(json.loads(capsys.readouterr().out))
    assert document["analyses"]["gradients"]["parameters"] == 350_000_000
    assert cli.main(["diagnose", folder, "--params", "many"]) == 2


@pytest.mark.parametrize(
    ("text", "rate"), [("25GB/s", 25e9), ("200Gbit/s", 25e9), ("100Gbps", 12.5e9), ("1.5 TB/s", 1.5e12)]
)
def test_the_command_takes_a_bandwidth_for_ranks_on_several_hosts(
    text: str, rate: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = simulate(4, data_parallel(world=4), steps=4, hosts=lambda rank: f"node{rank // 2}")
    folder = str(job.write(tmp_path / "job"))
    assert cli.main(["diagnose", folder, "--bandwidth", text, "--format", "json"]) == 0
    document = documents.check(json.loads(capsys.readouterr().out))
    found = document["analyses"]["gradients"]
    assert (found["one_host"], found["link_bandwidth"], found["link_source"]) == (False, rate, "given")
    assert found["estimate_ns"] == round(found["bytes_per_step"] / rate * 1e9)
    assert {one["link_bandwidth"] for one in document["analyses"]["collectives"]} == {rate}


@pytest.mark.parametrize("text", ["fast", "25", "25GB", "0GB/s", "-1GB/s"])
def test_what_is_no_bandwidth_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "nothing", f"--bandwidth={text}"]) == 2
    assert "25GB/s" in capsys.readouterr().err


@pytest.mark.real
def test_the_gradients_of_a_real_resnet_are_its_parameters() -> None:
    profile = real_profile("kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz")
    assert isinstance(profile, pipeline.Profile)
    found = documents.check(profile.document())["analyses"]["gradients"]
    # ResNet-18 has 11,689,512 parameters (torchvision), here in 16 bits.
    assert (found["parameters"], found["bytes_per_parameter"], found["ranks"]) == (11_689_512, 2, 8)
    assert profile.facts.collectives.width == 2
    assert found["estimate_ns"] < found["ring_estimate_ns"] < found["measured_ns"]
