"""What a device of a profile can do at best, for the number format and the units actually used."""

from __future__ import annotations

from stepscope.analysis.kernels import KernelGroup
from stepscope.hardware.devices import lookup
from stepscope.hardware.figures import Figures, peaks_of_figures, tensor_cores_take
from stepscope.hardware.peaks import DevicePeaks
from stepscope.names.kernels import Tri
from stepscope.names.purposes import vendor_of_device
from stepscope.trace.trace import Device, Trace


def device_peaks(trace: Trace, device: int) -> DevicePeaks | None:
    """The peaks of a device; None where nothing recorded tells them."""
    described = trace.info.device(device)
    return None if described is None else peaks_of(described)


def peaks_of(device: Device) -> DevicePeaks | None:
    """The peaks of a device by its name, else by the figures that were recorded of it."""
    name = device.name or ""
    if device.kind != "gpu":
        return lookup(name, device.compute_capability)
    known = lookup(name, device.compute_capability)
    if known is not None or not _may_be_nvidia(device):
        return known
    return peaks_of_figures(
        name,
        Figures(
            device.compute_capability,
            device.multiprocessors,
            device.clock_khz,
            device.memory_bytes,
            device.memory_bandwidth,
        ),
    )


def _may_be_nvidia(device: Device) -> bool:
    """Whether a compute capability is on NVIDIA's scale: Kineto writes AMD's versions as one, too."""
    return vendor_of_device(device.name or "") in (None, "NVIDIA")


def takes(device: Device | None, precision: str) -> bool | None:
    """Whether the matrix units of a device take a format; None where nothing recorded tells."""
    known = None if device is None else peaks_of(device)
    if known is not None:
        return known.supports(precision)
    if device is None or device.compute_capability is None or not _may_be_nvidia(device):
        return None
    return tensor_cores_take(device.compute_capability, precision)


def on_matrix_units(group: KernelGroup) -> bool:
    """Whether a kernel is held against the matrix units: it runs on them, or could and its name does not tell."""
    return group.traits.eligible and group.traits.tensor_core is not Tri.NO


def peak_flops(peaks: DevicePeaks, group: KernelGroup, *, matrix: bool | None = None) -> int | None:
    """The peak for a kernel's operands on the units it uses, in operations per second; None where not known. ``matrix``
    says whether these are the matrix units, where more is known than the kernel's name.

    Ordinary lanes compute 16-bit data in fp32 outside of matrix products (PyTorch's opmath_type, XLA's float
    normalisation), so fp32's peak is theirs.
    """
    if group.precision is None:
        return None
    if on_matrix_units(group) if matrix is None else matrix:
        return peaks.matrix_flops(group.precision)
    if group.traits.eligible:
        return peaks.vector_flops(group.precision)
    return peaks.vector_flops("fp64" if group.precision == "fp64" else "fp32")


def best_flops(peaks: DevicePeaks, precision: str) -> int | None:
    """The most the device does with operands of a format, on whichever units; None where not known."""
    rates = [peaks.matrix_flops(precision), peaks.vector_flops(precision)]
    return max((rate for rate in rates if rate is not None), default=None)
