"""Devices by what is recorded beside their names: products that only one has, peaks by clock and multiprocessors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.hardware import amd
from stepscope.hardware.devices import lookup
from stepscope.hardware.figures import AMD, NVIDIA, Figures, peaks_of_figures, product, tensor_cores_take
from stepscope.hardware.peaks import DevicePeaks

GIB = 1 << 30
TERA = 10**12
V100 = Figures((7, 0), 80, 1_530_000, 16_945_512_448, 898_048_000_000)
"""As CUPTI's collector of TensorFlow wrote them."""
A100 = Figures((8, 0), 108, 1_410_000, 42_505_273_344, 1_555_200_000_000)
H100 = Figures((9, 0), 132, 1_980_000, 84_930_723_840, 3_352_320_000_000)
MI300X = Figures((9, 4), 304, 2_100_000, 206_141_652_992, 2_662_400_000_000)
"""As ROCm's collector of JAX wrote them: the bandwidth is half of what the memory does."""


@pytest.mark.parametrize(
    ("known", "name"),
    [
        (V100, "NVIDIA V100 16GB"),
        (replace(V100, memory_bytes=2 * 16_945_512_448), "NVIDIA V100 32GB"),
        (replace(V100, memory_bytes=2 * 16_945_512_448, memory_bandwidth=1_133_568_000_000), "Tesla V100S-PCIE-32GB"),
        (Figures((7, 5), 40, 1_590_000, 15_843_721_216, 320_064_000_000), "Tesla T4"),
        (A100, "NVIDIA A100 or A800 40GB"),
        (H100, "NVIDIA H100 or H800 80GB HBM3"),
        # Others with as many multiprocessors: Titan V (12 GiB), Quadro GV100 (870 GB/s), a T4 cut down.
        (replace(V100, memory_bytes=12 * GIB), None),
        (replace(V100, memory_bytes=33_900_000_000, memory_bandwidth=870_000_000_000), None),
        (replace(V100, memory_bandwidth=None), None),
        (replace(V100, multiprocessors=None), None),
        (replace(A100, multiprocessors=14), None),
        (Figures(), None),
    ],
)  # fmt: skip
def test_a_product_of_nvidia_is_named_where_only_one_has_its_figures(known: Figures, name: str | None) -> None:
    assert product(NVIDIA, known) == name


@pytest.mark.parametrize(
    ("known", "name"),
    [
        (MI300X, "AMD Instinct MI300X"),
        (replace(MI300X, memory_bytes=256 * GIB), "AMD Instinct MI325X"),
        (Figures((9, 4), 228, None, 128 * GIB), "AMD Instinct MI300A"),
        (Figures((9, 5), 256, 2_400_000, 288 * GIB), "AMD Instinct MI355X"),
        (Figures((9, 5), 256, 2_200_000, 288 * GIB), "AMD Instinct MI350X"),
        (Figures((9, 5), 256, None, 288 * GIB), "AMD Instinct MI350 series"),
        (Figures((9, 0), 104, None, 64 * GIB), "AMD Instinct MI210 or MI250"),
        # A partition of one die (CPX), and a product with as much memory.
        (replace(MI300X, multiprocessors=38, memory_bytes=24 * GIB), "AMD Instinct MI300 series"),
        (replace(MI300X, multiprocessors=80), "AMD Instinct MI300 series"),
        (Figures((9, 0)), "AMD GPU"),
        (Figures(), "AMD GPU"),
    ],
)  # fmt: skip
def test_a_nameless_gpu_of_amd_is_called_by_its_figures_else_by_its_series(known: Figures, name: str) -> None:
    assert amd.called(known) == name


@pytest.mark.parametrize("one", [*NVIDIA, *AMD], ids=lambda one: one.name)
def test_every_product_has_a_source_and_no_two_the_same_figures(one) -> None:
    assert len(one.source) > 15
    clock, bandwidth = (one.mhz or 0) * 1000, round((one.gb_s or 0) * 1e9)
    known = Figures(one.version, one.multiprocessors, clock, one.gib * GIB, bandwidth)
    for products in (NVIDIA, AMD):
        assert [other.name for other in products if other.fits(known)] == ([one.name] if one in products else [])


