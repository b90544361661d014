"""JAX, TensorFlow 2 and PyTorch/XLA: profilers that any thread may stop and that write XPlane.

Stopping collects and serialises at once, which can take minutes for long windows, so it happens on the thread that
exports; the job's next steps are recorded until it begins.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from .backend import Backend, Declined, collected, quietly_closed
from .garbage import NAME, Collections
from .lines import ThreadLines, working_thread
from .options import PROFILER_WARM_UP, Options
from .own_code import own_files, package_files
from .xla_metrics import metrics_report


class XPlaneBackend(Backend):
    """One window, written by the framework to a scratch folder beside the profiles."""

    # The first step pays for starting the tracers, and devices still run what was launched before.
    warm_up = PROFILER_WARM_UP
    stops_anywhere = True
    stops_on_export = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._scratch = ""
        self._range: Any = None
        self._lines = ThreadLines()
        self._collections = Collections()
        self._own: set[str] = set()

    def version(self) -> str:
        """The framework's version."""
        return str(getattr(sys.modules.get(self.framework), "__version__", ""))

    def prepare(self, number: int) -> None:
        """Start the profiler, marking no step yet."""
        os.makedirs(self.options.out, exist_ok=True)
        self._scratch = tempfile.mkdtemp(prefix=".stepscope-", dir=self.options.out)
        try:
            self.start(self._scratch)
        except Exception as error:
            os.rmdir(self._scratch)
            if "already" in str(error).lower() or "another profil" in str(error).lower():
                raise Declined(
                    f"another profiler was at work in this process; only one can record at a time ({error})"
                ) from error
            raise

    def begin(self, number: int | None) -> None:
        """With a number, mark that step's beginning."""
        if not self._scratch:
            self.prepare(0)
        if self.options.stacks:
            self._lines.start(working_thread())
        self._collections.start(self.collection_range())
        self._own |= own_files()  # What ran by then may be gone when it ends, as a script of ``runpy`` is.
        if number is not None:
            self.mark(number)

    def mark(self, number: int) -> None:
        """One range per step, ``train`` with its number."""
        quietly_closed(self._range)
        self._range = self.step_range(number)
        self._range.__enter__()

    def stop(self) -> None:
        """End the last step's range."""
        self._lines.stop()
        self._collections.stop()
        opened, self._range = self._range, None
        quietly_closed(opened)

    def discard(self) -> None:
        """Stop the profiler, and remove what it writes."""
        self.stop()
        if self._scratch:
            self.finish()
            shutil.rmtree(self._scratch, ignore_errors=True)

    def export(self, folder: str) -> list[str]:
        """Stop the profiler and keep its XPlane files, ``<host>.rank<r>.<pid>.<time>.xplane.pb``."""
        self.finish()
        return collected(self._scratch, folder, self.options)

    def lighter(self) -> Backend | None:
        """Without Python's stacks."""
        return type(self)(replace(self.options, stacks=False)) if self.options.stacks else None

    def facts(self) -> dict[str, Any]:
        """The lines of the job that its thread was at, what looking took, and which files are packages', as the
        profile keeps no folders."""
        own = self._own | own_files() | self._lines.files()
        return self._lines.facts() | self._lines.cost() | {"package_files": package_files(own)}

    def switches(self) -> dict[str, dict[str, Any]]:
        """Stacks."""
        return {"stacks": {"on": self.options.stacks, "adds": "the Python code that launches and waits"}}

    @abstractmethod
    def start(self, folder: str) -> None:
        """The framework's own start."""

    @abstractmethod
    def finish(self) -> None:
        """The framework's own stop, which writes the files."""

    @abstractmethod
    def step_range(self, number: int) -> Any:
        """A context manager that marks a step in the profile."""

    @abstractmethod
    def collection_range(self) -> Callable[[], Any]:
        """What makes a context manager that marks a collection of garbage."""


class JaxBackend(XPlaneBackend):
    """``jax.profiler``."""

    framework = "jax"

    def start(self, folder: str) -> None:
        """Start, with Python's stacks where they are wanted (JAX 0.7 and later can leave them out). What was launched
        before is done by then: what the devices run next is what the recorded calls launch."""
        _wait_for_devices()
        profiler: Any = import_module("jax.profiler")
        if not hasattr(profiler, "ProfileOptions"):
            profiler.start_trace(folder)
            return
        options = profiler.ProfileOptions()
        options.python_tracer_level = int(self.options.stacks)
        profiler.start_trace(folder, profiler_options=options)

    def stop(self) -> None:
        """End the last step's range, and wait until its work is done: else the recording may end before the devices,
        many steps behind the host, have begun any of it."""
        super().stop()
        _wait_for_devices()

    def finish(self) -> None:
        """Stop."""
        import_module("jax.profiler").stop_trace()

    def step_range(self, number: int) -> Any:
        """``StepTraceAnnotation``."""
        return import_module("jax.profiler").StepTraceAnnotation("train", step_num=number)

    def collection_range(self) -> Callable[[], Any]:
        """``TraceAnnotation``."""
        return partial(import_module("jax.profiler").TraceAnnotation, NAME)


