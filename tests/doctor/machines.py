"""Machines made of what they would answer, for checks to look at."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from stepscope.doctor import Case, Host, ProgramEnd
from stepscope.doctor.case import PROBE
from stepscope.doctor.frameworks import JAX, TENSORFLOW, TORCH
from stepscope.doctor.machine import COMPILER_PROBE

GIB = 1 << 30
PARAMS = "/proc/driver/nvidia/params"
OPEN_DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder)  Tue Feb\n"
CLOSED_DRIVER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Feb 26 22:00:00 UTC 2020\nGCC version: 9.2.1\n"


@dataclass
class Machine(Host):
    """Answers from its fields; the defaults are a sound machine without devices or frameworks."""

    files: dict[str, str] = field(default_factory=dict)
    programs: dict[str, ProgramEnd] = field(default_factory=dict)
    """What programs say, by name."""
    scripts: dict[str, ProgramEnd | None] = field(default_factory=dict)
    """What Python says to a script."""
    variables: dict[str, str] = field(default_factory=dict)
    unusable: tuple[str, ...] = ()
    beside: dict[str, str] = field(default_factory=lambda: {"numpy": "2.3.1", "numba": "0.61.0"})
    needed: tuple[str, ...] = ("numpy>=1.26", "numba>=0.60", "pytest>=8; extra == 'dev'")
    free: int | None = 50 * GIB
    folder: str | None = "/tmp"
    stdout: str = "utf-8"
    os: str = "linux"
    python_version: tuple[int, int] = (3, 12)
    started: list[str] = field(default_factory=list)

    environ = property(lambda self: self.variables)  # type: ignore[assignment]
    platform = property(lambda self: self.os)  # type: ignore[assignment]
    python = property(lambda self: "/usr/bin/python3")  # type: ignore[assignment]
    version = property(lambda self: self.python_version)  # type: ignore[assignment]
    encoding = property(lambda self: self.stdout)  # type: ignore[assignment]
    temporary = property(lambda self: self.folder)  # type: ignore[assignment]

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def glob(self, pattern: str) -> list[str]:
        parts = PurePosixPath(pattern).parts
        return sorted(path for path in self.files if _matches(PurePosixPath(path).parts, parts))

    def usable(self, path: str) -> bool:
        return path not in self.unusable

    def free_bytes(self, folder: str) -> int | None:
        return self.free

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in self.programs else None

    def library(self, name: str) -> str | None:
        return None

    def requirements(self) -> list[str]:
        return list(self.needed)

    def installed(self, package: str) -> str | None:
        return self.beside.get(package)

    def run(
        self, command: Sequence[str], seconds: float, environ: Mapping[str, str] | None = None
    ) -> ProgramEnd | None:
        if command[1:2] == ["-c"]:
            self.started.append(command[2])
            return {COMPILER_PROBE: says(numba="0.61.0", folder="/cache/of/mine"), PROBE: packages(), **self.scripts}[
                command[2]
            ]
        return self.programs.get(PurePosixPath(command[0]).name)


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(path) == len(pattern) and all(map(fnmatch.fnmatchcase, path, pattern))


def says(**answer: Any) -> ProgramEnd:
    """A script that prints an answer."""
    return ProgramEnd(0, json.dumps(answer) + "\n")


def packages(torch_build: Mapping[str, str] | None = None, **versions: str) -> ProgramEnd:
    """The answer of a Python with these packages; underscores stand for hyphens."""
    return says(
        python="3.11.9",
        packages={name.replace("_", "-"): version for name, version in versions.items()},
        torch=torch_build or {},
        paths=["/env/site-packages"],
    )


def smi(*gpus: str, driver: str = "550.54.15") -> ProgramEnd:
    """What nvidia-smi says of some GPUs."""
    return ProgramEnd(0, "".join(f"{gpu}, {driver}\n" for gpu in gpus))


def with_nvidia(count: int = 1, *, driver: str = "550.54.15", restricted: bool = False, **more: Any) -> Machine:
    """A machine with NVIDIA GPUs that work."""
    files = {f"/dev/nvidia{k}": "" for k in range(count)} | {
        PARAMS: f"EnableMSI: 1\nRmProfilingAdminOnly: {int(restricted)}\n",
        "/proc/driver/nvidia/version": OPEN_DRIVER.format(driver),
        "/proc/self/status": "Name:\tpython3\nCapEff:\t0000000000000000\n",
        "/env/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12": "",
    }
    files |= more.pop("files", {})
    programs = {"nvidia-smi": smi(*["NVIDIA H100"] * count, driver=driver)} | more.pop("programs", {})
    return Machine(files=files, programs=programs, **more)


def with_amd(**more: Any) -> Machine:
    """A machine with an AMD GPU that works."""
    files = {"/dev/kfd": "", "/opt/rocm/.info/version": "6.4.1\n", "/opt/rocm-6.4.1/lib/librocprofiler-sdk.so.1": ""}
    return Machine(files=files | more.pop("files", {}), **more)


def case(machine: Machine, *, deep: bool = False) -> Case:
    return Case(machine, deep=deep)


__all__ = [
    "JAX", "PROBE", "TENSORFLOW", "TORCH", "Machine", "case", "packages", "says", "smi", "with_amd", "with_nvidia",
]  # fmt: skip
