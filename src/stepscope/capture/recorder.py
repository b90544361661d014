"""The recording of one process under ``stepscope run``: skip, settle, record, time a few more steps, stop.

Whatever fails here is written to the manifest, and the job goes on: the broad handlers of this file stand between our
code and the user's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from enum import Enum
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from .backend import Backend, Declined
from .manifest import Manifest
from .options import Options, fewest_steps
from .periods import Periods
from .place import is_first_of_host, is_launcher, rank_and_world
from .settling import Settling
from .steps import EXPLICIT, SOURCES, StepFinder
from .watchdog import Watchdog, on_main_thread
from .window import Window

EXPORT_WAIT_S = 300
"""A process that ends waits this long for its profile to be written."""
_MOST_PASSED = 64
"""Steps that are only counted and timed, before what they mean is looked at."""


class Phase(Enum):
    """Where a recording stands."""

    SETTLING = "settling"
    WARMING = "warming up"
    RECORDING = "recording"
    EXPORTING = "exporting"
    AFTER = "timing"
    WATCHING = "watching"
    DONE = "done"


class Recorder:
    """Turns calls of the job into steps, and some of the steps into a profile."""

    def __init__(self, options: Options, make: Callable[[Options, str | None], Backend]) -> None:
        self.options = options
        self.manifest = Manifest(options.out)
        self.on_done: list[Callable[[], None]] = []
        """Called once nothing more is to be noticed: hooks are taken out."""
        self._make = make
        self._lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self.phase = Phase.SETTLING
        self._finder = StepFinder()
        self.backend: Backend | None = None
        self.starts_now = False
        """While our own profiler starts."""
        self._since = 0
        """When the step that runs began; 0 where that is not known."""
        self._anchor: Hashable | None = None
        self._spare = 0
        """Steps that may pass, by calls of the anchor, before more than their time is needed."""
        self._passed: list[int] = []
        """Times of those that have."""
        self._thread: int | None = None
        self._exporting: threading.Thread | None = None
        self._settling = Settling()
        self._window = Window(self.options)
        self._said: int | None = None
        self._periods = Periods(self.options.watch)

    # --- what hooks call ------------------------------------------------------------------------------------------

    def call(self, source: int, key: tuple[str | None, Hashable]) -> None:
        """An optimizer stepped, a function was called, or the job said ``step``. Never raises.

        ``key`` is the framework, and what stays the same of the thing that was called.
        """
        now = perf_counter_ns()
        # Caches are cold in here: what runs every step is this, and little more.
        if self._spare and (self._thread is None or self._thread == get_ident()):
            if key == self._anchor:
                self._spare -= 1
                self._passed.append(now - self._since)
                self._since = now
                return
            if self.phase is Phase.WATCHING:  # The anchor stays what it is.
                return
        if self.phase is Phase.DONE:
            return
        try:
            self._call(now, source, key)
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._failed(self.phase.value, error)

    def step(self, number: int | None = None) -> None:
        """The job itself says that step ``number`` ended."""
        if number is not None:
            self._said = number + 1
        self.call(EXPLICIT, (None, "step"))

    def make_way(self) -> None:
        """The job's own profiler starts: ours ends, keeping the steps it has. Never raises."""
        try:
            self._close("the job started its own profiler")
            if self.backend is not None and self.backend.stops_on_export and self._exporting is not None:
                self._exporting.join(EXPORT_WAIT_S)
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._failed("making way", error)

    def decline(self, reason: str) -> None:
        """Record nothing, for this reason."""
        if self.phase is Phase.SETTLING:
            self._window.ended = reason
            self._done()

    def finish(self) -> None:
        """The process ends: write what there is. Never raises."""
        try:
            self._catch_up()
            self._periods.end()
            self._close("the job ended", here=True)
            if self._exporting is not None and self._exporting is not threading.current_thread():
                self._exporting.join(EXPORT_WAIT_S)
                if self._exporting.is_alive():
                    self._window.ended = f"writing the profile took longer than {EXPORT_WAIT_S} s and was given up"
            self._done()
            if self._finder.steps or not is_launcher():
                self._write()
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._failed("the end", error)

    def forked(self) -> None:
        """This is a child of the process that made us: its steps are its own, and a running window its parent's."""
        recording = self.phase in (Phase.WARMING, Phase.RECORDING)
        self._lock = threading.RLock()
        self._reset()
        self.manifest = Manifest(self.options.out)
        if recording:
            self._window.ended = "this process was forked while its parent recorded"
            self.phase = Phase.DONE

    # --- steps ----------------------------------------------------------------------------------------------------

    def _call(self, now: int, source: int, key: tuple[str | None, Hashable]) -> None:
        if self._thread is not None and self._thread != get_ident():
            return
        if self._spare or self._passed:
            self._catch_up()
        ends, changed = self._finder.is_edge(source, key)
        if changed:
            self._settling.forget()
            self._since = 0
        if not ends:
            return
        with self._lock:
            dur = now - self._since if self._since else None
            if self.phase is Phase.RECORDING and self.backend is not None:
                self._record(self.backend, dur)
            else:
                self._advance(dur)
        if self.phase in (Phase.SETTLING, Phase.WATCHING):
            self._anchor, self._spare = key, self._may_pass()
        # What happens in here is not the step's.
        self._since = perf_counter_ns()

    def _may_pass(self) -> int:
        steps = 0
        if self.phase is Phase.SETTLING and self._finder.is_certain:
            steps = self.options.skip - self._finder.number - 1
        elif self.phase is Phase.WATCHING:
            steps = self._periods.may_pass()
        return max(0, min(steps, _MOST_PASSED))

    def _catch_up(self) -> None:
        """Take up the steps that were only counted and timed."""
        passed, self._passed, self._spare = self._passed, [], 0
        self._finder.passed(len(passed))
        if self.phase is Phase.SETTLING:
            self._settling.add(passed)
        for dur in passed if self.phase is Phase.WATCHING else ():
            self._periods.add(dur)

    def _advance(self, dur: int | None) -> None:
        if self.phase is Phase.SETTLING:
            self._settling.add([] if dur is None else [dur])
            if self._due():
                self._open()
        elif self.phase is Phase.WARMING:
            self._begin()
        elif self.phase is Phase.EXPORTING:
            if self._exporting is None or not self._exporting.is_alive():
                self.phase = Phase.AFTER
        elif self.phase is Phase.AFTER:
            self._window.after += [] if dur is None else [dur]
            if len(self._window.after) >= self.options.after:
                self._over()
                self._write()
        elif self.phase is Phase.WATCHING and dur is not None and self._periods.add(dur):
            self._next_window()

    def _record(self, backend: Backend, dur: int | None) -> None:
        """A recorded step ended. Stacks of all that is called here are recorded too, so it is little."""
        window = self._window
        if dur is not None:
            window.recorded.append(dur)
        reason = window.limit()
        if reason is None:
            backend.mark((window.first or 0) + len(window.recorded) if self._said is None else self._said)
        else:
            self._close(reason)

    def _due(self) -> bool:
        """Whether the window begins with this step."""
        number = self._finder.number
        if number >= self.options.skip and self.options.watch and not is_first_of_host():
            self.decline("with --watch only the first rank of each machine is recorded")
            return False
        return self._settling.is_over(self.options, number)

    # --- the window -----------------------------------------------------------------------------------------------

    @property
    def _number(self) -> int:
        """The step that begins now: by the job's own count where it tells, else steps are counted from 0."""
        return self._finder.number if self._said is None else self._said

    @property
    def _running(self) -> Backend:
        assert self.backend is not None
        return self.backend

    def _open(self) -> None:
        self._finder.freeze()
        self._thread = get_ident()
        framework = self._finder.anchor[0] if isinstance(self._finder.anchor, tuple) else None
        backend: Backend | None = self._make(self.options, framework)
        while backend is not None:
            self.backend = backend
            try:
                if backend.warm_up:
                    self._ours(lambda: self._running.prepare(self._number))
                    self.phase = Phase.WARMING
                else:
                    self._begin()
                return
            except Declined as reason:
                self._window.ended = str(reason)
                break
            except Exception as error:  # noqa: BLE001  A lighter one may work.
                self.manifest.failed("starting the profiler", error)
                self._window.ended = "the profiler could not be started"
                backend = backend.lighter()
        self._over()
        self._write()

    def _begin(self) -> None:
        self._window.open(self._number)
        self.phase = Phase.RECORDING
        self._write()  # Before it begins: what we do is no part of the job's step.
        self._ours(lambda: self._running.begin(self._number))
        Watchdog(self._window.overdue, self._too_long, lambda: self.phase is not Phase.RECORDING).start()

    def _ours(self, starts: Callable[[], None]) -> None:
        """Have our own profiler start: nothing need make way for it."""
        self.starts_now = True
        try:
            starts()
        finally:
            self.starts_now = False

    def record_for(self, framework: str, seconds: float) -> None:
        """Record a stretch of time, where no steps have been found. Never raises; for a thread of its own."""
        try:
            with self._lock:
                if self.phase is not Phase.SETTLING or self._finder.steps:
                    return
                self.backend = self._make(self.options, framework)
                self._window.open(None)
                self._ours(lambda: self._running.begin(None))
                self.phase = Phase.RECORDING
                self._thread = get_ident()  # Steps that are found now change nothing.
            time.sleep(seconds)
            self._close(f"no steps were found; {seconds:g} s were recorded")
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._failed("recording a stretch of time", error)

    def _too_long(self, reason: str) -> bool:
        """Called by the watchdog with what is wrong; whether it may stop watching."""
        self._window.must_end = reason
        if self._running.stops_anywhere:
            self._guarded_close(reason)
        elif self._thread == threading.main_thread().ident:
            on_main_thread(lambda: self._guarded_close(reason))
        return True

    def _guarded_close(self, reason: str) -> None:
        try:
            self._close(reason)
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._failed("stopping", error)

    def _close(self, reason: str, *, here: bool = False) -> None:
        """End the window, if one is open, and write it out: on another thread, or ``here``, where a process ends."""
        with self._lock:
            if self.phase not in (Phase.WARMING, Phase.RECORDING):
                return
            warming, self.phase = self.phase is Phase.WARMING, Phase.EXPORTING
            self._window.ended = reason
            if warming:
                self._running.discard()
                self._over()
                return
            self._running.stop()
            if here:
                self._export()
                return
            # Not a daemon: a process that ends lets it finish.
            self._exporting = threading.Thread(target=self._export, name="stepscope-export", daemon=False)
            self._exporting.start()

    def _export(self) -> None:
        try:
            paths, window = self._running.export(self.options.out), self._window
            facts = {"first_step": window.first, "steps": len(window.recorded), **self._running.facts()}
            self.manifest.wrote(paths, **facts)
            if self.options.watch:
                self.manifest.keep(self.options.watch_bytes)
        except Declined as reason:
            self._window.ended = str(reason)
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self.manifest.failed("writing the profile", error)
            self._window.ended = "the profile could not be written"
        self._guarded_write()

    # --- one window after the other ---------------------------------------------------------------------------------

    def _over(self) -> None:
        """Nothing more comes of this window: time steps until the next is due, where there is one, else end."""
        if not self.options.watch:
            self._done()
            return
        self.phase = Phase.WATCHING
        self._periods.begin(self._number - len(self._window.after), self._window.after)

    def _next_window(self) -> None:
        self._periods.end()
        self._window = Window(self.options)
        self._open()

    # --- what is said of it ---------------------------------------------------------------------------------------

    def _done(self) -> None:
        self.phase = Phase.DONE
        taken, self.on_done = self.on_done, []
        for take_out in taken:
            try:
                take_out()
            except Exception as error:  # noqa: BLE001  Between our code and the user's.
                self.manifest.failed("taking a hook out", error)

    def _failed(self, when: str, error: Exception) -> None:
        self.manifest.failed(when, error)
        if self.backend is not None and self.phase in (Phase.WARMING, Phase.RECORDING):
            try:
                self.backend.discard()
            except Exception as further:  # noqa: BLE001  Between our code and the user's.
                self.manifest.failed("stopping", further)
        self._window.ended = self._window.ended or f"recording failed while {when}"
        self._done()
        self._guarded_write()

    def _guarded_write(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001  The disk is full, say: the job goes on.
            self.manifest.failed("writing the manifest", error)

    def _write(self) -> None:
        self.manifest.write(self.options, **self._facts())

    def _facts(self) -> dict[str, Any]:
        backend, source = self.backend, self._finder.source
        return {
            "framework": backend.framework if backend else None,
            "framework_version": backend.version() if backend else None,
            "phase": self.phase.value,
            "steps_seen": self._finder.steps,
            "steps_from": SOURCES[source] if source is not None else None,
            **self._window.facts(self._settling.last(), settled=self._settling.settled),
            "switches": backend.switches() if backend else {},
            "no_profile": self._why_none(),
            **({"periods": list(self._periods.over)} if self.options.watch else {}),
        }

    def _why_none(self) -> str | None:
        """Why there is no profile, in words that end "no profile was written because"; None where there is one."""
        if self.manifest.files or self.phase in (Phase.WARMING, Phase.RECORDING, Phase.EXPORTING):
            return None
        steps, fewest = self._finder.steps, fewest_steps(self.options, rank_and_world()[1])
        if self._window.ended not in (None, "the job ended"):
            return self._window.ended
        if not steps:
            return "no steps were found; call stepscope.step() once per iteration"
        if steps < fewest:
            return f"fewer than {fewest} steps ran ({steps} did); --skip and --active take fewer"
        return f"the {steps} steps that ran were over before step time had settled; --skip begins earlier"
