"""Devices by what a profile records of them beside, or instead of, their names: clock, multiprocessors, memory.

XPlane files hold such figures as statistics of a GPU's plane (OpenXLA, xla/backends/profiler/gpu: cupti_collector.cc
and rocm_collector.cc). They name a product where only one has them. Of NVIDIA's GPUs they also give peaks: operations
per clock and multiprocessor, which are the same for all products of a chip, times both. These hold at the highest
clock that the device reports, and are so the most it does. Rates that differ among the products of one chip (GeForce
boards multiply 16 bits at half the rate of others, export models multiply slower) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from stepscope.hardware.limits import BANDWIDTH_FITS_WITHIN, MEMORY_FITS_FROM
from stepscope.hardware.peaks import DevicePeaks, Figure, Precision
from stepscope.record import record

Version = tuple[int, int]
_GIB = 1 << 30
_GIGA = 1_000_000_000


@record
class Figures:
    """What is recorded of a device; None for what is not."""

    version: Version | None = None
    """The compute capability of NVIDIA, the version of AMD's instruction set."""
    multiprocessors: int | None = None
    clock_khz: int | None = None
    memory_bytes: int | None = None
    memory_bandwidth: int | None = None
    """Bytes per second; two per clock and lane of the bus, which is half of what HBM3 does."""


@record
class _Product:
    """A product, or products that do not differ in what is recorded, and the figures that only they have."""

    name: str
    version: Version
    multiprocessors: int
    gib: int
    source: str
    gb_s: float | None = None
    mhz: int | None = None

    def fits(self, figures: Figures) -> bool:
        size, rate = figures.memory_bytes or 0, figures.memory_bandwidth or 0
        return (
            (self.version, self.multiprocessors) == (figures.version, figures.multiprocessors)
            and MEMORY_FITS_FROM * self.gib * _GIB <= size <= self.gib * _GIB
            and (self.gb_s is None or abs(rate / (self.gb_s * _GIGA) - 1) <= BANDWIDTH_FITS_WITHIN)
            and (self.mhz is None or self.mhz * 1000 == figures.clock_khz)
        )


_V100 = "NVIDIA Tesla V100 GPU Architecture white paper; NVIDIA V100 Tensor Core GPU data sheet"
_A100 = "NVIDIA A100 Tensor Core GPU Architecture white paper; NVIDIA A100 and A800 data sheets"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture white paper"
_ADA = "NVIDIA Ada GPU Architecture white paper"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture white paper; NVIDIA H100 and H800 data sheets"

NVIDIA: tuple[_Product, ...] = (
    _Product("NVIDIA V100 16GB", (7, 0), 80, 16, _V100, 900),
    _Product("NVIDIA V100 32GB", (7, 0), 80, 32, _V100, 900),
    _Product("Tesla V100S-PCIE-32GB", (7, 0), 80, 32, _V100, 1134),
    _Product("Tesla T4", (7, 5), 40, 16, "NVIDIA Turing GPU Architecture white paper; NVIDIA T4 product brief", 320),
    _Product("NVIDIA A100 or A800 40GB", (8, 0), 108, 40, _A100, 1555),
    _Product("NVIDIA A100 or A800 80GB", (8, 0), 108, 80, _A100),
    _Product("NVIDIA A30", (8, 0), 56, 24, "NVIDIA A30 Tensor Core GPU product brief", 933),
    _Product("NVIDIA A10", (8, 6), 72, 24, "NVIDIA A10 Tensor Core GPU data sheet (9,216 cores)", 600),
    _Product("NVIDIA A10G", (8, 6), 80, 24, "NVIDIA A10G Tensor Core GPU data sheet (AWS)", 600),
    _Product("NVIDIA A40", (8, 6), 84, 48, _GA102, 696),
    _Product("NVIDIA RTX A6000", (8, 6), 84, 48, _GA102, 768),
    _Product("NVIDIA GeForce RTX 3090", (8, 6), 82, 24, _GA102, 936),
    _Product("NVIDIA L4", (8, 9), 58, 24, "NVIDIA L4 Tensor Core GPU product brief (7,424 cores)", 300),
    _Product("NVIDIA L40 or L40S", (8, 9), 142, 48, "NVIDIA L40 and L40S product briefs (18,176 cores)", 864),
    _Product("NVIDIA RTX 6000 Ada Generation", (8, 9), 142, 48, _ADA, 960),
    _Product("NVIDIA GeForce RTX 4090", (8, 9), 128, 24, _ADA, 1008),
    _Product("NVIDIA H100 or H800 80GB HBM3", (9, 0), 132, 80, _H100, 3350),
    _Product("NVIDIA H100 or H800 PCIe", (9, 0), 114, 80, _H100, 2039),
)
AMD: tuple[_Product, ...] = (
    _Product("AMD Instinct MI100", (9, 0), 120, 32, "AMD Instinct MI100 accelerator data sheet"),
    _Product("AMD Instinct MI250X", (9, 0), 110, 64, "AMD Instinct MI250X accelerator data sheet, per die"),
    _Product("AMD Instinct MI210 or MI250", (9, 0), 104, 64, "AMD Instinct MI210 and MI250 accelerator data sheets"),
    _Product("AMD Instinct MI300X", (9, 4), 304, 192, "AMD Instinct MI300X accelerator data sheet"),
    _Product("AMD Instinct MI325X", (9, 4), 304, 256, "AMD Instinct MI325X accelerator data sheet"),
    _Product("AMD Instinct MI300A", (9, 4), 228, 128, "AMD Instinct MI300A APU data sheet"),
    _Product("AMD Instinct MI350X", (9, 5), 256, 288, "AMD Instinct MI350X GPU data sheet", mhz=2200),
    _Product("AMD Instinct MI355X", (9, 5), 256, 288, "AMD Instinct MI355X GPU data sheet", mhz=2400),
)


