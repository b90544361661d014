"""TensorFlow on GPUs that the profile does not name: what their figures tell the advice."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.peaks import device_peaks
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.trace.trace import Trace
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

US = 1_000_000
"""Picoseconds."""
STEPS = 6

V100 = {"clock_rate": 1_530_000, "core_count": 80, "memory_bandwidth": Unsigned(898_048_000_000),
        "memory_size": Unsigned(16_945_512_448), "compute_cap_major": 7, "compute_cap_minor": 0}  # fmt: skip
"""The statistics that CUPTI's collector writes to a GPU's plane."""


def training(stats: dict[str, object], kernel: str = "volta_sgemm_128x128_nn") -> Trace:
    """Steps of 1 ms under TensorFlow 2: 960 µs of a product in fp32."""
    calls, kernels, marks = [], [], []
    for step in range(STEPS):
        at = step * 1_000 * US
        calls.append(Ev("cuLaunchKernel", at + 10 * US, 5 * US, {"correlation_id": Unsigned(2 * step + 1)}))
        calls.append(Ev("cuStreamSynchronize", at + 20 * US, 962 * US, {"correlation_id": Unsigned(2 * step + 2)}))
        kernels.append(Ev(kernel, at + 20 * US, 960 * US, {"correlation_id": Unsigned(2 * step + 1),
                       "tf_op": "model/dense/MatMul:MatMul"}))  # fmt: skip
        marks.append(Ev("train", at, 990 * US, {"_r": 1, "step_num": step}))
    host = Plane("/host:CPU", (line("python", *marks, *calls, Ev("EagerExecute", 2 * US, 3 * US), id=5),))
    return read(space(Plane("/device:GPU:0", (line("Stream #13(Kernel)", *kernels, id=13),), stats), host))


def found(trace: Trace) -> Diagnosis:
    return diagnose(analyse(trace))


def advice(stats: dict[str, object]) -> str:
    (finding,) = (one for one in found(training(stats)).findings if one.rule == "tensor_cores_unused")
    return finding.fix


@pytest.mark.parametrize(
    ("capability", "policy"), [((7, 0), "mixed_float16"), ((7, 5), "mixed_float16"), ((8, 0), "mixed_bfloat16"),
                               ((8, 6), "mixed_bfloat16"), ((9, 0), "mixed_bfloat16")],
)  # fmt: skip
@pytest.mark.parametrize("vendor", [{}, {"device_vendor": "Nvidia"}])
def test_bfloat16_is_advised_from_compute_capability_8_on(
    capability: tuple[int, int], policy: str, vendor: dict[str, object]
) -> None:
    stats = {"compute_cap_major": capability[0], "compute_cap_minor": capability[1], **vendor}
    assert f'set_global_policy("{policy}")' in advice(stats)


def test_a_name_that_is_in_no_table_leaves_it_to_the_capability() -> None:
    named = {"gpu_device_name": "Quadro RTX 5000", "device_vendor": "Nvidia"}
    assert "mixed_float16" in advice(named | {"compute_cap_major": 7, "compute_cap_minor": 5})
    assert "mixed_bfloat16" in advice(named | {"compute_cap_major": 8, "compute_cap_minor": 6})


def test_figures_of_a_device_give_its_peaks_and_with_them_a_saving() -> None:
    trace = training(V100)
    assert trace.info.devices[0].name == "NVIDIA V100 16GB"
    peaks = device_peaks(trace, 0)
    assert peaks is not None
    assert peaks.matrix_flops("fp16") == 80 * 1_530_000_000 * 1024
    (finding,) = (one for one in found(trace).findings if one.rule == "tensor_cores_unused")
    assert finding.saving_ns_per_step == round(960_000 * (1 - 128 / 1024))
    assert "mixed_float16" in finding.fix


def test_without_a_clock_there_are_no_peaks_and_no_saving() -> None:
    trace = training({name: value for name, value in V100.items() if name != "clock_rate"})
    assert device_peaks(trace, 0) is None
    (finding,) = (one for one in found(trace).findings if one.rule == "tensor_cores_unused")
    assert finding.saving_ns_per_step is None
    assert "not known" in str(finding.not_determined)


def test_a_name_decides_before_figures_do() -> None:
    trace = training(V100 | {"gpu_device_name": "Tesla V100-PCIE-16GB", "device_vendor": "Nvidia"})
    peaks = device_peaks(trace, 0)
    assert peaks is not None
    assert (trace.info.devices[0].name, peaks.name) == ("Tesla V100-PCIE-16GB", "V100 PCIe 16GB")


@pytest.mark.parametrize("named", [{}, {"gpu_device_name": "gfx942"}, {"gpu_device_name": "gfx942:sramecc+:xnack-"}])
@pytest.mark.parametrize(
    ("memory", "name"), [(206_141_652_992, "AMD Instinct MI300X"), (103_070_826_496, "AMD Instinct MI300 series")]
)
def test_a_nameless_accelerator_of_amd_is_known_by_units_memory_and_instruction_set(
    memory: int, name: str, named: dict[str, object]
) -> None:
    """ROCm's collector writes half the memory's bandwidth: the product's own is what counts."""
    stats = {"device_vendor": "AMD", "clock_rate": 2_100_000, "core_count": 304, "memory_size": Unsigned(memory),
             "memory_bandwidth": Unsigned(2_662_400_000_000), **named}  # fmt: skip
    stats |= {} if named else {"compute_cap_major": 9, "compute_cap_minor": 4}
    trace = training(stats, "Cijk_Ailk_Bjlk_SB_MT64x64x16_SE_K1")
    assert trace.info.devices[0].name == name
    peaks = device_peaks(trace, 0)
    assert (peaks is not None) == (name == "AMD Instinct MI300X")
    assert peaks is None or (peaks.memory_bandwidth is not None and peaks.memory_bandwidth.value == 5_300 * 10**9)
