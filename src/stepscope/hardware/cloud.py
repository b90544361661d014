"""Peaks of accelerators that only their makers' clouds offer, by the names JAX and Neuron report.

A TPU v2, v3 or 7x chip holds two TensorCores that the runtime shows as two devices: half the chip's figures.
The two cores of v4 and v5p act as one device.
"""

from __future__ import annotations

from stepscope.hardware.peaks import DeviceMemory, DevicePeaks, Unit, build

_DSA = "A Domain-Specific Supercomputer for Training Deep Neural Networks (CACM 2020), per core (half a chip)"
_V4 = "Google Cloud TPU documentation, TPU v4"
_V5E = "Google Cloud TPU documentation, TPU v5e"
_V5P = "Google Cloud TPU documentation, TPU v5p"
_V6E = "Google Cloud TPU documentation, TPU v6e"
_TPU7X = "Google Cloud TPU documentation, TPU7x (Ironwood), per core (half a chip)"
_TRN1 = "AWS Neuron documentation, Trainium architecture"
_TRN2 = "AWS Neuron documentation, Trainium2 architecture"
_GIB_S = 1.073741824

DEVICES: tuple[tuple[str, DevicePeaks], ...] = tuple(
    (pattern, build(name, vendor, None, unit, memory))
    for pattern, name, vendor, unit, memory in (
        (r"TPU v2", "TPU v2 core", "Google", Unit(_DSA, {"bf16": 23}, {}), DeviceMemory(_DSA, 350, 8)),
        (r"TPU v3", "TPU v3 core", "Google", Unit(_DSA, {"bf16": 61.5}, {}), DeviceMemory(_DSA, 450, 16)),
        (r"TPU v4", "TPU v4", "Google", Unit(_V4, {"bf16": 275, "int8": 275}, {}), DeviceMemory(_V4, 1200, 32)),
        (r"TPU v5(?: lite|e)", "TPU v5e", "Google", Unit(_V5E, {"bf16": 197, "int8": 393}, {}),
         DeviceMemory(_V5E, 819, 16, 400)),
        (r"TPU v5p?", "TPU v5p", "Google", Unit(_V5P, {"bf16": 459}, {}, ("int8",)),
         DeviceMemory(_V5P, 2765, 95, 1200)),
        (r"TPU v6(?: lite|e)", "TPU v6e", "Google", Unit(_V6E, {"bf16": 918, "int8": 1836}, {}, ("fp8",)),
         DeviceMemory(_V6E, 1638, 32, 800)),
        (r"TPU ?(?:v7x?|7x)", "TPU7x core", "Google", Unit(_TPU7X, {"bf16": 1153.5, "fp8": 2307}, {}),
         DeviceMemory(_TPU7X, 3690, 96)),
        (r"Trainium1?|trn1", "Trainium", "AWS",
         Unit(_TRN1, {"fp32": 47.5, "tf32": 190, "fp16": 190, "bf16": 190, "fp8": 190, "int8": 380}, {}),
         DeviceMemory(_TRN1, 820 * _GIB_S, 32)),
        (r"Trainium2|trn2", "Trainium2", "AWS",
         Unit(_TRN2, {"fp32": 181, "tf32": 667, "fp16": 667, "bf16": 667, "fp8": 1299}, {}),
         DeviceMemory(_TRN2, None, 96)),
    ))  # fmt: skip
"""Name patterns and the device they stand for."""
