"""Devices, the permission to profile them, the vendors' tracing libraries, and who else is tracing."""

from __future__ import annotations

import os
import re

from stepscope.doctor.case import Case, numbers
from stepscope.doctor.outcome import CheckOutcome, not_applicable, ok, problem, warning
from stepscope.regex import regex

_NVIDIA, _AMD = "0x10de", "0x1002"
CAP_SYS_ADMIN = 21
TRACING_FOR_ALL = (440,)
"""Drivers of CUDA 10.2 and later let every user trace; only counters stay restricted (NVIDIA,
``CUPTI_ERROR_INSUFFICIENT_PRIVILEGES``, and CUPTI's limitations)."""
_HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def nvidia_gpu(case: Case) -> CheckOutcome:
    """NVIDIA GPUs can be used from here."""
    host = case.host
    if case.nvidia:
        return _hidden(case, "CUDA_VISIBLE_DEVICES") or ok(f"{_counted(case)}, driver {case.nvidia_driver}.")
    if host.glob("/dev/nvidia[0-9]*"):
        if case.nvidia_smi is None:
            return ok(f"NVIDIA GPU with driver {case.nvidia_driver or 'of unknown version'}; there is no nvidia-smi.")
        return problem(
            f"There is an NVIDIA GPU, but nvidia-smi fails: {case.nvidia_smi.complaint}",
            "Reboot after a driver update; else install the driver again, so that kernel module and libraries agree.",
        )
    if not case.has_display_device(_NVIDIA):
        return not_applicable("There is no NVIDIA GPU.")
    if case.container:
        return warning("The machine has an NVIDIA GPU that this container does not see.",
                       "Start it with `docker run --gpus all` (needs the NVIDIA Container Toolkit).")  # fmt: skip
    return problem("There is an NVIDIA GPU, but its driver is not loaded.",
                   "Install NVIDIA's driver, then `sudo modprobe nvidia`.")  # fmt: skip


def _counted(case: Case) -> str:
    names = [line.rsplit(",", 1)[0].strip() for line in case.nvidia]
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _hidden(case: Case, *variables: str) -> CheckOutcome | None:
    for variable in variables:
        if case.host.environ.get(variable, "all").strip() in ("", "-1", "NoDevFiles"):
            return warning(f"{variable} hides every GPU from programs started here.", f"`unset {variable}`")
    return None


def nvidia_permission(case: Case) -> CheckOutcome:
    """This user may profile NVIDIA GPUs."""
    told = re.search(r"RmProfilingAdminOnly:\s*(\d)", case.host.read("/proc/driver/nvidia/params") or "")
    if told is None:
        return not_applicable("NVIDIA's driver tells no restriction here.")
    if told[1] == "0":
        return ok("Every user may profile NVIDIA GPUs.")
    if case.may(CAP_SYS_ADMIN):
        return ok("Profiling NVIDIA GPUs is for administrators, and this process is one (CAP_SYS_ADMIN).")
    cure = (
        "On the machine: put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
        "/etc/modprobe.d/nvidia-profiling.conf and reboot (on Debian and Ubuntu after `sudo update-initramfs -u`)."
    )
    if case.container:
        cure = f"Start the container with `--cap-add=SYS_ADMIN`. {cure}"
    if numbers(case.nvidia_driver or "") >= TRACING_FOR_ALL:
        return warning("NVIDIA's hardware counters are for administrators; kernels are recorded all the same.", cure)
    return problem("Profiling NVIDIA GPUs is for administrators: profiles hold no device events "
                   "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).", cure)  # fmt: skip


def cupti(case: Case) -> CheckOutcome:
    """NVIDIA's tracing library is found."""
    if not case.has_nvidia:
        return not_applicable("CUPTI traces NVIDIA GPUs; there is none.")
    path = _cupti_path(case)
    if path:
        return ok(f"CUPTI: {path}.")
    major = numbers((case.packages.torch_build.get("cuda") if case.packages else None) or "12")[0]
    package = f"nvidia-cuda-cupti-cu{major}" if major < 13 else "nvidia-cuda-cupti"
    return warning(
        "CUPTI is not found: unless the framework brings its own, profiles hold no device events.",
        f"`{case.python} -m pip install {package}`, or add CUDA's extras/CUPTI/lib64 to LD_LIBRARY_PATH.",
    )


