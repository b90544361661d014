"""The one list of checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.doctor import frameworks, gpu, machine
from stepscope.doctor.case import Case
from stepscope.doctor.known import KNOWN
from stepscope.doctor.outcome import CheckOutcome


@dataclass(frozen=True, slots=True)
class Check:
    """A question: its stable id, what people call it, and the function that answers."""

    id: str
    title: str
    run: Callable[[Case], CheckOutcome]


CHECKS: tuple[Check, ...] = (
    Check("python", "Python", machine.python),
    Check("compiler", "compiled loops", machine.compiler),
    Check("terminal", "terminal", machine.terminal),
    Check("grpc", "capture from servers", machine.grpc),
    Check("memory", "memory", machine.memory),
    Check("disk", "disk", machine.disk),
    Check("container", "container", machine.container),
    Check("wsl", "WSL", machine.wsl),
    Check("nvidia_gpu", "NVIDIA GPU", gpu.nvidia_gpu),
    Check("nvidia_permission", "NVIDIA permission", gpu.nvidia_permission),
    Check("cupti", "CUPTI", gpu.cupti),
    Check("amd_gpu", "AMD GPU", gpu.amd_gpu),
    Check("amd_tracer", "ROCm tracer", gpu.amd_tracer),
    Check("other_profiler", "other profilers", gpu.other_profiler),
    Check("environment", "the job's Python", frameworks.environment),
    Check("torch", "PyTorch", frameworks.torch),
    Check("jax", "JAX", frameworks.jax),
    Check("tensorflow", "TensorFlow", frameworks.tensorflow),
    Check("tensorboard", "TensorBoard", frameworks.tensorboard),
    *(Check(known.source, "known failure", known.check) for known in KNOWN),
)


def examine(case: Case) -> list[tuple[Check, CheckOutcome]]:
    """Run every check."""
    return [(check, check.run(case)) for check in CHECKS]
