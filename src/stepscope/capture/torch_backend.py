"""PyTorch: one window of ``torch.profiler``, and who else uses it.

A second profile started while one is active takes its session over, and exporting the first one then ends the process
(PyTorch 2.13): sessions are therefore followed, others are declined, and ours makes way for the job's own.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from .backend import Backend, Declined, placed, whole
from .forks import end_well
from .garbage import NAME, Collections
from .lines import ThreadLines, working_thread
from .options import PROFILER_WARM_UP, Options
from .place import file_stem
from .state import shared
from .torch_lines import add_lines

_NO_WORK = ("PyTorch Profiler", "python_", "[memory]")
"""What profiles hold beside what ran."""


class Sessions:
    """Profiler sessions of this process, ours and others."""

    def __init__(self) -> None:
        self.active: set[int] = set()
        self.make_way: Callable[[], None] | None = None
        """Called when another session is about to start while ours runs."""
        self.ours: int | None = None

    def follow(self, profile: Any) -> None:
        """Notice every session of ``torch.autograd.profiler.profile``, which ``torch.profiler`` is made of."""
        if getattr(profile, "_stepscope_followed", False):
            return
        profile._stepscope_followed = True
        prepare, start, leave = profile._prepare_trace, profile._start_trace, profile.__exit__

        def entered(session: Any) -> None:
            if self.make_way is not None and self.ours is not None and id(session) != self.ours:
                self.make_way()
            self.active.add(id(session))

        def _prepare_trace(session: Any) -> Any:
            entered(session)
            return prepare(session)

        def _start_trace(session: Any) -> Any:
            entered(session)
            return start(session)

        def __exit__(session: Any, *error: Any) -> Any:
            try:
                return leave(session, *error)
            finally:
                self.active.discard(id(session))

        profile._prepare_trace, profile._start_trace, profile.__exit__ = _prepare_trace, _start_trace, __exit__


# One for every copy of this package in the process: classes are followed once.
sessions: Sessions = shared.sessions or Sessions()
shared.sessions = sessions


class TorchBackend(Backend):
    """Kineto JSON, gzip, of the thread that trains and of the devices it uses."""

    framework = "torch"
    warm_up = PROFILER_WARM_UP

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._profile: Any = None
        self._action: Any = None
        self._before = 1
        """What ``step`` adds to the number it finds."""
        self._is_stretch = False
        self._lines = ThreadLines()
        self._collections = Collections()

    def version(self) -> str:
        """PyTorch's version."""
        return str(getattr(sys.modules.get("torch"), "__version__", ""))

    def prepare(self, number: int) -> None:
        """Create the profiler and let it warm up."""
        self._action = import_module("torch.profiler").ProfilerAction.WARMUP
        self._start(number, lambda step: self._action)

    def begin(self, number: int | None) -> None:
        """Record from step ``number`` on."""
        if number is None:
            self._is_stretch = True
            self._start(0, None)  # Without a schedule it calls nothing a step.
        else:
            if self._profile is None:
                self.prepare(number - 1)
            self._action = type(self._action).RECORD
            with _Claimed():
                self.mark(number)
        if self.options.stacks:
            # After the profiler, which records the threads that it finds: this one is no part of the job.
            self._lines.start(working_thread())
        self._collections.start(_collection_range())

    def _start(self, number: int, schedule: Callable[[int], Any] | None) -> None:
        torch, profiler = sys.modules["torch"], import_module("torch.profiler")
        sessions.follow(torch.autograd.profiler.profile)
        if sessions.active or torch.autograd._profiler_enabled():
            raise Declined("another PyTorch profiler was at work in this process; only one can record at a time")
        end_well()
        self._profile = profiler.profile(
            schedule=schedule,
            with_stack=self.options.stacks,
            record_shapes=self.options.shapes,
            profile_memory=self.options.memory,
        )
        self._profile.step_num = number
        self._before = 1 - _names_late(type(self._profile))
        with _Claimed(), _Quiet(self._profile):
            self._profile.start()
        sessions.ours = id(self._profile.profiler)  # from its warm-up on: two cannot be prepared at once either

    def mark(self, number: int) -> None:
        """``ProfilerStep#<number>`` begins."""
        profile = self._profile
        profile.step_num = number - self._before
        profile.step()

    def stop(self) -> None:
        """End the session."""
        self._lines.stop()
        self._collections.stop()
        sessions.ours = None
        if self._profile is not None:
            self._tell()
            with _Claimed():
                self._profile.stop()

    def _tell(self) -> None:
        """Write into the profile what PyTorch does not: whether this process can use a device at all."""
        if _is_of_the_cpu(self._profile):
            with suppress(RuntimeError):  # A profiler that is not at work takes nothing.
                self._profile.add_metadata_json("stepscope", '{"accelerators": 0}')

    def discard(self) -> None:
        """End the session; PyTorch would warn of a schedule that ends within its warm-up."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.stop()

    def export(self, folder: str) -> list[str]:
        """Write ``<host>.rank<r>.<pid>.<time>.pt.trace.json.gz``, which TensorBoard's PyTorch plugin finds too."""
        os.makedirs(folder, exist_ok=True)
        part = os.path.join(folder, f".{file_stem()}.part.json")
        profile, self._profile = self._profile, None  # Its events are the memory that recording took.
        if self._is_stretch and not _anything(profile):
            raise Declined("nothing of PyTorch ran in the time that was recorded")
        profile.export_chrome_trace(part)
        whole(part)
        add_lines(profile, part, self._lines.looks())
        return [placed(part, folder, ".pt.trace.json.gz", self.options.max_bytes, compress=True)]

    def facts(self) -> dict[str, Any]:
        """What looking at the job's lines took; the profile itself holds them."""
        return self._lines.cost()

    def lighter(self) -> Backend | None:
        """Without stacks, shapes and memory."""
        options = self.options
        if not (options.stacks or options.shapes or options.memory):
            return None
        return type(self)(replace(options, stacks=False, shapes=False, memory=False))

    def switches(self) -> dict[str, dict[str, Any]]:
        """Stacks, shapes, memory."""
        options = self.options
        return {
            "stacks": {"on": options.stacks, "adds": "source lines of what costs time"},
            "shapes": {"on": options.shapes, "adds": "FLOPs, dtypes and which sizes to pad"},
            "memory": {"on": options.memory, "adds": "the memory timeline and what was alive at the peak"},
        }


