"""What a device can do at best, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from stepscope.record import record

_TERA = 1_000_000_000_000
_GIGA = 1_000_000_000


class Precision(StrEnum):
    """The number formats peaks are quoted for; members compare equal to their text."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"
    INT8 = "int8"


@record
class Figure:
    """A number and the title of the document it stands in."""

    value: int
    source: str


@record
class DevicePeaks:
    """Vendor peaks of one device as a program sees it.

    Rates are dense (a figure quoted with sparsity is halved) operations per second, a fused multiply-add
    counting two; for 16-bit and 8-bit inputs they are the rates with 32-bit accumulation. ``matrix`` are the
    tensor or matrix units, ``vector`` the ordinary lanes. A format that is missing was not found in a source;
    whether the matrix units take it at all is said by ``matrix_formats``. ``memory_bytes`` is nominal: what a
    program can allocate is a little less. ``link_bandwidth`` is the total between devices, both directions
    together, as data sheets quote it, and None where the link is an option. Where a module holds several
    devices of the runtime (two dies, two cores) the figures are those of one, and the source says so.
    """

    name: str
    vendor: str
    compute_capability: tuple[int, int] | None
    matrix: Mapping[Precision, Figure]
    vector: Mapping[Precision, Figure]
    matrix_formats: frozenset[Precision]
    memory_bandwidth: Figure | None
    memory_bytes: Figure | None
    link_bandwidth: Figure | None

    @property
    def has_tensor_cores(self) -> bool:
        """Whether the device has tensor or matrix units."""
        return bool(self.matrix_formats)

    def supports(self, precision: str) -> bool:
        """Whether the tensor or matrix units take this format."""
        return precision in self.matrix_formats

    def matrix_flops(self, precision: str) -> int | None:
        """Peak of the tensor or matrix units in operations per second, None where not known."""
        return _value(self.matrix, precision)

    def vector_flops(self, precision: str) -> int | None:
        """Peak of the ordinary lanes in operations per second, None where not known."""
        return _value(self.vector, precision)


def _value(figures: Mapping[Precision, Figure], precision: str) -> int | None:
    figure = next((figure for key, figure in figures.items() if key == precision), None)
    return figure.value if figure else None


@record
class Unit:
    """A chip's compute: rates in TFLOP/s (TOP/s) by format, and formats taken at a rate no source gives."""

    source: str
    matrix: Mapping[str, float]
    vector: Mapping[str, float]
    formats: tuple[str, ...] = ()


@record
class DeviceMemory:
    """A device's memory: bandwidth in GB/s (decimal), size in GiB; ``None`` where no source was found."""

    source: str
    bandwidth_gb_s: float | None
    size_gib: float | None
    link_gb_s: float | None = None


def build(name: str, vendor: str, capability: tuple[int, int] | None, unit: Unit, memory: DeviceMemory) -> DevicePeaks:
    """Make the peaks of a device from its chip and its memory."""
    return DevicePeaks(
        name=name,
        vendor=vendor,
        compute_capability=capability,
        matrix=_rates(unit.matrix, unit.source),
        vector=_rates(unit.vector, unit.source),
        matrix_formats=frozenset(Precision(key) for key in (*unit.matrix, *unit.formats)),
        memory_bandwidth=_figure(memory.bandwidth_gb_s, _GIGA, memory.source),
        memory_bytes=_figure(memory.size_gib, 1 << 30, memory.source),
        link_bandwidth=_figure(memory.link_gb_s, _GIGA, memory.source),
    )


def _rates(tera: Mapping[str, float], source: str) -> Mapping[Precision, Figure]:
    return MappingProxyType({Precision(key): Figure(round(value * _TERA), source) for key, value in tera.items()})


def _figure(value: float | None, scale: int, source: str) -> Figure | None:
    return None if value is None else Figure(round(value * scale), source)
