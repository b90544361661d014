"""The recording of one process under ``stepscope run``: skip, settle, record, time a few more steps, stop.

Whatever fails here is written to the manifest, and the job goes on: the broad handlers of this file stand between our
code and the user's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from .backend import Backend, Declined
from .hooking import take_out
from .manifest import Manifest
from .options import Options
from .periods import Periods
from .phases import SETTLING, RecordingPhase
from .place import is_first_of_host, is_launcher
from .settling import Settling
from .steps import CALL, EXPLICIT, REQUEST, StepFinder
from .telling import JOB_ENDED, Telling
from .watchdog import Watchdog, on_main_thread
from .window import Window
from .worker_lines import worker_lines

EXPORT_WAIT_S = 300
"""A process that ends waits this long for its profile to be written."""
_MOST_PASSED = 64
"""Steps that are only counted and timed, before what they mean is looked at."""
_OWN_STARTED = "the job started its own profiler"
_ENOUGH_OF_IT = 3
"""A window that makes way for the job's own profiler with fewer steps than this says nothing: another follows."""


class Recorder(Telling):
    """Turns calls of the job into steps, and some of the steps into a profile."""

    def __init__(self, options: Options, make: Callable[[Options, str | None], Backend]) -> None:
        self.options = options
        self.manifest = Manifest(options.out)
        self.on_done: list[Callable[[], None]] = []
        """Called once nothing more is to be noticed: hooks are taken out."""
        self.on_calls_over: list[Callable[[], None]] = []
        """Called once calls of models are no steps any more."""
        self.on_fork: list[Callable[[], None]] = []
        """Called in children."""
        self.others_record: Callable[[], bool] | None = None
        """Whether the job's own profiler is at work, where that can be told."""
        self.calls: Any = None
        """PyTorch's calls of models."""
        self.on_edge: list[Callable[[int], None]] = []
        """Called with the number of steps that have ended, between two of them."""
        self.trial: Any = None
        """What is noted besides of a trial."""
        self._make = make
        self._lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self.phase = RecordingPhase.SETTLING
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
        self._waited = False
        self._told = None

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
            if self.phase is RecordingPhase.WATCHING:  # The anchor stays what it is.
                return
        if self.phase is RecordingPhase.DONE:
            return
        try:
            self._call(now, source, key)
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self.failed(self.phase.value, error)

    def step(self, number: int | None = None) -> None:
        """The job itself says that step ``number`` ended."""
        if number is not None:
            self._said = number + 1
        self.call(EXPLICIT, (None, "step"))

    def make_way(self) -> None:
        """The job's own profiler starts: ours ends, keeping the steps it has. Never raises."""
        try:
            self._close(_OWN_STARTED)
            if self.backend is not None and self.backend.stops_on_export and self._exporting is not None:
                self._exporting.join(EXPORT_WAIT_S)
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self.failed("making way", error)

    def decline(self, reason: str) -> None:
        """Record nothing, for this reason."""
        if self.phase in SETTLING:
            self._window.ended = reason
            self._done()

    def finish(self) -> None:
        """The process ends: write what there is. Never raises."""
        try:
            self._catch_up()
            self._periods.end()
            self._close(JOB_ENDED, here=True)
            if self._exporting is not None and self._exporting is not threading.current_thread():
                self._exporting.join(EXPORT_WAIT_S)
                if self._exporting.is_alive():
                    self._window.ended = f"writing the profile took longer than {EXPORT_WAIT_S} s and was given up"
            self._done()
            if self._finder.steps or not is_launcher():
                self._write()
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self.failed("the end", error)

    def forked(self) -> None:
        """This is a child of the process that made us: its steps are its own, and a running window its parent's."""
        recording = self.phase in (RecordingPhase.WARMING, RecordingPhase.RECORDING)
        self._lock = threading.RLock()
        self._reset()
        self.manifest = Manifest(self.options.out)
        if recording:
            self._window.ended = "this process was forked while its parent recorded"
            self.phase = RecordingPhase.DONE
            return
        for restart in self.on_fork:
            restart()

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
            for tell in self.on_edge:
                tell(self._finder.steps)
            if self.phase is RecordingPhase.RECORDING and self.backend is not None:
                self._record(self.backend, dur)
            else:
                self._advance(dur)
        if self.phase in (*SETTLING, RecordingPhase.WATCHING):
            self._anchor, self._spare = key, self._may_pass()
        # What happens in here is not the step's.
        self._since = perf_counter_ns()

    def _may_pass(self) -> int:
        if self.on_edge:
            return 0
        steps = 0
        if self.phase in SETTLING and self._finder.is_certain:
            steps = self.options.skip - self._finder.number - 1
        elif self.phase is RecordingPhase.WATCHING:
            steps = self._periods.may_pass()
        return max(0, min(steps, _MOST_PASSED))

    def _catch_up(self) -> None:
        """Take up the steps that were only counted and timed."""
        passed, self._passed, self._spare = self._passed, [], 0
        self._finder.passed(len(passed))
        if self.phase in SETTLING:
            self._settling.add(passed)
        for dur in passed if self.phase is RecordingPhase.WATCHING else ():
            self._periods.add(dur)

    def _advance(self, dur: int | None) -> None:
        if self.phase in SETTLING:
            self._settling.add([] if dur is None else [dur])
            if self._due():
                self._open()
        elif self.phase is RecordingPhase.WARMING and not self._is_backlog(dur):
            self._begin()
        elif self.phase is RecordingPhase.EXPORTING:
            if self._exporting is None or not self._exporting.is_alive():
                self.phase = RecordingPhase.AFTER
        elif self.phase is RecordingPhase.AFTER:
            if dur is not None and not self._is_backlog(dur):
                self._window.passed_after(dur)
            if len(self._window.after) >= self.options.after:
                self._over()
                self._write()
        elif self.phase is RecordingPhase.WATCHING and dur is not None and self._periods.add(dur):
            self._next_window()

    def _is_backlog(self, dur: int | None) -> bool:
        """Not asked where the profiler records from its start on, and devices may be behind."""
        asked = self.backend is not None and self._finder.begins and not self.backend.stops_anywhere
        return asked and self._settling.is_backlog(dur)

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
        if not self._settling.is_over(self.options, number):
            return False
        self._waited = self.others_record is not None and self.others_record()
        return not self._waited

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
        if self._window.ended is not None:
            self._window = Window(self.options)
        self._finder.freeze()
        self._thread = get_ident()
        if self.options.trial:
            self.phase = RecordingPhase.AFTER
            return
        framework = self._finder.anchor[0] if isinstance(self._finder.anchor, tuple) else None
        backend: Backend | None = self._make(self.options, framework)
        while backend is not None:
            self.backend = backend
            try:
                if backend.warm_up:
                    self._ours(lambda: self._running.prepare(self._number))
                    self.phase = RecordingPhase.WARMING
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
        self.phase, self._told = RecordingPhase.RECORDING, None
        self._write()  # Before it begins: what we do is no part of the job's step.
        self._ours(lambda: self._running.begin(self._number))
        Watchdog(self._window.overdue, self._too_long, lambda: self.phase is not RecordingPhase.RECORDING).start()

    def _ours(self, starts: Callable[[], None]) -> None:
        """Have our own profiler start: nothing need make way for it."""
        self.starts_now = True
        try:
            starts()
        finally:
            self.starts_now = False

    def open_stretch(self, framework: str) -> bool:
        """Begin to record without steps, on the thread that is to be recorded; whether that is so."""
        with self._lock:
            if (
                self.phase is not RecordingPhase.SETTLING
                or self._finder.steps
                or (self.others_record and self.others_record())
            ):
                return False
            self.backend = self._make(self.options, framework)
            self._window = Window(self.options)
            self._window.open(None)
            self._ours(lambda: self._running.begin(None))
            self.phase = RecordingPhase.RECORDING
            self._thread = get_ident()  # Steps that are found now change nothing.
            return True

    def end_stretch(self, reason: str) -> bool:
        """End it, on the same thread; whether that is so."""
        self._guarded_close(reason)
        return self.phase is not RecordingPhase.RECORDING

    def stretch_is_kept(self) -> bool:
        """Wait until it is written; whether there is a profile of it. Steps that come yet are recorded all the same."""
        if self._exporting is not None:
            self._exporting.join(EXPORT_WAIT_S)
        with self._lock:
            if self.phase is RecordingPhase.EXPORTING:
                if self.manifest.files:
                    self._listen(CALL)
                else:
                    self._window = Window(self.options)
                    self._begin_anew()
                self._guarded_write()
        return bool(self.manifest.files)

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
            self.failed("stopping", error)

    def _close(self, reason: str, *, here: bool = False) -> None:
        """End the window, if one is open, and write it out: on another thread, or ``here``, where a process ends."""
        with self._lock:
            if self.phase not in (RecordingPhase.WARMING, RecordingPhase.RECORDING):
                return
            few = self.phase is RecordingPhase.WARMING or len(self._window.recorded) < _ENOUGH_OF_IT
            warming, self.phase = self.phase is RecordingPhase.WARMING, RecordingPhase.EXPORTING
            self._window.ended = reason
            if few and reason == _OWN_STARTED and self.others_record is not None:
                self._running.discard()
                self._begin_anew()
                return
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
            window.gather()
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
            of_calls = self._finder.source in (REQUEST, CALL) and getattr(self.backend, "framework", None) == "torch"
            if of_calls and self.manifest.files:
                self._listen(REQUEST - 1)
            else:
                self._done()
            return
        self.phase = RecordingPhase.WATCHING
        self._periods.begin(self._number - len(self._window.after), self._window.after)

    def _listen(self, weakest: int) -> None:
        """Keep what there is, unless steps of such a source come yet."""
        self._told = self._facts()
        if weakest < REQUEST:
            take_out(self.on_calls_over, self.manifest.failed)
        self._begin_anew(weakest)
        self.phase = RecordingPhase.LISTENING

    def _begin_anew(self, weakest: int | None = None) -> None:
        """Look for steps, and for when they have settled, as if the job began now."""
        if weakest is None:
            self._finder.thaw()
        else:
            self._finder = StepFinder(weakest)
        self._settling, self._thread, self._since = Settling(), None, 0
        self._anchor, self._spare, self._passed = None, 0, []
        self.phase = RecordingPhase.SETTLING if self._told is None else RecordingPhase.LISTENING

    def _next_window(self) -> None:
        self._periods.end()
        self._window = Window(self.options)
        self._open()

    # --- what is said of it ---------------------------------------------------------------------------------------

    def _done(self) -> None:
        self.phase = RecordingPhase.DONE
        worker_lines.over()
        for hooks in (self.on_calls_over, self.on_done):
            take_out(hooks, self.manifest.failed)

    def failed(self, when: str, error: Exception) -> None:
        """Write down what failed, and record nothing more."""
        self.manifest.failed(when, error)
        if self.backend is not None and self.phase in (RecordingPhase.WARMING, RecordingPhase.RECORDING):
            try:
                self.backend.discard()
            except Exception as further:  # noqa: BLE001  Between our code and the user's.
                self.manifest.failed("stopping", further)
        self._window.ended = self._window.ended or f"recording failed while {when}"
        self._done()
        self._guarded_write()
