"""What a device of a profile can do at best, for the number format and the units actually used."""

from __future__ import annotations

from stepscope.analysis.kernels import KernelGroup
from stepscope.hardware.devices import lookup
from stepscope.hardware.peaks import DevicePeaks
from stepscope.names.kernels import Tri
from stepscope.trace.trace import Trace


def device_peaks(trace: Trace, device: int) -> DevicePeaks | None:
    """The peaks of a device; None for one that is not named or not in the tables."""
    described = next((d for d in trace.info.devices if d.id == device), None)
    if described is None or described.name is None:
        return None
    return lookup(described.name, described.compute_capability)


def on_matrix_units(group: KernelGroup) -> bool:
    """Whether a kernel is held against the matrix units: it runs on them, or could and its name does not tell."""
    return group.traits.eligible and group.traits.tensor_core is not Tri.NO


def peak_flops(peaks: DevicePeaks, group: KernelGroup) -> int | None:
    """The peak for a kernel's operands on the units it uses, in operations per second; None where not known.

    Ordinary lanes compute 16-bit data in fp32 outside of matrix products (PyTorch's opmath_type, XLA's float
    normalisation), so fp32's peak is theirs.
    """
    if group.precision is None:
        return None
    if on_matrix_units(group):
        return peaks.matrix_flops(group.precision)
    if group.traits.eligible:
        return peaks.vector_flops(group.precision)
    return peaks.vector_flops("fp64" if group.precision == "fp64" else "fp32")


def best_flops(peaks: DevicePeaks, precision: str) -> int | None:
    """The most the device does with operands of a format, on whichever units; None where not known."""
    rates = [peaks.matrix_flops(precision), peaks.vector_flops(precision)]
    return max((rate for rate in rates if rate is not None), default=None)
