"""Peaks of NVIDIA GPUs, by the names CUDA reports.

All tensor rates are dense: where a data sheet quotes a figure "with sparsity" half of it stands here. GeForce
boards multiply 16-bit and fp8 inputs at half rate when they accumulate in 32 bits, as frameworks do; that
rate is given. Memory is in GiB although data sheets write GB.
"""

from __future__ import annotations

from stepscope.hardware.peaks import DeviceMemory, DevicePeaks, Unit, build

_V100 = "NVIDIA V100 Tensor Core GPU data sheet"
_A100 = "NVIDIA A100 Tensor Core GPU data sheet"
_A100_PAPER = "NVIDIA A100 Tensor Core GPU Architecture white paper"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture white paper"
_ADA = "NVIDIA Ada GPU Architecture white paper"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet"
_H200 = "NVIDIA H200 Tensor Core GPU data sheet"
_GH200 = "NVIDIA GH200 Grace Hopper Superchip data sheet"
_HGX = "NVIDIA HGX platform specifications, per GPU (an eighth of the board)"
_DGX_B200 = "NVIDIA DGX B200 data sheet, per GPU (an eighth of the system)"
_BLACKWELL = "NVIDIA Blackwell Architecture technical brief"
_GB200 = "NVIDIA GB200 NVL72 specifications, per GPU (a 72nd of the rack)"
_GB300 = "NVIDIA GB300 NVL72 specifications, per GPU (a 72nd of the rack)"

_RTX_BLACKWELL = "NVIDIA RTX Blackwell GPU Architecture white paper"

_GV100_SXM = Unit(f"{_A100_PAPER} (V100 column)", {"fp16": 125}, {"fp64": 7.8, "fp32": 15.7, "fp16": 31.4})
_GV100_DGXS = Unit(
    "NVIDIA DGX Station data sheet (500 tensor TFLOPS of four GPUs: the clock, so the vector rates, of SXM2)",
    {"fp16": 125},
    {"fp64": 7.8, "fp32": 15.7, "fp16": 31.4},
)
_GA100 = Unit(
    _A100_PAPER,
    {"fp64": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624},
    {"fp64": 9.7, "fp32": 19.5, "fp16": 78, "bf16": 39},
)
_GH100_SXM = Unit(
    "NVIDIA H100 Tensor Core GPU Architecture white paper (SXM5)",
    {"fp64": 66.9, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9},
    {"fp64": 33.5, "fp32": 66.9, "fp16": 133.8, "bf16": 133.8},
)
_GH100_NVL_RATES = {"fp64": 60, "tf32": 417.5, "fp16": 835.5, "bf16": 835.5, "fp8": 1670.5, "int8": 1670.5}
_GH100_NVL_VECTOR = {"fp64": 30, "fp32": 60}

_V100_16 = DeviceMemory(_V100, 900, 16, 300)
_V100_32 = DeviceMemory(_V100, 900, 32, 300)

