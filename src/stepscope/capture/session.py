"""The session API: ``profile`` around the loop, ``step`` once per iteration."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from types import TracebackType
from typing import Any

from .state import shared

WAIT_S = 300
"""Leaving a session waits this long for its profiles to be written."""


class Action(Enum):
    """What happens to a step."""

    WAIT = "wait"
    WARM_UP = "warm up"
    RECORD = "record"


@dataclass(frozen=True)
class Schedule:
    """Which steps are recorded: per cycle ``wait`` untouched ones, ``warmup`` thrown away, ``active`` recorded."""

    wait: int
    warmup: int
    active: int
    repeat: int

    def at(self, index: int) -> tuple[Action, int]:
        """What happens to a step (counted from 0), and in which cycle."""
        cycle, place = divmod(index, self.wait + self.warmup + self.active)
        if self.repeat and cycle >= self.repeat:
            return Action.WAIT, self.repeat
        if place < self.wait:
            return Action.WAIT, cycle
        return (Action.WARM_UP if place < self.wait + self.warmup else Action.RECORD), cycle

    def until(self, index: int) -> float:
        """The step that ends the waiting, or the recording, which a step is part of; infinite where none does."""
        length = self.wait + self.warmup + self.active
        if self.repeat and index >= self.repeat * length:
            return math.inf
        begins = index - index % length
        return begins + self.wait if index < begins + self.wait else begins + length


def schedule(*, wait: int = 5, warmup: int = 1, active: int = 6, repeat: int = 1) -> Schedule:
    """Steps to leave alone, to warm the profiler up with, and to record; ``repeat`` 0 is until the end.

    Raises ValueError where no step would be recorded.
    """
    if min(wait, warmup, repeat) < 0 or active < 1:
        raise ValueError("schedule: active is 1 or more; wait, warmup and repeat are 0 or more")
    return Schedule(wait, warmup, active, repeat)


class profile:
    """Record a part of a loop: ``with stepscope.profile("profiles", schedule=...):``, and ``stepscope.step()`` in it.

    Writes a profile per cycle, and a manifest, into the folder ``out``: Kineto JSON from PyTorch, XPlane from the
    others, whichever is imported; ``framework`` (torch, jax, tensorflow, tensorflow_session, torch_xla) says which of
    several. Without a schedule everything is recorded, a step per ``step`` call; the first has the number ``first``.
    ``stacks``, ``shapes`` and ``memory`` make profiles say more and steps slower. ``on_trace_ready`` gets the path of
    each finished profile, on a thread of ours. With ``tensorboard`` XPlane files lie below ``plugins/profile``, where
    TensorBoard looks for them. Nothing of this ends the job: what fails is in ``declined`` or the manifest, and said on
    stderr.
    """

    def __init__(  # noqa: PLR0913  What a person may choose.
        self,
        out: str,
        *,
        schedule: Schedule | None = None,
        stacks: bool = True,
        shapes: bool = False,
        memory: bool = False,
        on_trace_ready: Callable[[str], object] | None = None,
        framework: str | None = None,
        first: int = 0,
        tensorboard: bool = False,
    ) -> None:
        from .manifest import Manifest
        from .options import Options

        self.schedule = schedule
        self.declined: str | None = None
        """Why nothing is recorded; None while something is."""
        self.files: list[str] = []
        """Profiles written so far."""
        self._options = Options(out=str(out), stacks=stacks, shapes=shapes, memory=memory, tensorboard=tensorboard)
        self._framework = framework
        self._manifest = Manifest(self._options.out)
        self._on_trace_ready = on_trace_ready
        self._backend: Any = None
        self._recording = False
        self._cycle = -1
        self._watching = False
        self.starts_now = False
        """While our own profiler starts."""
        self.on_done: list[Callable[[], None]] = []
        """Called when the session is left: hooks are taken out."""
        self._index = 0
        self._began = 0
        """The step that recording began with."""
        self._until: float = 0
        """The step up to which nothing changes."""
        self._number = first
        self._exporting: threading.Thread | None = None

    def __enter__(self) -> profile:
        """Begin with the schedule's first step."""
        if shared.session is not None:
            self._decline("another stepscope profile records in this process; only one can at a time")
            return self
        shared.session = self
        if shared.recorder is not None:
            shared.recorder.decline("the script records by itself, with stepscope.profile")
            shared.recorder.make_way()
        self._guarded(self._move)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what was recorded, and wait for it."""
        if shared.session is not self:
            return
        shared.session = None
        self._guarded(self._close)
        if self._exporting is not None:
            self._exporting.join(WAIT_S)
        for take_out in self.on_done:
            self._guarded(take_out)
        self._write_last()
        if not (self.files or self.declined or self._manifest.failures):  # Those have been said.
            print(f"stepscope: no profile was written because {self._why_none()}", file=sys.stderr)

    def step(self, number: int | None = None) -> None:
        """Iteration ``number`` (by default the one after the last) ends. Never raises."""
        self._number = (self._number if number is None else number) + 1
        self._index += 1
        if self._index < self._until:
            if not self._recording:
                return
            try:  # As short as it can be: stacks of all this are recorded too.
                self._backend.mark(self._number)
            except Exception as error:  # noqa: BLE001  Between our code and the user's.
                self._failed(error)
        elif self.declined is None:
            self._guarded(self._move)

    def make_way(self) -> None:
        """Another profiler starts in this process: ours ends, keeping what it has."""
        if self.declined is not None or self._backend is None:
            return
        waits = self._backend.stops_on_export
        self._guarded(self._close)
        if waits and self._exporting is not None:
            self._exporting.join(WAIT_S)
        self._decline("the script started a profiler of its own within stepscope.profile")

    # --- what happens at the edge of a step -----------------------------------------------------------------------

    def _move(self) -> None:
        action, cycle = (Action.RECORD, 0) if self.schedule is None else self.schedule.at(self._index)
        if cycle != self._cycle or action is Action.WAIT:
            self._close()
            self._cycle = cycle
        if action is not Action.WARM_UP:
            self._until = math.inf if self.schedule is None else self.schedule.until(self._index)
        if action is Action.WARM_UP and self._backend is None:
            self._backend = self._made()
            self._backend.prepare(self._number)
        elif action is Action.RECORD:
            self._backend = self._backend or self._made()
            self._backend.begin(self._number)
            if not self._recording:
                self._began = self._index
            self._recording = True

    def _made(self) -> Any:
        from .frameworks import make_backend
        from .own_profilers import make_way

        backend = make_backend(self._options, self._framework)
        if not self._watching:
            self._watching = True
            make_way(self, backend.framework)
            if backend.framework == "tensorflow_session":
                from .tensorflow_hooks import trace_sessions

                trace_sessions(self, lambda: self._backend)
        if backend.stops_on_export and self._exporting is not None:
            self._exporting.join(WAIT_S)  # The profiler of the last cycle still runs.
        return backend

    def _close(self) -> None:
        """End the cycle, if one runs, and write it on another thread, after the one before."""
        backend, recording = self._backend, self._recording
        self._backend, self._recording = None, False
        if backend is None:
            return
        if not recording:
            backend.discard()
        else:
            backend.stop()
            given = backend, self._exporting, self._index - self._began
            self._exporting = threading.Thread(target=self._export, args=given, name="stepscope-export")
            try:
                self._exporting.start()
            except RuntimeError:  # The interpreter ends, and starts no threads.
                self._exporting = None
                self._export(*given)

    def _export(self, backend: Any, before: threading.Thread | None, steps: int) -> None:
        if before is not None:
            before.join()
        try:
            paths = backend.export(self._options.out)
            self.files += paths
            self._manifest.wrote(paths, steps=steps, **backend.facts())
            self._write(framework=backend.framework, framework_version=backend.version())
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._manifest.failed("writing the profile", error)
            print(f"stepscope: a profile could not be written: {error}", file=sys.stderr)
            return
        for path in paths:
            self._ready(path)

    def _ready(self, path: str) -> None:
        if self._on_trace_ready is None:
            return
        try:
            self._on_trace_ready(path)
        except Exception as error:  # noqa: BLE001  The user's code, on a thread of ours.
            self._manifest.failed("on_trace_ready", error)
            text = f"on_trace_ready failed ({type(error).__name__}: {error}); the profile is there: {path}"
            print(f"stepscope: {text}", file=sys.stderr)

    def _write(self, **facts: Any) -> None:
        chosen = None if self.schedule is None else vars(self.schedule)
        self._manifest.write(
            replace(self._options), steps_seen=self._index, schedule=chosen, no_profile=self._why_none(), **facts
        )

    def _write_last(self) -> None:
        """The same at the end. A folder that takes no file has been told of where a profile was to go there."""
        told = bool(self._manifest.failures)
        try:
            self._write()
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._manifest.failed("writing the manifest", error)
            if not told:
                self._decline(f"the manifest could not be written ({error})")

    def _why_none(self) -> str | None:
        if self.files:
            return None
        if self.declined is not None:
            return self.declined
        if self.schedule is None:
            return "the profiler wrote nothing"
        needed = self.schedule.wait + self.schedule.warmup + 1
        if self._index + 1 < needed:
            ended = "1 step" if self._index == 1 else f"{self._index} steps"
            return f"only {ended} ended (stepscope.step()), and recording begins after {needed - 1}"
        if self._exporting is not None and self._exporting.is_alive():
            return f"writing it takes longer than {WAIT_S} s"
        return "the profiler wrote nothing"

    def _guarded(self, action: Callable[[], None]) -> None:
        from .backend import Declined

        self.starts_now = True  # What starts in here is ours.
        try:
            action()
        except Declined as reason:
            self._decline(str(reason))
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._failed(error)
        finally:
            self.starts_now = False

    def _failed(self, error: Exception) -> None:
        backend = self._backend
        self._manifest.failed("recording", error)
        self._decline(f"recording failed ({type(error).__name__}: {error})")
        with suppress(Exception):  # What has failed may fail again.
            backend.discard()

    def _decline(self, reason: str) -> None:
        if self.declined is None:
            self.declined = reason
            self._backend, self._recording = None, False
            print(f"stepscope: nothing more is recorded: {reason}", file=sys.stderr)


def step(number: int | None = None) -> None:
    """Say that iteration ``number`` ends, by default the one after the last; nearly free while nothing records."""
    active = shared.session or shared.recorder
    if active is not None:
        active.step(number)
    if shared.on_demand is not None:
        shared.on_demand.step(number)