def _cupti_path(case: Case) -> str | None:
    host = case.host
    sites = case.packages.paths if case.packages else ()
    homes = [host.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if host.environ.get(name)]
    patterns = [
        *(f"{site}/nvidia/*/lib/libcupti.so*" for site in sites if site),
        *(f"{site}/torch/lib/libcupti*" for site in sites if site),
        *(f"{folder}/libcupti.so*" for folder in host.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder),
        *(f"{home}/extras/CUPTI/lib64/libcupti.so*" for home in (*homes, "/usr/local/cuda*")),
        "/usr/lib/x86_64-linux-gnu/libcupti.so*",
    ]
    path = next((paths[0] for pattern in patterns if (paths := host.glob(pattern))), None)
    return path or host.library("cupti")


def amd_gpu(case: Case) -> CheckOutcome:
    """AMD GPUs can be used from here."""
    host = case.host
    if not case.has_amd:
        if case.has_display_device(_AMD) and case.container:
            return warning("The machine has an AMD device that this container does not see.",
                           "Start it with `--device=/dev/kfd --device=/dev/dri --group-add video`.")  # fmt: skip
        return not_applicable("There is no AMD GPU with a driver for computing (/dev/kfd).")
    if not host.usable("/dev/kfd"):
        cure = "`sudo usermod -aG render,video $USER`, then log in again."
        if case.container:
            cure = "Start the container with `--device=/dev/kfd --device=/dev/dri --group-add video`."
        return problem("This user may not use the AMD GPU (/dev/kfd).", cure)
    version = (host.read("/opt/rocm/.info/version") or "").strip()
    return _hidden(case, *_HIDING) or ok(f"AMD GPU; ROCm {version or 'of unknown version'}.")


def amd_tracer(case: Case) -> CheckOutcome:
    """AMD's tracing library is found."""
    if not case.has_amd:
        return not_applicable("ROCm's tracers trace AMD GPUs; there is none.")
    sites = case.packages.paths if case.packages else ()
    for library in ("librocprofiler-sdk.so*", "libroctracer64.so*"):
        for folder in (*(f"{site}/torch/lib" for site in sites if site), "/opt/rocm*/lib"):
            if paths := case.host.glob(f"{folder}/{library}"):
                return ok(f"ROCm's tracer: {paths[0]}.")
    return warning("Neither rocprofiler-sdk nor roctracer is found: profiles hold no device events.",
                   "Install ROCm's packages rocprofiler-sdk and roctracer (`apt install`, `dnf install`).")  # fmt: skip


INJECTED = {
    "CUDA_INJECTION64_PATH": "a CUDA tool is loaded into every CUDA program",
    "NSYS_PROFILING_SESSION_ID": "programs run under nsys",
    "ROCP_TOOL_LIB": "a ROCm tool is loaded into every program",
    "HSA_TOOLS_LIB": "a ROCm tool is loaded into every program",
}
"""Environment variables by which another profiler takes the place that a framework's own would need."""
_PRELOADED = regex(r"nsys|ToolsInjection|cupti|nvprof|rocprof|roctracer", re.IGNORECASE)
_PROFILERS = ("nsys", "nsys-launcher", "ncu", "nvprof", "rocprof", "rocprofv2", "rocprofv3", "rocprof-sys-run")
_COUNTERS = "nv-hostengine"


def other_profiler(case: Case) -> CheckOutcome:
    """No other profiler takes the one place that CUPTI and ROCm's tracers offer."""
    for variable, meaning in INJECTED.items():
        if case.host.environ.get(variable):
            return problem(f"{variable} is set: {meaning}, and a second profiler gets no device events.",
                           f"`unset {variable}`, or read what that profiler records.")  # fmt: skip
    preloaded = case.host.environ.get("LD_PRELOAD", "")
    if _PRELOADED.search(preloaded):
        return problem(f"LD_PRELOAD loads another profiler ({preloaded}): a second one gets no device events.",
                       "`unset LD_PRELOAD`.")  # fmt: skip
    running = _running(case)
    for name in _PROFILERS:
        if name in running:
            return warning(f"{name} is running (process {running[name]}): what it traces, nothing else can trace.",
                           "Let it end, or profile a job that it does not trace.")  # fmt: skip
    if _COUNTERS in running:
        return warning(f"DCGM is running (process {running[_COUNTERS]}) and may hold the hardware counters.",
                       "Where counters are wanted: `dcgmi profile --pause`, then `--resume`.")  # fmt: skip
    return ok("No other profiler is attached or running.")


def _running(case: Case) -> dict[str, str]:
    """Process numbers by the name of the program."""
    processes = {}
    for path in case.host.glob("/proc/[0-9]*/comm"):
        processes[(case.host.read(path) or "").strip()] = path.split("/")[2]
    return processes