def product(products: tuple[_Product, ...], figures: Figures) -> str | None:
    """The name of the only product of a vendor with these figures; None where it is not told.

    >>> product(AMD, Figures((9, 4), 304, 2_100_000, 206_141_652_992, 2_662_400_000_000))
    'AMD Instinct MI300X'
    """
    names = [one.name for one in products if one.fits(figures)]
    return names[0] if len(names) == 1 else None


@record
class _Chip:
    """What each multiprocessor of a chip does per clock, in operations (a fused multiply-add is two)."""

    source: str
    multiprocessors: frozenset[int]
    """Of the products that do as much; empty where all do."""
    matrix: Mapping[str, int]
    vector: Mapping[str, int]
    formats: tuple[str, ...] = ()
    """Formats that the tensor cores take at rates that differ among products."""


_PER_CLOCK: dict[Version, _Chip] = {
    (7, 0): _Chip(
        "NVIDIA Tesla V100 GPU Architecture white paper", frozenset({80}),
        {"fp16": 1024}, {"fp64": 64, "fp32": 128, "fp16": 256},
    ),
    (8, 0): _Chip(
        "NVIDIA A100 Tensor Core GPU Architecture white paper", frozenset({56, 108}),
        {"fp64": 128, "tf32": 1024, "fp16": 2048, "bf16": 2048, "int8": 4096},
        {"fp64": 64, "fp32": 128, "fp16": 512, "bf16": 256},
    ),
    (8, 6): _Chip(_GA102, frozenset(), {"int8": 2048}, {"fp32": 256}, ("tf32", "fp16", "bf16")),
    (8, 9): _Chip(_ADA, frozenset(), {"int8": 2048}, {"fp32": 256}, ("tf32", "fp16", "bf16", "fp8")),
    # H800 and H20 do fp64 slower, and H20 (78 multiprocessors) everything.
    (9, 0): _Chip(
        "NVIDIA H100 Tensor Core GPU Architecture white paper", frozenset({114, 132}),
        {"tf32": 2048, "fp16": 4096, "bf16": 4096, "fp8": 8192, "int8": 8192},
        {"fp32": 256, "fp16": 512, "bf16": 512}, ("fp64",),
    ),
    (12, 0): _Chip(
        "NVIDIA RTX Blackwell GPU Architecture white paper", frozenset(),
        {"int8": 2048}, {"fp32": 256}, ("tf32", "fp16", "bf16", "fp8", "fp4"),
    ),
}  # fmt: skip
"""By compute capability. None of 7.5, which boards with and without tensor cores have."""


def peaks_of_figures(name: str, figures: Figures) -> DevicePeaks | None:
    """The peaks of a GPU of NVIDIA by what is recorded of it; None where that tells nothing.

    >>> peaks_of_figures("GPU", Figures((7, 0), 80, 1_530_000)).matrix_flops("fp16")
    125337600000000
    """
    chip, count = _PER_CLOCK.get(figures.version or (0, 0)), figures.multiprocessors
    if chip is None or count is None or figures.clock_khz is None:
        return None
    if chip.multiprocessors and count not in chip.multiprocessors:
        return None
    told = f"{count} multiprocessors at {figures.clock_khz / 1e6:.2f} GHz as recorded, operations per clock: "
    per_clock = count * figures.clock_khz * 1000
    size, rate = figures.memory_bytes, figures.memory_bandwidth
    return DevicePeaks(
        name=name,
        vendor="NVIDIA",
        compute_capability=figures.version,
        matrix=_rates(chip.matrix, per_clock, told + chip.source),
        vector=_rates(chip.vector, per_clock, told + chip.source),
        matrix_formats=frozenset(Precision(key) for key in (*chip.matrix, *chip.formats)),
        memory_bandwidth=Figure(rate, "memory clock and bus as the profile recorded them") if rate else None,
        memory_bytes=Figure(size, "memory as the profile recorded it") if size else None,
        link_bandwidth=None,
    )


def _rates(rates: Mapping[str, int], per_clock: int, source: str) -> Mapping[Precision, Figure]:
    return MappingProxyType({Precision(key): Figure(rate * per_clock, source) for key, rate in rates.items()})


_SINCE: tuple[tuple[str, Version], ...] = (
    ("fp16", (7, 0)),
    ("tf32", (8, 0)),
    ("bf16", (8, 0)),
    ("fp8", (8, 9)),
)


def tensor_cores_take(version: Version, precision: str) -> bool:
    """Whether tensor cores of a compute capability take a format (NVIDIA CUDA C++ Programming Guide, "Compute
    Capabilities", table of tensor core data types).

    >>> tensor_cores_take((7, 5), "bf16"), tensor_cores_take((8, 6), "bf16")
    (False, True)
    """
    return any(format_ == precision and version >= since for format_, since in _SINCE)