def computed(known: Figures) -> DevicePeaks:
    found = peaks_of_figures("GPU", known)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("known", "name", "most"),
    [
        (V100, "Tesla V100-SXM2-16GB", 1.01),
        (replace(V100, clock_khz=1_380_000), "Tesla V100-PCIE-16GB", 1.01),
        (A100, "NVIDIA A100-SXM4-40GB", 1.01),
        (Figures((8, 0), 56, 1_440_000), "NVIDIA A30", 1.01),
        # The data sheet's rate is at a lower clock than the highest.
        (H100, "NVIDIA H100 80GB HBM3", 1.09),
        (Figures((8, 9), 128, 2_520_000), "NVIDIA GeForce RTX 4090", 1.01),
        (Figures((8, 6), 82, 1_695_000), "NVIDIA GeForce RTX 3090", 1.01),
        (Figures((12, 0), 170, 2_407_000), "NVIDIA GeForce RTX 5090", 1.01),
    ],
)  # fmt: skip
def test_peaks_by_clock_and_multiprocessors_are_those_of_the_data_sheet(known: Figures, name: str, most: float) -> None:
    found, sheet = computed(known), lookup(name)
    assert sheet is not None
    assert found.matrix or found.vector
    for mine, its in ((found.matrix, sheet.matrix), (found.vector, sheet.vector)):
        for precision in set(mine) & set(its):
            assert 0.98 <= mine[precision].value / its[precision].value <= most, precision
    assert found.matrix_formats == sheet.matrix_formats
    assert all("as recorded" in figure.source and "white paper" in figure.source for figure in found.matrix.values())


def test_memory_is_as_recorded_and_a_link_is_not_known() -> None:
    found = computed(V100)
    assert found.memory_bandwidth is not None
    assert found.memory_bytes is not None
    assert (found.memory_bandwidth.value, found.memory_bytes.value) == (898_048_000_000, 16_945_512_448)
    assert found.link_bandwidth is None
    assert computed(replace(V100, memory_bandwidth=None)).memory_bandwidth is None


@pytest.mark.parametrize("known", [
    replace(V100, clock_khz=None), replace(V100, multiprocessors=None), replace(V100, version=None),
    Figures((9, 0), 78, 1_980_000),  # H20: slower tensor cores than its chip's
    Figures((8, 0), 14, 1_410_000),  # a slice of an A100
    Figures((7, 5), 24, 1_770_000),  # no tensor cores at all
    Figures((6, 1), 28, 1_582_000), Figures((42, 0), 100, 1_000_000),
])  # fmt: skip
def test_what_the_figures_do_not_tell_is_not_computed(known: Figures) -> None:
    assert peaks_of_figures("GPU", known) is None


def test_rates_that_differ_among_products_of_a_chip_are_left_out() -> None:
    found = computed(Figures((8, 6), 84, 1_740_000))
    assert found.supports("bf16")
    assert found.matrix_flops("bf16") is None
    assert found.matrix_flops("int8") == 84 * 1_740_000_000 * 2048


@pytest.mark.parametrize(
    ("version", "takes"),
    [((6, 1), set()), ((7, 0), {"fp16"}), ((7, 5), {"fp16"}), ((8, 0), {"fp16", "tf32", "bf16"}),
     ((8, 9), {"fp16", "tf32", "bf16", "fp8"}), ((12, 0), {"fp16", "tf32", "bf16", "fp8"})],
)  # fmt: skip
def test_formats_by_compute_capability(version: tuple[int, int], takes: set[str]) -> None:
    assert {one for one in ("fp16", "tf32", "bf16", "fp8") if tensor_cores_take(version, one)} == takes
