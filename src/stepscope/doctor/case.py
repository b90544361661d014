"""One examination: the machine, the Python whose packages are looked at, and what several checks ask of both."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stepscope.doctor.host import Host, ProgramEnd

PROBE_SECONDS = 30.0
_PACKAGES = (
    "torch", "jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm60-plugin", "jax-rocm7-plugin",
    "libtpu", "tensorflow", "tensorflow-cpu", "keras", "torch-xla", "numpy",
    "tensorboard-plugin-profile", "xprof",
)  # fmt: skip
PROBE = f"""
import importlib.metadata as m, importlib.util as u, json, os, platform, re, sys
found = {{}}
for name in {_PACKAGES!r}:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
build = {{}}
spec = u.find_spec("torch") if "torch" in found else None
if spec and spec.origin:
    path = os.path.join(os.path.dirname(spec.origin), "version.py")
    text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
    build = dict(re.findall(r"^(cuda|hip|xpu)\\b[^=\\n]*= *'([^']*)'", text, re.M))
print(json.dumps(dict(python=platform.python_version(), packages=found, torch=build, paths=sys.path)))
"""
"""Run in the Python that is looked at: reads what is installed and imports none of it."""


@dataclass(frozen=True, slots=True)
class Packages:
    """What a Python has installed; ``torch_build`` are the versions of CUDA, HIP or XPU that PyTorch is built for."""

    python: str
    versions: Mapping[str, str]
    torch_build: Mapping[str, str]
    paths: tuple[str, ...]


class Case:
    """What is examined. ``python`` is the job's Python, None for stepscope's own; ``deep`` allows imports there."""

    def __init__(self, host: Host, python: str | None = None, *, deep: bool = False) -> None:
        self.host = host
        self.python = python or host.python
        self.deep = deep

    @cached_property
    def _probe(self) -> ProgramEnd | None:
        return self.host.run([self.python, "-c", PROBE], PROBE_SECONDS)

    @property
    def probe_failure(self) -> str | None:
        """Why nothing is known of the job's Python, where that is so."""
        ran = self._probe
        if ran is None:
            return "it cannot be started"
        if ran.status is None:
            return f"it gave no answer in {PROBE_SECONDS:.0f} s"
        return None if self.packages is not None else ran.complaint

    @cached_property
    def packages(self) -> Packages | None:
        """What the job's Python has installed, None where it cannot be asked."""
        ran = self._probe
        if ran is None or ran.status != 0:
            return None
        try:
            said: dict[str, Any] = json.loads(ran.out.strip().splitlines()[-1])
            return Packages(said["python"], said["packages"], said["torch"], tuple(said["paths"]))
        except (ValueError, IndexError, KeyError, TypeError):
            return None

    def version_of(self, package: str) -> str | None:
        """The version of a package of the job's Python."""
        return self.packages.versions.get(package) if self.packages else None

    @cached_property
    def container(self) -> str | None:
        """The kind of container this is, None outside one."""
        if self.host.glob("/run/.containerenv"):
            return "podman"
        groups = self.host.read("/proc/1/cgroup") or ""
        named = re.search(r"docker|kubepods|containerd|lxc", groups)
        if "KUBERNETES_SERVICE_HOST" in self.host.environ or (named and named[0] == "kubepods"):
            return "kubernetes"
        if self.host.glob("/.dockerenv"):
            return "docker"
        return named[0] if named else None

    @cached_property
    def wsl(self) -> bool:
        """Whether this is Linux under Windows."""
        return "microsoft" in (self.host.read("/proc/version") or "").lower()

    @cached_property
    def nvidia(self) -> tuple[str, ...]:
        """The NVIDIA GPUs that can be used here: name and driver version each, as ``nvidia-smi`` tells them."""
        ran = self.nvidia_smi
        lines = ran.out.splitlines() if ran and ran.status == 0 else []
        return tuple(line.strip() for line in lines if line.strip())

    @cached_property
    def nvidia_smi(self) -> ProgramEnd | None:
        """What ``nvidia-smi`` said, None where there is none."""
        program = self.host.which("nvidia-smi")
        if program is None:
            return None
        return self.host.run([program, "--query-gpu=name,driver_version", "--format=csv,noheader"], PROBE_SECONDS)

    @property
    def has_nvidia(self) -> bool:
        """Whether an NVIDIA GPU can be used here."""
        return bool(self.nvidia or self.host.glob("/dev/nvidia[0-9]*"))

    @cached_property
    def nvidia_driver(self) -> str | None:
        """The driver's version."""
        told = re.search(r"\s(\d{3,}\.[\d.]*\d)\s", self.host.read("/proc/driver/nvidia/version") or "")
        if told:
            return told[1]
        return self.nvidia[0].rsplit(",", 1)[-1].strip() if self.nvidia and "," in self.nvidia[0] else None

    @property
    def has_amd(self) -> bool:
        """Whether the driver for AMD's GPUs is loaded."""
        return bool(self.host.glob("/dev/kfd"))

    def has_display_device(self, vendor: str) -> bool:
        """Whether a graphics or accelerator device of a PCI vendor (``0x10de``) is in the machine."""
        for path in self.host.glob("/sys/bus/pci/devices/*/vendor"):
            kind = self.host.read(path.removesuffix("vendor") + "class") or ""
            if (self.host.read(path) or "").strip() == vendor and kind.startswith(("0x03", "0x12")):
                return True
        return False

    def may(self, capability: int) -> bool:
        """Whether this process has a Linux capability (its bit)."""
        told = re.search(r"^CapEff:\s*([0-9a-f]+)", self.host.read("/proc/self/status") or "", re.MULTILINE)
        return told is not None and bool(int(told[1], 16) >> capability & 1)


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparing.

    >>> numbers("2.13.0+cu126"), numbers("12.6")
    ((2, 13, 0), (12, 6))
    """
    told = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, told[0].split("."))) if told else ()
