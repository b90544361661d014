"""Combinations of versions that are known to fail in a capture, each with the public report it is taken from."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.doctor.case import Case, numbers
from stepscope.doctor.outcome import CheckOutcome, not_applicable, warning

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A failure, and when it applies: all of what is given must hold.

    Versions are from ``at_least`` to before ``below``. ``build`` is what PyTorch is built for (``cuda``, ``hip``,
    ``xpu`` or ``cpu``), with the versions of that.
    """

    source: str
    sentence: str
    cure: str
    package: str = "torch"
    at_least: Version = ()
    below: Version | None = None
    build: str | None = None
    build_at_least: Version = ()
    build_below: Version | None = None
    platform: str | None = None
    variable: str | None = None
    """An environment variable that is set."""
    gpus: int = 0
    """NVIDIA GPUs in the machine, at the least."""

    def check(self, case: Case) -> CheckOutcome:
        """Whether it applies here."""
        version = case.version_of(self.package)
        if version is None or not self._applies(case, version):
            return not_applicable(f"{self.source} does not concern what is here.")
        return warning(f"{self.package} {version}: {self.sentence} ({self.source}).", self.cure)

    def _applies(self, case: Case, version: str) -> bool:
        builds = case.packages.torch_build if case.packages else {}
        build = next((name for name in ("cuda", "hip", "xpu") if builds.get(name)), "cpu")
        return (
            _between(version, self.at_least, self.below)
            and (self.build is None or build == self.build)
            and (build == "cpu" or self.build is None or _between(builds[build], self.build_at_least, self.build_below))
            and (self.platform is None or case.host.platform == self.platform)
            and (self.variable is None or bool(case.host.environ.get(self.variable)))
            and len(case.nvidia) >= self.gpus
        )


def _between(version: str, at_least: Version, below: Version | None) -> bool:
    here = numbers(version)
    return bool(here) and here >= at_least and (below is None or here < below)


KNOWN: tuple[Known, ...] = (
    Known(
        "pytorch/pytorch#135003",
        "built for CUDA 11, the profiler may hang when it stops in a job with CUDA graphs",
        "Install the build for CUDA 12.1 or later.",
        build="cuda",
        build_below=(12,),
    ),
    Known(
        "pytorch/pytorch#150957",
        "with CUDA before 12.6, a job with CUDA graphs may crash when it is profiled a second time",
        "Install the build for CUDA 12.6 or later, or set TEARDOWN_CUPTI=0 and DISABLE_CUPTI_LAZY_REINIT=1.",
        build="cuda",
        build_at_least=(12,),
        build_below=(12, 6),
    ),
    Known(
        "pytorch/pytorch#192021",
        "kernels at the beginning of a profile may be dropped, the more the longer the device was idle before",
        "Give every profile warm-up steps, and distrust its first ones (`schedule(wait=1, warmup=3, active=5)`).",
        at_least=(2, 10),
        below=(2, 11),
        build="cuda",
    ),
    Known(
        "pytorch/kineto#1268",
        "on ROCm a long warm-up may fill the tracer's buffers, so that the profile holds no device events",
        "Warm up for one or two steps only (`schedule(warmup=1, ...)`).",
        below=(2, 11),
        build="hip",
    ),
    Known(
        "pytorch/kineto#1338",
        "on ROCm a profile holds no device events where the device worked before the profiler was first started",
        "Run `with torch.profiler.profile(): pass` before the first work on the device.",
        below=(2, 12),
        build="hip",
        build_at_least=(7,),
    ),
    Known(
        "ROCm/rocm-systems#1327",
        "with ROCm 7.0 whole streams may be missing from profiles",
        "Use ROCm 6.4, or a version after 7.0.",
        build="hip",
        build_at_least=(7, 0),
        build_below=(7, 1),
    ),
    Known(
        "intel/torch-xpu-ops#3350",
        "on Windows profiles of Intel GPUs hold no device events",
        "Install PyTorch 2.13 or later.",
        below=(2, 13),
        build="xpu",
        platform="win32",
    ),
    Known(
        "pytorch/pytorch#112389",
        "built for the CPU alone, it may abort at its start where KINETO_USE_DAEMON is set",
        "`unset KINETO_USE_DAEMON`",
        build="cpu",
        variable="KINETO_USE_DAEMON",
    ),
    Known(
        "jax-ml/jax#40260",
        "with eight GPUs in one process, stopping a profile may crash the job (cuptiFinalize)",
        "Profile right after a checkpoint.",
        package="jax",
        at_least=(0, 10),
        gpus=8,
    ),
    Known(
        "pytorch/xla#7841",
        "its profiler server ends with the object that start_server returns, and captures are then refused",
        "Keep it as long as the job runs: `server = xp.start_server(9012)`.",
        package="torch-xla",
    ),
)
"""In the order of how much they cost: hangs and crashes, then what is missing."""
