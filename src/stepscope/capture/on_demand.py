"""Windows that are asked for while a PyTorch job runs: its next steps, or a stretch of time where it has none.

The thread that trains starts, marks and stops the profiler, between two steps; whoever asks waits on another thread.
The broad handlers of this file stand between our code and the user's.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from types import FrameType
from typing import Any

from .backend import Backend, Declined
from .options import Options
from .place import resident_bytes
from .state import shared
from .steps import EXPLICIT, SOURCES, StepFinder
from .torch_backend import TorchBackend, sessions
from .watchdog import MainThread

PATIENCE_S = 2.0
"""A job in which no step has ended for so long, or for ``PATIENT_STEPS`` of its steps, is recorded where it stands."""
PATIENT_STEPS = 4
MAIN_THREAD_S = 10.0
"""The main thread is asked to start or stop for so long: within a long call of C code it does not listen."""
_EVERY_S = 0.05
_KEPT_TIMES = 16


@dataclass(frozen=True)
class WindowRequest:
    """What one window is to hold; the window ends after ``bound_s`` seconds, with whole steps or without."""

    folder: str
    bound_s: float
    duration_s: float = 0.0
    steps: int = 0
    """Steps instead of a duration, where not 0."""
    stacks: bool = False
    shapes: bool = False
    memory: bool = False


class _Phase(Enum):
    WAITING = "waiting"
    WARMING = "warming up"
    RECORDING = "recording"
    DONE = "done"


@dataclass
class _Window:
    asked: WindowRequest
    backend: Backend
    phase: _Phase = _Phase.WAITING
    thread: int | None = None
    opened: float = 0.0
    steps: int = 0
    has_steps: bool = True
    ends_early: bool = False
    given_up: bool = False
    error: Exception | None = None
    memory: int | None = field(default_factory=resident_bytes)
    make_way: Callable[[], None] | None = None
    """Who made way for other profilers before."""
    began: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def is_over(self) -> bool:
        """Whether it holds what was asked for."""
        if self.ends_early or not self.asked.steps:
            return self.ends_early or time.monotonic() - self.opened >= self.asked.duration_s
        return self.steps >= self.asked.steps

    def overdue(self) -> str | None:
        """Why it must not wait for a step to end; None while it may."""
        lasted = time.monotonic() - self.opened
        if lasted > self.asked.bound_s:
            return f"it lasted {lasted:.0f} s"
        if not self.has_steps and self.is_over():
            return "it is over"
        now = resident_bytes()
        if now is not None and self.memory is not None and now - self.memory > Options().max_memory:
            return "the job grew too much"
        return None


class OnDemand:
    """Counts a job's steps, at next to no cost, and records some when asked."""

    def __init__(self, make: Callable[[Options], Backend] = TorchBackend) -> None:
        self.on_done: list[Callable[[], None]] = []
        """Called when no more is to be recorded: hooks are taken out."""
        self._make = make
        self._reset()

    def _reset(self) -> None:
        self._finder = StepFinder()
        self._times: deque[int] = deque(maxlen=_KEPT_TIMES)
        self._since: int | None = None
        self._said: int | None = None
        self._window: _Window | None = None
        self._lock = threading.Lock()
        """Held while a window changes its phase. Not reentrant: what the main thread does on request may come in the
        middle of what it does itself, and must then wait."""

    # --- what hooks call ----------------------------------------------------------------------------------------------

    def call(self, source: int, key: tuple[str | None, Hashable]) -> None:
        """An optimizer stepped, a model is called, or the job said ``step``. Never raises."""
        window = self._window
        if window is not None and window.thread not in (None, threading.get_ident()):
            return
        try:
            ends, changed = self._finder.is_edge(source, key)
            if changed:
                self._times.clear()
                self._since = None
            if not ends:
                return
            now = time.perf_counter_ns()
            if self._since is not None:
                self._times.append(now - self._since)
            if window is not None:
                self._changing(window, self._at_edge)
            self._since = now if window is None else time.perf_counter_ns()
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            print(f"stepscope: steps are not counted: {error}", file=sys.stderr)
            self.close()

    def step(self, number: int | None = None) -> None:
        """The job itself says that step ``number`` ended."""
        if number is not None:
            self._said = number + 1
        self.call(EXPLICIT, (None, "step"))

    def make_way(self) -> None:
        """The job's own profiler starts: ours ends, keeping the steps it has. Never raises."""
        window = self._window
        if window is not None:
            window.error = None if window.steps else Declined("the job started a profiler of its own")
            self._changing(window, self._stop)

    # --- what is asked of it ------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Steps so far, how they were found and how long one takes (ns), the framework's version; None: not known."""
        times, source = list(self._times), self._finder.source
        return {
            "steps": self._finder.steps,
            "steps_from": None if source is None else SOURCES[source],
            "step_ns": sum(times) // len(times) if times else None,
            "torch": getattr(sys.modules.get("torch"), "__version__", None),
            "recording": self._window is not None,
        }

    def capture(self, asked: WindowRequest) -> str:
        """Record a window; the profile's path in the folder named. Raises Declined where there is none."""
        window = self._opened(asked)
        try:
            self._await(window)
            if window.error is not None:
                raise window.error
            (path,) = window.backend.export(asked.folder)
            return path
        finally:
            if window.phase is not _Phase.DONE:
                window.given_up = True  # The next edge ends it.
            else:
                self._window = None

    def end(self) -> None:
        """End the window that runs, if one does, with what it has."""
        if self._window is not None:
            self._window.ends_early = True

    def close(self) -> None:
        """Record no more; for the thread that trains. A window that runs ends with what it has."""
        taken, self.on_done = self.on_done, []
        for take_out in taken:
            take_out()
        window = self._window
        if window is not None:
            window.error = None if window.phase is _Phase.RECORDING else Declined("the job ended")
            self._changing(window, self._stop)

    def forked(self) -> None:
        """This is a child of the process that was asked."""
        self._reset()

    # --- the window, on the thread that trains ------------------------------------------------------------------------

    def _opened(self, asked: WindowRequest) -> _Window:
        if "torch" not in sys.modules:
            raise Declined("PyTorch is not imported in this process; other frameworks have servers of their own")
        if self._window is not None:
            raise Declined("another profiling session is active in this process")
        if shared.session is not None:
            raise Declined("stepscope.profile records in this process; only one can at a time")
        if shared.recorder is not None and shared.recorder.phase.value in ("warming up", "recording"):
            raise Declined("stepscope run records in this process; only one can at a time")
        options = Options(out=asked.folder, stacks=asked.stacks, shapes=asked.shapes, memory=asked.memory)
        self._window = window = _Window(asked, self._make(options))
        return window

    def _changing(self, window: _Window, change: Callable[[_Window], None]) -> None:
        """Make a change unless one is being made; what fails ends the window."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if window.phase is not _Phase.DONE:
                change(window)
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            window.error = error
            self._done(window)
        finally:
            self._lock.release()

    def _at_edge(self, window: _Window) -> None:
        number = self._finder.number if self._said is None else self._said
        if window.given_up or (window.ends_early and window.phase is _Phase.WAITING):
            window.error = Declined("it was ended before its first step")
            self._stop(window)
            self._window = None
        elif window.phase is _Phase.WAITING:
            self._claim(window)
            window.backend.prepare(number)
            window.phase = _Phase.WARMING
            self._began(window)
        elif window.phase is _Phase.WARMING:
            window.backend.begin(number)
            window.phase, window.opened = _Phase.RECORDING, time.monotonic()
        else:
            window.steps += 1
            if window.is_over():
                self._stop(window)
            else:
                window.backend.mark(number)

    def _without_steps(self, window: _Window) -> None:
        """On the main thread, wherever it stands but in an import: record until the time is over."""
        if window.phase is not _Phase.WAITING or _imports():
            return
        self._claim(window)
        window.has_steps = False
        window.backend.begin(None)
        window.phase = _Phase.RECORDING
        self._began(window)

    def _claim(self, window: _Window) -> None:
        self._finder.freeze()
        window.thread = threading.get_ident()
        window.make_way, sessions.make_way = sessions.make_way, self.make_way

    def _began(self, window: _Window) -> None:
        window.opened = time.monotonic()
        window.began.set()

    def _stop(self, window: _Window) -> None:
        try:
            if window.phase is _Phase.RECORDING and window.error is None:
                window.backend.stop()
            elif window.phase is not _Phase.WAITING:
                window.error = window.error or Declined("it was ended before its first step")
                window.backend.discard()
            else:
                window.error = window.error or Declined("it was ended before its first step")
        finally:
            self._done(window)

    def _done(self, window: _Window) -> None:
        if window.thread is not None:
            sessions.make_way = window.make_way
            self._finder.thaw()
        window.phase = _Phase.DONE
        window.began.set()
        window.done.set()

    # --- the window, on the thread that asks --------------------------------------------------------------------------

    def _await(self, window: _Window) -> None:
        """Until the window is over. Raises Declined where the job does not answer."""
        usual_s = max(self._times, default=0) / 1e9
        patience_s = min(max(PATIENCE_S, PATIENT_STEPS * usual_s), window.asked.bound_s)
        if not window.began.wait(patience_s):
            if window.ends_early:
                raise self._withdrawn(window, "it was ended before its first step")
            if window.asked.steps:
                raise self._withdrawn(
                    window, f"no step ended within {patience_s:.0f} s: call stepscope.step() once per iteration, or "
                    "record a duration"
                )  # fmt: skip
            self._on_main_thread(window, self._without_steps, window.began)
        while not window.done.wait(_EVERY_S):
            if window.overdue() is not None:
                if window.has_steps and window.thread != threading.main_thread().ident:
                    raise Declined("its steps are not those of the main thread, and the last did not end in time")
                self._on_main_thread(window, self._stop, window.done)

    def _on_main_thread(self, window: _Window, change: Callable[[_Window], None], until: threading.Event) -> None:
        ends, main_thread = time.monotonic() + MAIN_THREAD_S, MainThread(lambda: self._changing(window, change))
        while time.monotonic() < ends:
            main_thread.ask()
            if until.wait(1.0):
                return
        raise self._withdrawn(
            window, f"the job's main thread was in one call, or importing modules, for {MAIN_THREAD_S:g} s"
        )

    def _withdrawn(self, window: _Window, why: str) -> Declined:
        """Nothing is recorded any more, if nothing is yet."""
        with self._lock:
            if window.phase is _Phase.WAITING:
                self._done(window)
        return Declined(why)


def _imports() -> bool:
    """Whether this thread imports a module: of those half imported the profiler may need one."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
