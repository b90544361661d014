"""Peaks of devices: the vendors' numbers, told apart by name, each with its source."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction

import pytest

from stepscope.hardware import amd, cloud, nvidia
from stepscope.hardware.devices import lookup
from stepscope.hardware.peaks import DevicePeaks, Figure, Precision
from tests.kit.traces import real_trace

DEVICES = [peaks for _, peaks in (*nvidia.DEVICES, *amd.DEVICES, *cloud.DEVICES)]
TERA = 10**12


def known(name: str) -> DevicePeaks:
    peaks = lookup(name)
    assert peaks is not None, name
    return peaks


@pytest.mark.parametrize(
    ("name", "format_", "tera"),
    [
        # Data sheets quote these "with sparsity", which doubles them: 624, 1979, 3958, 362, 733, 72000 / 8, ...
        ("NVIDIA A100-SXM4-80GB", "bf16", 312),
        ("NVIDIA H100 80GB HBM3", "bf16", 989.4),
        ("NVIDIA H100 80GB HBM3", "fp8", 1978.9),
        ("NVIDIA H100 PCIe", "bf16", 756.5),
        ("NVIDIA L4", "fp16", 121),
        ("NVIDIA L40S", "fp8", 733),
        ("NVIDIA B200", "fp8", 4500),
        ("NVIDIA B200", "fp4", 9000),
        ("NVIDIA GB200", "bf16", 2500),
        ("NVIDIA RTX 6000 Ada Generation", "fp8", 728.5),
        ("NVIDIA GeForce RTX 4090", "fp16", 165.2),  # 330.3 with 16-bit accumulation
        ("NVIDIA GeForce RTX 5090", "fp4", 1676),
        ("NVIDIA GeForce RTX 3070", "bf16", 40.6),
        ("NVIDIA GeForce RTX 4080", "fp8", 194.9),
        ("NVIDIA GeForce RTX 5080", "fp16", 112.6),
        ("NVIDIA GeForce RTX 5070 Ti", "fp16", 87.9),
        ("NVIDIA GeForce RTX 5070", "int8", 246.9),
        ("Tesla V100-SXM2-32GB", "fp16", 125),
        ("Tesla V100-DGXS-32GB", "fp16", 125),
        ("Tesla T4", "int8", 130),
        ("NVIDIA A10G", "bf16", 70),
        ("AMD Instinct MI300X", "fp8", 2614.9),
        ("AMD Instinct MI325X", "bf16", 1307.4),
        ("AMD Instinct MI355X", "fp4", 10066.3),
        ("AMD Instinct MI100", "bf16", 92.3),
        ("TPU v5 lite", "bf16", 197),
        ("TPU v6e", "int8", 1836),
        ("Trainium2", "fp8", 1299),
    ],
)
def test_dense_matrix_peaks(name: str, format_: str, tera: float) -> None:
    assert known(name).matrix_flops(format_) == round(Fraction(str(tera)) * TERA)


@pytest.mark.parametrize(
    ("name", "giga_per_second", "gib"),
    [
        ("NVIDIA A100-SXM4-40GB", 1555, 40),
        ("NVIDIA A100-PG509-200", 1555, 40),
        ("A100-SXM4-40GB", 1555, 40),
        ("NVIDIA A100-SXM4-80GB", 2039, 80),
        ("NVIDIA A100-PCIE-40GB", 1555, 40),
        ("NVIDIA A100 80GB PCIe", 1935, 80),
        ("NVIDIA H100 80GB HBM3", 3350, 80),
        ("NVIDIA H100 NVL", 3900, 94),
        ("NVIDIA H200", 4800, 141),
        ("NVIDIA GH200 480GB", 4000, 96),
        ("Tesla V100S-PCIE-32GB", 1134, 32),
        ("NVIDIA A30", 933, 24),
        ("AMD Instinct MI210", 1638.4, 64),
        ("AMD Instinct MI300X VF", 5300, 192),
        ("TPU v5p", 2765, 95),
        ("TPU7x", 3690, 96),
        ("NVIDIA GeForce RTX 4080", 716.8, 16),
    ],
)
def test_memory(name: str, giga_per_second: float, gib: int) -> None:
    peaks = known(name)
    assert peaks.memory_bandwidth is not None
    assert peaks.memory_bytes is not None
    assert peaks.memory_bandwidth.value == round(giga_per_second * 10**9)
    assert peaks.memory_bytes.value == gib << 30


def test_figures_of_one_die_or_core_are_half_the_modules() -> None:
    assert known("AMD Instinct MI250X").matrix_flops("fp16") == 383 * TERA // 2
    assert known("TPU v3").matrix_flops("bf16") == 123 * TERA // 2
    for name in ("AMD Instinct MI250X", "AMD Instinct MI250", "TPU v2", "TPU v3", "TPU7x"):
        assert "half" in next(iter(known(name).matrix.values())).source


@pytest.mark.parametrize(("name", "expected"), [
    ("NVIDIA A10", "A10"), ("NVIDIA A10G", "A10G"), ("NVIDIA A100-SXM4-40GB", "A100 SXM4 40GB"),
    ("NVIDIA L4", "L4"), ("NVIDIA L40", "L40"), ("NVIDIA L40S", "L40S"),
    ("NVIDIA H200", "H200 SXM"), ("NVIDIA H200 NVL", "H200 NVL"), ("NVIDIA B200", "B200"), ("NVIDIA GB200", "GB200"),
    ("NVIDIA B300 SXM6 AC", "B300"), ("TPU v5", "TPU v5p"), ("TPU v5 lite", "TPU v5e"),
    ("AMD Instinct MI250", "Instinct MI250 die"), ("AMD Instinct MI250X", "Instinct MI250X die"),
    ("nvidia a100-sxm4-80gb", "A100 SXM4 80GB"),
])  # fmt: skip
def test_names_that_begin_alike_are_told_apart(name: str, expected: str) -> None:
    assert known(name).name == expected


@pytest.mark.parametrize("name", [
    "", "ARTEMIS", "NVIDIA H800", "NVIDIA A800-SXM4-80GB", "NVIDIA H20", "NVIDIA H100", "NVIDIA A100",
    "NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "Tesla P100-PCIE-16GB", "AMD Radeon Graphics", "AMD Instinct MI300",
    "TPU", "TPU v50", "cpu", "A100-SXM4-40GB" * 1000, "NVIDIA " * 1000,
])  # fmt: skip
def test_devices_that_are_not_known_are_never_guessed(name: str) -> None:
    assert lookup(name) is None


def test_a_contradicting_compute_capability_is_not_believed() -> None:
    assert lookup("NVIDIA H100 80GB HBM3", (9, 0)) == lookup("NVIDIA H100 80GB HBM3")
    assert lookup("NVIDIA H100 80GB HBM3", (8, 0)) is None
    assert lookup("TPU v4", (9, 0)) is not None, "a TPU has no compute capability to contradict"


def test_formats_of_the_matrix_units() -> None:
    v100, t4, a100, b300 = (
        known(n) for n in ("Tesla V100-SXM2-16GB", "Tesla T4", "NVIDIA A100-SXM4-80GB", "NVIDIA B300")
    )
    assert v100.has_tensor_cores
    assert [v100.supports(f) for f in ("fp16", "bf16", "tf32", "int8")] == [True, False, False, False]
    assert [t4.supports(f) for f in ("fp16", "int8", "bf16")] == [True, True, False]
    assert [a100.supports(f) for f in ("tf32", "bf16", "fp64", "fp8")] == [True, True, True, False]
    # Taken by the units, at a rate on which the sources disagree: supported, without a figure.
    assert b300.supports("fp4")
    assert b300.matrix_flops("fp4") is None
    assert not v100.supports("no such format")
    assert v100.matrix_flops("no such format") is None


def test_vector_and_matrix_rates_differ() -> None:
    a100 = known("NVIDIA A100-SXM4-80GB")
    assert (a100.vector_flops("fp32"), a100.matrix_flops("fp32")) == (19_500 * TERA // 1000, None)
    assert (a100.vector_flops("fp16"), a100.matrix_flops("fp16")) == (78 * TERA, 312 * TERA)
    mi300x = known("AMD Instinct MI300X")
    assert (mi300x.vector_flops("fp64"), mi300x.matrix_flops("fp64")) == (81_700 * TERA // 1000, 163_400 * TERA // 1000)


def test_links_that_are_an_option_have_no_bandwidth() -> None:
    sxm, pcie = known("NVIDIA A100-SXM4-80GB"), known("NVIDIA A100 80GB PCIe")
    assert sxm.link_bandwidth is not None
    assert sxm.link_bandwidth.value == 600 * 10**9
    assert pcie.link_bandwidth is None


@pytest.mark.parametrize("peaks", DEVICES, ids=lambda peaks: peaks.name)
def test_every_figure_has_a_source_and_a_sane_size(peaks: DevicePeaks) -> None:
    figures = [*peaks.matrix.values(), *peaks.vector.values()]
    figures += [f for f in (peaks.memory_bandwidth, peaks.memory_bytes, peaks.link_bandwidth) if f]
    assert all(isinstance(figure, Figure) and len(figure.source) > 15 for figure in figures)
    assert set(peaks.matrix) <= peaks.matrix_formats
    assert all(TERA < figure.value < 20_000 * TERA for figure in [*peaks.matrix.values(), *peaks.vector.values()])
    if peaks.memory_bandwidth is not None:
        assert 2 * 10**11 < peaks.memory_bandwidth.value < 10**13


@pytest.mark.parametrize("peaks", DEVICES, ids=lambda peaks: peaks.name)
def test_fewer_bits_are_never_slower_on_the_matrix_units(peaks: DevicePeaks) -> None:
    """A row copied wrongly, or with sparsity in one column only, breaks the order or the ratio."""
    rates = [peaks.matrix_flops(f) for f in ("tf32", "bf16", "fp8", "fp4")]
    present = [rate for rate in rates if rate is not None]
    assert present == sorted(present)
    tf32, bf16, fp8 = rates[:3]
    if tf32 and bf16 and peaks.vendor == "NVIDIA":
        assert bf16 / tf32 == pytest.approx(2, rel=0.03)
    if bf16 and fp8 and peaks.vendor in ("NVIDIA", "AMD"):
        assert fp8 / bf16 == pytest.approx(2, rel=0.02)


def test_no_two_rows_claim_the_same_name() -> None:
    names = [peaks.name for peaks in DEVICES]
    assert len(names) == len(set(names))


@pytest.mark.real
@pytest.mark.parametrize(
    "trace",
    [
        "a100_alexnet_sync",
        "b200_eager_rank0_of_8",
        "h100_qwen05b",
        "mi210_gpu_only",
        "mi300_resnet_checkpointing_rank0_of_8",
        "v100_resnet50_workers0",
        "v100_two_ranks_rank1",
    ],
)
def test_devices_of_the_real_traces_are_known_and_fit_what_they_recorded(trace: str) -> None:
    with gzip.open(real_trace(f"kineto/{trace}.json.gz"), "rt", errors="replace") as file:
        text = file.read(64_000)  # Most have their devices in front of the events, of which nothing is asked.
        text += "" if '"deviceProperties"' in text else file.read()
    devices = text.index("[", text.index('"deviceProperties"'))
    device = json.JSONDecoder(strict=False).raw_decode(text, devices)[0][0]
    peaks = lookup(device["name"], (device["computeMajor"], device["computeMinor"]))
    assert peaks is not None
    assert peaks.supports(Precision.FP16)
    assert peaks.memory_bytes is not None
    assert device["totalGlobalMem"] == pytest.approx(peaks.memory_bytes.value, rel=0.03)
