"""Peaks of AMD Instinct accelerators, by the names HIP reports.

An MI250 or MI250X module holds two dies, and HIP shows each as a device of its own: half the data sheet's
figures. Link bandwidths add up the Infinity Fabric links between accelerators, both directions.
"""

from __future__ import annotations

from stepscope.hardware import figures
from stepscope.hardware.figures import Figures, Version
from stepscope.hardware.peaks import DeviceMemory, DevicePeaks, Unit, build
from stepscope.regex import regex

_MI100 = "AMD Instinct MI100 accelerator data sheet"
_MI210 = "AMD Instinct MI210 accelerator data sheet"
_MI250 = "AMD Instinct MI250 accelerator data sheet, per die (half the module)"
_MI250X = "AMD Instinct MI250X accelerator data sheet, per die (half the module)"
_MI300A = "AMD Instinct MI300A APU data sheet"
_MI300X = "AMD Instinct MI300X accelerator data sheet"
_MI325X = "AMD Instinct MI325X accelerator data sheet"
_MI350X = "AMD Instinct MI350X GPU data sheet"
_MI355X = "AMD Instinct MI355X GPU data sheet"

_FAMILIES: dict[Version | None, str] = {
    (9, 4): "AMD Instinct MI300 series",
    (9, 5): "AMD Instinct MI350 series",
}
"""By the version of the instruction set: gfx942 and gfx950 are of 9.4 and 9.5 (LLVM, User Guide for AMDGPU Backend,
table of processors); 9.0 is of anything from Vega to MI200. The products of a series differ in their peaks: none are
looked up for one."""


_ARCHITECTURE = regex(r"gfx(\d{1,2})([0-9a-f])[0-9a-f](?::.*)?")


def version_of(architecture: str) -> Version | None:
    """The version of the instruction set by its name, which ROCm's newer collectors write as that of the device.

    >>> version_of("gfx942"), version_of("gfx90a:sramecc+:xnack-"), version_of("AMD Instinct MI300X")
    ((9, 4), (9, 0), None)
    """
    match = _ARCHITECTURE.fullmatch(architecture)
    return (int(match[1]), int(match[2], 16)) if match else None


def called(known: Figures) -> str:
    """What a GPU is called whose name is not recorded: the only product of its figures, else its series.

    >>> called(Figures((9, 4))), called(Figures((9, 0)))
    ('AMD Instinct MI300 series', 'AMD GPU')
    """
    return figures.product(figures.AMD, known) or _FAMILIES.get(known.version, "AMD GPU")


_MI300X_MATRIX = {
    "fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9,
    "int8": 2614.9,
}  # fmt: skip
_MI300X_VECTOR = {"fp64": 81.7, "fp32": 163.4}

DEVICES: tuple[tuple[str, DevicePeaks], ...] = tuple(
    (pattern, build(name, "AMD", capability, unit, memory))
    for pattern, name, capability, unit, memory in (
        (r"MI100", "Instinct MI100", (9, 0),
         Unit(_MI100, {"fp32": 46.1, "fp16": 184.6, "bf16": 92.3, "int8": 184.6},
              {"fp64": 11.5, "fp32": 23.1}),
         DeviceMemory(_MI100, 1228.8, 32)),
        (r"MI210", "Instinct MI210", (9, 0),
         Unit(_MI210, {"fp64": 45.3, "fp32": 45.3, "fp16": 181, "bf16": 181, "int8": 181},
              {"fp64": 22.6, "fp32": 22.6}),
         DeviceMemory(_MI210, 1638.4, 64)),
        (r"MI250", "Instinct MI250 die", (9, 0),
         Unit(_MI250, {"fp64": 45.25, "fp32": 45.25, "fp16": 181.05, "bf16": 181.05, "int8": 181.05},
              {"fp64": 22.65, "fp32": 22.65}),
         DeviceMemory(_MI250, 1638.4, 64)),
        (r"MI250X", "Instinct MI250X die", (9, 0),
         Unit(_MI250X, {"fp64": 47.85, "fp32": 47.85, "fp16": 191.5, "bf16": 191.5, "int8": 191.5},
              {"fp64": 23.95, "fp32": 23.95}),
         DeviceMemory(_MI250X, 1638.4, 64)),
        (r"MI300A", "Instinct MI300A", (9, 4),
         Unit(_MI300A,
              {"fp64": 122.6, "fp32": 122.6, "tf32": 490.3, "fp16": 980.6, "bf16": 980.6, "fp8": 1961.2,
               "int8": 1961.2},
              {"fp64": 61.3, "fp32": 122.6}),
         DeviceMemory(_MI300A, 5300, 128)),
        (r"MI300X(?: VF)?", "Instinct MI300X", (9, 4), Unit(_MI300X, _MI300X_MATRIX, _MI300X_VECTOR),
         DeviceMemory(_MI300X, 5300, 192, 896)),
        (r"MI325X", "Instinct MI325X", (9, 4), Unit(_MI325X, _MI300X_MATRIX, _MI300X_VECTOR),
         DeviceMemory(_MI325X, 6000, 256, 896)),
        (r"MI350X", "Instinct MI350X", (9, 5),
         Unit(_MI350X,
              {"fp64": 72.1, "fp32": 144.2, "fp16": 2306.9, "bf16": 2306.9, "fp8": 4613.7, "fp4": 9227.5,
               "int8": 4613.7},
              {"fp64": 72.1, "fp32": 144.2}),
         DeviceMemory(_MI350X, 8000, 288, 1075)),
        (r"MI355X", "Instinct MI355X", (9, 5),
         Unit(_MI355X,
              {"fp64": 78.6, "fp32": 157.3, "fp16": 2516.6, "bf16": 2516.6, "fp8": 5033.2, "fp4": 10066.3,
               "int8": 5033.2},
              {"fp64": 78.6, "fp32": 157.3}),
         DeviceMemory(_MI355X, 8000, 288, 1075)),
    ))  # fmt: skip
"""Name patterns (without "AMD", "Radeon" and "Instinct") and the device they stand for."""