DEVICES: tuple[tuple[str, DevicePeaks], ...] = tuple(
    (pattern, build(name, "NVIDIA", capability, unit, memory))
    for pattern, name, capability, unit, memory in (
        (r"V100-SXM2-16GB", "V100 SXM2 16GB", (7, 0), _GV100_SXM, _V100_16),
        (r"V100-SXM2-32GB", "V100 SXM2 32GB", (7, 0), _GV100_SXM, _V100_32),
        (r"V100-DGXS-16GB", "V100 DGX Station 16GB", (7, 0), _GV100_DGXS, DeviceMemory(_V100, 900, 16)),
        (r"V100-DGXS-32GB", "V100 DGX Station 32GB", (7, 0), _GV100_DGXS, DeviceMemory(_V100, 900, 32)),
        (r"V100-PCIE-16GB", "V100 PCIe 16GB", (7, 0),
         Unit(_V100, {"fp16": 112}, {"fp64": 7, "fp32": 14}), DeviceMemory(_V100, 900, 16)),
        (r"V100-PCIE-32GB", "V100 PCIe 32GB", (7, 0),
         Unit(_V100, {"fp16": 112}, {"fp64": 7, "fp32": 14}), DeviceMemory(_V100, 900, 32)),
        (r"V100S-PCIE-32GB", "V100S PCIe 32GB", (7, 0),
         Unit(_V100, {"fp16": 130}, {"fp64": 8.2, "fp32": 16.4}), DeviceMemory(_V100, 1134, 32)),
        (r"T4", "T4", (7, 5),
         Unit("NVIDIA T4 Tensor Core GPU data sheet", {"fp16": 65, "int8": 130}, {"fp32": 8.1}),
         DeviceMemory("NVIDIA T4 product brief", 320, 16)),
        (r"A10", "A10", (8, 6),
         Unit("NVIDIA A10 Tensor Core GPU data sheet",
              {"tf32": 62.5, "fp16": 125, "bf16": 125, "int8": 250}, {"fp32": 31.2}),
         DeviceMemory("NVIDIA A10 Tensor Core GPU data sheet", 600, 24)),
        (r"A10G", "A10G", (8, 6),
         Unit("NVIDIA A10G Tensor Core GPU data sheet (AWS)",
              {"tf32": 35, "fp16": 70, "bf16": 70, "int8": 140}, {"fp32": 35}),
         DeviceMemory("NVIDIA A10G Tensor Core GPU data sheet (AWS)", 600, 24)),
        (r"A30", "A30", (8, 0),
         Unit("NVIDIA A30 Tensor Core GPU data sheet",
              {"fp64": 10.3, "tf32": 82, "fp16": 165, "bf16": 165, "int8": 330}, {"fp64": 5.2, "fp32": 10.3}),
         DeviceMemory("NVIDIA A30 Tensor Core GPU data sheet", 933, 24)),
        (r"A40", "A40", (8, 6),
         Unit("NVIDIA A40 GPU data sheet",
              {"tf32": 74.8, "fp16": 149.7, "bf16": 149.7, "int8": 299.3}, {"fp32": 37.4}),
         DeviceMemory("NVIDIA A40 GPU data sheet", 696, 48)),
        # Boards with this name have the PCI id of the SXM4 40 GB board (NVIDIA driver, supported devices).
        (r"A100-(?:SXM4?-40GB|PG509-200)", "A100 SXM4 40GB", (8, 0), _GA100, DeviceMemory(_A100, 1555, 40, 600)),
        (r"A100-SXM4?-80GB", "A100 SXM4 80GB", (8, 0), _GA100, DeviceMemory(_A100, 2039, 80, 600)),
        (r"A100-PCIE-40GB|A100 40GB PCIe", "A100 PCIe 40GB", (8, 0), _GA100, DeviceMemory(_A100, 1555, 40)),
        (r"A100-PCIE-80GB|A100 80GB PCIe", "A100 PCIe 80GB", (8, 0), _GA100, DeviceMemory(_A100, 1935, 80)),
        (r"RTX 3090", "GeForce RTX 3090", (8, 6),
         Unit(_GA102, {"tf32": 35.6, "fp16": 71, "bf16": 71, "int8": 284},
              {"fp32": 35.6, "fp16": 35.6, "bf16": 35.6}),
         DeviceMemory(_GA102, 936, 24)),
        # No RTX 3080: boards of 10 and of 12 GB bear that name and differ in bandwidth and multiprocessors.
        (r"RTX 3070", "GeForce RTX 3070", (8, 6),
         Unit(_GA102, {"tf32": 20.3, "fp16": 40.6, "bf16": 40.6, "int8": 162.6},
              {"fp32": 20.3, "fp16": 20.3, "bf16": 20.3}),
         DeviceMemory(_GA102, 448, 8)),
        (r"RTX A6000", "RTX A6000", (8, 6),
         Unit(_GA102, {"tf32": 77.4, "fp16": 154.8, "bf16": 154.8, "int8": 309.7},
              {"fp32": 38.7, "fp16": 38.7, "bf16": 38.7}),
         DeviceMemory(_GA102, 768, 48)),
        (r"RTX 4090", "GeForce RTX 4090", (8, 9),
         Unit(_ADA, {"tf32": 82.6, "fp16": 165.2, "bf16": 165.2, "fp8": 330.3, "int8": 660.6},
              {"fp32": 82.6, "fp16": 82.6, "bf16": 82.6}),
         DeviceMemory(_ADA, 1008, 24)),
        (r"RTX 4080", "GeForce RTX 4080", (8, 9),
         Unit(_ADA, {"tf32": 48.7, "fp16": 97.5, "bf16": 97.5, "fp8": 194.9, "int8": 389.9},
              {"fp32": 48.7, "fp16": 48.7, "bf16": 48.7}),
         DeviceMemory(_ADA, 716.8, 16)),
        (r"RTX 6000 Ada Generation", "RTX 6000 Ada", (8, 9),
         Unit("NVIDIA RTX 6000 Ada Generation data sheet (1,457 sparse fp8 tensor TFLOPS)",
              {"tf32": 182.1, "fp16": 364.2, "bf16": 364.2, "fp8": 728.5, "int8": 728.5}, {"fp32": 91.1}),
         DeviceMemory("NVIDIA RTX 6000 Ada Generation data sheet", 960, 48)),
        (r"L4", "L4", (8, 9),
         Unit("NVIDIA L4 Tensor Core GPU data sheet",
              {"tf32": 60, "fp16": 121, "bf16": 121, "fp8": 242.5, "int8": 242.5}, {"fp32": 30.3}),
         DeviceMemory("NVIDIA L4 Tensor Core GPU data sheet", 300, 24)),
        (r"L40", "L40", (8, 9),
         Unit("NVIDIA L40 GPU data sheet",
              {"tf32": 90.5, "fp16": 181.05, "bf16": 181.05, "fp8": 362, "int8": 362}, {"fp32": 90.5}),
         DeviceMemory("NVIDIA L40 GPU data sheet", 864, 48)),
        (r"L40S", "L40S", (8, 9),
         Unit("NVIDIA L40S GPU data sheet",
              {"tf32": 183, "fp16": 362.05, "bf16": 362.05, "fp8": 733, "int8": 733}, {"fp32": 91.6}),
         DeviceMemory("NVIDIA L40S GPU data sheet", 864, 48)),
        (r"H100 80GB HBM3|H100-SXM5-80GB", "H100 SXM5 80GB", (9, 0), _GH100_SXM,
         DeviceMemory(_H100, 3350, 80, 900)),
        (r"H100 PCIe", "H100 PCIe", (9, 0),
         Unit(_H100, {"fp64": 51, "tf32": 378, "fp16": 756.5, "bf16": 756.5, "fp8": 1513, "int8": 1513},
              {"fp64": 26, "fp32": 51}),
         DeviceMemory(_H100, 2000, 80)),
        (r"H100 NVL", "H100 NVL", (9, 0), Unit(_H100, _GH100_NVL_RATES, _GH100_NVL_VECTOR),
         DeviceMemory(_H100, 3900, 94)),
        (r"H200", "H200 SXM", (9, 0), _GH100_SXM, DeviceMemory(_H200, 4800, 141, 900)),
        (r"H200 NVL", "H200 NVL", (9, 0), Unit(_H200, _GH100_NVL_RATES, _GH100_NVL_VECTOR),
         DeviceMemory(_H200, 4800, 141)),
        (r"GH200 (?:480|120)GB", "GH200 96GB HBM3", (9, 0), _GH100_SXM, DeviceMemory(_GH200, 4000, 96)),
        (r"GH200 144G HBM3e", "GH200 144GB HBM3e", (9, 0), _GH100_SXM, DeviceMemory(_GH200, 4900, 144)),
        (r"B100", "B100", (10, 0),
         Unit(_BLACKWELL,
              {"fp64": 30, "tf32": 900, "fp16": 1750, "bf16": 1750, "fp8": 3500, "fp4": 7000, "int8": 3500},
              {"fp64": 30, "fp32": 60}),
         DeviceMemory(_BLACKWELL, 8000, None, 1800)),
        (r"B200", "B200", (10, 0),
         Unit(_HGX,
              {"fp64": 37, "tf32": 1125, "fp16": 2250, "bf16": 2250, "fp8": 4500, "fp4": 9000, "int8": 4500},
              {"fp64": 37, "fp32": 75}),
         DeviceMemory(_DGX_B200, 8000, 180, 1800)),
        (r"GB200", "GB200", (10, 0),
         Unit(_GB200,
              {"fp64": 40, "tf32": 1250, "fp16": 2500, "bf16": 2500, "fp8": 5000, "fp4": 10000, "int8": 5000},
              {"fp64": 40, "fp32": 80}),
         DeviceMemory(_GB200, 8000, 186, 1800)),
        # fp4 and int8 differ between editions of the board's specifications: the formats, not the rates.
        (r"B300(?: SXM6 AC)?", "B300", (10, 3),
         Unit(_HGX, {"tf32": 1125, "fp16": 2250, "bf16": 2250, "fp8": 4500}, {"fp32": 75},
              ("fp4", "int8", "fp64")),
         DeviceMemory(_HGX, 8000, None, 1800)),
        (r"GB300", "GB300", (10, 3),
         Unit(_GB300, {"tf32": 1250, "fp16": 2500, "bf16": 2500, "fp8": 5000, "fp4": 15000}, {"fp32": 80},
              ("int8", "fp64")),
         DeviceMemory(_GB300, 8000, None, 1800)),
        (r"RTX 5090", "GeForce RTX 5090", (12, 0),
         Unit(_RTX_BLACKWELL,
              {"tf32": 104.8, "fp16": 209.5, "bf16": 209.5, "fp8": 419, "fp4": 1676, "int8": 838},
              {"fp32": 104.8, "fp16": 104.8, "bf16": 104.8}),
         DeviceMemory(_RTX_BLACKWELL, 1792, 32)),
        (r"RTX 5080", "GeForce RTX 5080", (12, 0),
         Unit(_RTX_BLACKWELL,
              {"tf32": 56.3, "fp16": 112.6, "bf16": 112.6, "fp8": 225.1, "fp4": 900.4, "int8": 450.2},
              {"fp32": 56.3, "fp16": 56.3, "bf16": 56.3}),
         DeviceMemory(_RTX_BLACKWELL, 960, 16)),
        (r"RTX 5070 Ti", "GeForce RTX 5070 Ti", (12, 0),
         Unit(_RTX_BLACKWELL,
              {"tf32": 43.9, "fp16": 87.9, "bf16": 87.9, "fp8": 175.8, "fp4": 703, "int8": 351.5},
              {"fp32": 43.9, "fp16": 43.9, "bf16": 43.9}),
         DeviceMemory(_RTX_BLACKWELL, 896, 16)),
        (r"RTX 5070", "GeForce RTX 5070", (12, 0),
         Unit(_RTX_BLACKWELL,
              {"tf32": 30.9, "fp16": 61.7, "bf16": 61.7, "fp8": 123.5, "fp4": 493.9, "int8": 246.9},
              {"fp32": 30.9, "fp16": 30.9, "bf16": 30.9}),
         DeviceMemory(_RTX_BLACKWELL, 672, 12)),
    ))  # fmt: skip
"""Name patterns (without "NVIDIA", "Tesla" and "GeForce") and the device they stand for."""