def _wait_for_devices() -> None:
    """Return once all arrays are computed; the job, on its own thread, may delete some meanwhile."""
    for array in getattr(import_module("jax"), "live_arrays", list)():
        with suppress(RuntimeError):
            array.block_until_ready()


_NO_PYTHON_FROM = (2, 21)
"""The first TensorFlow that was seen to ignore the options given to ``start``: it records no Python code in-process."""


class TensorflowBackend(XPlaneBackend):
    """``tf.profiler.experimental``."""

    framework = "tensorflow"

    def start(self, folder: str) -> None:
        """Start."""
        profiler: Any = import_module("tensorflow.python.profiler.profiler_v2")
        profiler.start(folder, profiler.ProfilerOptions(python_tracer_level=int(self.options.stacks)))

    def finish(self) -> None:
        """Stop."""
        import_module("tensorflow.python.profiler.profiler_v2").stop()

    def step_range(self, number: int) -> Any:
        """``Trace`` with ``_r=1``. It begins when it is made."""
        return import_module("tensorflow.python.profiler.trace").Trace("train", step_num=number, _r=1)

    def collection_range(self) -> Callable[[], Any]:
        """``Trace``."""
        return partial(import_module("tensorflow.python.profiler.trace").Trace, NAME)

    def switches(self) -> dict[str, dict[str, Any]]:
        """Stacks, and the log of where ops were placed."""
        context: Any = import_module("tensorflow.python.eager.context")
        placed = bool(context.context().log_device_placement)
        switches = {**super().switches(), "device_placement": {"on": placed, "adds": "why ops run on the host"}}
        if _release(self.version()) >= _NO_PYTHON_FROM:
            switches["stacks"] |= {
                "on": False,
                "instead": "stepscope capture, from tf.profiler.experimental.server.start",
            }
        return switches


def _release(version: str) -> tuple[int, ...]:
    """``2.21.0-rc1`` as (2, 21)."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


class TorchXlaBackend(XPlaneBackend):
    """``torch_xla.debug.profiler``."""

    framework = "torch_xla"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._metrics: dict[str, str] = {}

    def begin(self, number: int | None) -> None:
        """The same, with what has been counted so far."""
        self._metrics["before"] = metrics_report()
        super().begin(number)

    def stop(self) -> None:
        """The same, with what has been counted by now."""
        super().stop()
        self._metrics["after"] = metrics_report()

    def facts(self) -> dict[str, Any]:
        """The same, with PyTorch/XLA's own counters, as the window began and as it ended."""
        return super().facts() | ({"metrics": self._metrics} if self._metrics.get("after") else {})

    def start(self, folder: str) -> None:
        """Start."""
        profiler = import_module("torch_xla.debug.profiler")
        if not hasattr(profiler, "start_trace"):
            raise Declined("this PyTorch/XLA is too old to be recorded from within (torch_xla 2.8 has start_trace)")
        profiler.start_trace(folder)

    def finish(self) -> None:
        """Stop."""
        import_module("torch_xla.debug.profiler").stop_trace()

    def step_range(self, number: int) -> Any:
        """What ``Trace`` is made of.

        ``StepTrace`` synchronises where the job does not, and ``Trace`` opens a scope of op names, within which the
        job's own ``sync`` fails ("Expecting scope to be empty").
        """
        return import_module("torch_xla.debug.profiler").Trace.__base__("train", step_num=number, _r=1)

    def collection_range(self) -> Callable[[], Any]:
        """What ``Trace`` is made of."""
        return partial(import_module("torch_xla.debug.profiler").Trace.__base__, NAME)

    def lighter(self) -> Backend | None:
        """There is nothing to leave out."""
        return None

    def switches(self) -> dict[str, dict[str, Any]]:
        """Debug information of ops; Python code it never records."""
        on = any(os.environ.get(name, "0") not in ("", "0") for name in ("XLA_HLO_DEBUG", "XLA_IR_DEBUG"))
        stacks = super().switches()["stacks"] | {"on": False, "instead": "xp.Trace around parts of a step"}
        return {"stacks": stacks, "XLA_HLO_DEBUG": {"on": on, "adds": "name scopes and source lines of ops"}}