def _collection_range() -> Callable[[], Any] | None:
    """A range that is no op of the dispatcher, as a collection begins anywhere; None before PyTorch 2.2."""
    made = getattr(sys.modules["torch"]._C._profiler, "_RecordFunctionFast", None)
    return None if made is None else partial(made, NAME)


def _anything(profile: Any) -> bool:
    """Whether it holds an op or a range."""
    results = getattr(profile.profiler, "kineto_results", None)
    return results is None or any(True for event in results.events() if not event.name().startswith(_NO_WORK))


def _is_of_the_cpu(profile: Any) -> bool:
    """Whether it records no device: without our asking for any activity, those that PyTorch found."""
    return {str(activity.name) for activity in getattr(profile, "activities", ())} == {"CPU"}


def _names_late(profile: Any) -> bool:
    """Whether ``step`` gives the step that begins the number it finds (PyTorch 2.0 to 2.2 at least), not the next."""
    return "cur_step" in profile.step.__code__.co_varnames


class _Claimed:
    """While our own session starts, no one has to make way for it."""

    def __enter__(self) -> None:
        self._kept, sessions.make_way = sessions.make_way, None

    def __exit__(self, *error: Any) -> None:
        sessions.make_way = self._kept


class _Quiet:
    """While our own session starts, Kineto finds that it is to log nothing, unless the job says what it is to log.

    It asks once, before its first session, and logs the begin and end of each above all levels but this. Where a device
    is recorded it logs why that fails: nothing is kept back there.
    """

    _LEVEL = "KINETO_LOG_LEVEL"
    _NOTHING = "6"

    def __init__(self, profile: Any) -> None:
        self._sets = _is_of_the_cpu(profile) and self._LEVEL not in os.environ

    def __enter__(self) -> None:
        if self._sets:
            os.environ[self._LEVEL] = self._NOTHING

    def __exit__(self, *error: Any) -> None:
        if self._sets:
            os.environ.pop(self._LEVEL, None)
