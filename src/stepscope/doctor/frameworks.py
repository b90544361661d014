"""The frameworks of the job's Python: what they are built for, and with ``--deep`` what their profilers can record."""

from __future__ import annotations

import json
from typing import Any

from stepscope.doctor.case import Case, numbers
from stepscope.doctor.host import ProgramEnd
from stepscope.doctor.outcome import CheckOutcome, not_applicable, ok, problem, warning

IMPORT_SECONDS = 120.0
_PLUGIN_IS_XPROF = (2, 20)
_RECORDED = {"torch", "jax", "tensorflow", "tensorflow-cpu"}
_QUIET = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}

TORCH = """
import json, torch
import torch.profiler
print(json.dumps(dict(usable=torch.cuda.is_available(), count=torch.cuda.device_count(),
    records=sorted(str(a).split(".")[-1] for a in torch.profiler.supported_activities()))))
"""
JAX = """
import json, jax
print(json.dumps(dict(backend=jax.default_backend(), count=jax.device_count())))
"""
TENSORFLOW = """
import json, tensorflow as tf
print(json.dumps(dict(count=len(tf.config.list_physical_devices("GPU")))))
"""


def environment(case: Case) -> CheckOutcome:
    """The job's Python answers."""
    if case.packages is None:
        return problem(f"Nothing is known of {case.python}: {case.probe_failure}.",
                       "Name the job's Python with `--python PATH`.")  # fmt: skip
    where = f"The job's Python is {case.packages.python} ({case.python})"
    if not _RECORDED & case.packages.versions.keys():
        return warning(f"{where}; it has no PyTorch, JAX or TensorFlow: nothing can be recorded there.",
                       "Name the Python that the job runs with: `stepscope doctor --python PATH`.")  # fmt: skip
    return ok(f"{where}.")


def torch(case: Case) -> CheckOutcome:
    """PyTorch is built for the devices that are here."""
    version = case.version_of("torch")
    if version is None or case.packages is None:
        return not_applicable("PyTorch is not installed there.")
    build = case.packages.torch_build
    built_for = (f"{name.upper()} {build[name]}" for name in ("cuda", "hip", "xpu") if build.get(name))
    kind = next(built_for, "the CPU alone")
    wanted = "CUDA" if case.has_nvidia else "ROCm" if case.has_amd else None
    if wanted and kind == "the CPU alone":
        return problem(f"PyTorch {version} is built for the CPU alone: neither a job nor its profile uses the GPU.",
                       f"Install the build for {wanted}: https://pytorch.org/get-started/locally/")  # fmt: skip
    if not case.deep:
        return ok(f"PyTorch {version}, built for {kind}.")
    said = _imported(case, TORCH)
    if isinstance(said, str):
        return problem(f"PyTorch {version} cannot be imported: {said}", "Install it again.")
    if wanted and not said["usable"]:
        return problem(f"PyTorch {version}, built for {kind}, finds no GPU.",
                       "Match its build with the driver: https://pytorch.org/get-started/locally/")  # fmt: skip
    # ROCm's PyTorch calls its GPUs CUDA, too.
    if wanted and "CUDA" not in said["records"]:
        return problem(f"PyTorch {version} finds a GPU that its profiler cannot record.",
                       "Install PyTorch's own build: it was built without CUPTI or ROCm's tracer.")  # fmt: skip
    return ok(f"PyTorch {version}, built for {kind}; its profiler records {', '.join(said['records'])}.")


def jax(case: Case) -> CheckOutcome:
    """JAX has a plugin for the devices that are here."""
    version = case.version_of("jax")
    if version is None or case.packages is None:
        return not_applicable("JAX is not installed there.")
    plugins = [name for name in case.packages.versions if name.startswith("jax-") or name == "libtpu"]
    if case.has_nvidia and not any("cuda" in name for name in plugins):
        return problem(f"JAX {version} has no plugin for CUDA: neither a job nor its profile uses the GPU.",
                       f"`{case.python} -m pip install --upgrade 'jax[cuda12]'`")  # fmt: skip
    if case.has_amd and not any("rocm" in name for name in plugins):
        return problem(f"JAX {version} has no plugin for ROCm: neither a job nor its profile uses the GPU.",
                       "Install jax-rocm-plugin and jax-rocm-pjrt of AMD's releases.")  # fmt: skip
    with_plugins = f" with {', '.join(plugins)}" if plugins else ""
    if not case.deep:
        return ok(f"JAX {version}{with_plugins}.")
    said = _imported(case, JAX)
    if isinstance(said, str):
        return problem(f"JAX {version} finds no backend: {said}", "Install jax, jaxlib and its plugin of one version.")
    if (case.has_nvidia or case.has_amd) and said["backend"] == "cpu":
        return problem(f"JAX {version}{with_plugins} runs on the CPU although there is a GPU.",
                       "Match the plugin with the driver: `JAX_PLATFORMS=cuda` says why it fails.")  # fmt: skip
    return ok(f"JAX {version}{with_plugins}: {_counted(said['count'], said['backend'] + ' device')}.")


def tensorflow(case: Case) -> CheckOutcome:
    """TensorFlow finds the devices that are here."""
    version = case.version_of("tensorflow") or case.version_of("tensorflow-cpu")
    if version is None:
        return not_applicable("TensorFlow is not installed there.")
    if case.has_nvidia and case.version_of("tensorflow") is None:
        return problem(f"tensorflow-cpu {version} does not use the GPU.",
                       f"`{case.python} -m pip install 'tensorflow[and-cuda]'`")  # fmt: skip
    if not case.deep:
        return ok(f"TensorFlow {version}.")
    said = _imported(case, TENSORFLOW)
    if isinstance(said, str):
        return problem(f"TensorFlow {version} cannot be imported: {said}", "Install it again.")
    if case.has_nvidia and not said["count"]:
        return problem(f"TensorFlow {version} finds no GPU.",
                       f"`{case.python} -m pip install 'tensorflow[and-cuda]'`")  # fmt: skip
    return ok(f"TensorFlow {version} with {_counted(said['count'], 'GPU')}.")


def tensorboard(case: Case) -> CheckOutcome:
    """TensorBoard's two profiler plugins, of which one succeeded the other, are not both there."""
    old, new = case.version_of("tensorboard-plugin-profile"), case.version_of("xprof")
    if old is None and new is None:
        return not_applicable("TensorBoard has no profiler plugin there.")
    # From 2.20 on the old name merely brings the new package along.
    if old is None or new is None or numbers(old) >= _PLUGIN_IS_XPROF:
        return ok(f"TensorBoard's profiler plugin is {f'xprof {new}' if new else f'tensorboard-plugin-profile {old}'}.")
    return warning(
        f"tensorboard-plugin-profile {old} and xprof {new} both are TensorBoard's profiler plugin: it does not start "
        "(Duplicate plugins for name profile).",
        f"`{case.python} -m pip uninstall tensorboard-plugin-profile`",
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _imported(case: Case, script: str) -> dict[str, Any] | str:
    """What a script says in the job's Python, or why it says nothing."""
    ran: ProgramEnd | None = case.host.run([case.python, "-c", script], IMPORT_SECONDS, _QUIET)
    if ran is None or ran.status is None:
        return f"no answer in {IMPORT_SECONDS:.0f} s"
    try:
        said = json.loads(ran.out.strip().splitlines()[-1]) if ran.status == 0 else None
    except (ValueError, IndexError):
        said = None
    return said if isinstance(said, dict) else ran.complaint
