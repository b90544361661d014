"""Recording a stretch of time in a job in which nothing repeats that could be a step."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from .backend import Declined
from .place import is_launcher
from .watchdog import MainThread

if TYPE_CHECKING:
    from .recorder import Recorder

QUIET_S = 10.0
"""A job that neither imports nor compiles, and calls nothing again and again for so long, is recorded for a stretch of
time; and again after twice as long where nothing of its framework ran in it."""
STRETCH_S = 2.0
COMPILES_S = 60.0
"""What was called once may be compiled for so long, before it is called again."""
_EVERY_S = 0.5
_ASKED_S = 10.0
"""The main thread is asked to begin or end for so long: within a long call of C code it does not listen."""
_STARTING = ("<frozen importlib", f"{os.sep}torch{os.sep}_dynamo", f"{os.sep}torch{os.sep}_inductor")
"""Where a thread stands in this code the job starts up: of modules half imported the profiler may need one."""


class Stretches(threading.Thread):
    """Has a stretch of time recorded where no steps are found."""

    def __init__(
        self, recorder: Recorder, framework: str, busy: Callable[[], bool], over: Callable[[], bool] = lambda: False
    ) -> None:
        """``busy`` says that steps may come yet, ``over`` that this process will have none."""
        super().__init__(name="stepscope-stretches", daemon=True)
        self._recorder, self._framework, self._busy, self._over = recorder, framework, busy, over
        self._main = threading.main_thread().ident or 0

    def run(self) -> None:
        """Wait, and ask for it, until there are steps or there is a profile."""
        wait_s, quiet_s = QUIET_S, 0.0
        while self._recorder.seeks_calls and not self._over():
            time.sleep(_EVERY_S)
            if self._busy() or starts_up(sys._current_frames().get(self._main)):
                continue
            quiet_s += _EVERY_S
            if quiet_s >= wait_s:
                if is_launcher() or record_for(self._recorder, self._framework, STRETCH_S):
                    return
                wait_s, quiet_s = 2 * wait_s, 0.0


def record_where_nothing_repeats(recorder: Recorder, framework: str) -> None:
    """Have a stretch of a job of JAX or TensorFlow recorded in which no steps are found."""
    began = time.monotonic()

    def compiles() -> bool:
        return recorder.seen_calls and time.monotonic() - began < COMPILES_S

    def helps() -> bool:
        return framework == "tensorflow" and not {"torch", "jax"}.isdisjoint(sys.modules)

    Stretches(recorder, framework, compiles, helps).start()


def record_for(recorder: Recorder, framework: str, seconds: float) -> bool:
    """Record a stretch of time, where no steps have been found; whether there is a profile of it. Never raises; for a
    thread of its own."""
    try:
        return _record(recorder, framework, seconds)
    except Exception as error:  # noqa: BLE001  Between our code and the user's.
        recorder.failed("recording a stretch of time", error)
        return False


def _record(recorder: Recorder, framework: str, seconds: float) -> bool:
    """The same. PyTorch's profiler belongs to a thread: it is the main thread that begins and
    ends then, wherever it stands."""
    if framework != "torch":
        if not recorder.open_stretch(framework):
            return False
        time.sleep(seconds)
        recorder.end_stretch(_ended(seconds))
        return recorder.stretch_is_kept()
    opened = _Asked(lambda: recorder.open_stretch(framework))
    if not opened.answer():
        return False
    time.sleep(seconds)
    _Asked(lambda: recorder.end_stretch(_ended(seconds))).answer()
    return recorder.stretch_is_kept()


def _ended(seconds: float) -> str:
    return f"no steps were found; {seconds:g} s were recorded"


class _Asked:
    """Something that the main thread is asked to do."""

    def __init__(self, does: Callable[[], bool]) -> None:
        self._does = does
        self._answers: list[bool | Exception] = []
        self._is_at_it = False

    def answer(self) -> bool:
        """What came of it; False where it did not come to it. Raises what that raised."""
        ends, main_thread = time.monotonic() + _ASKED_S, MainThread(self._do)
        while not self._answers and (time.monotonic() < ends or self._is_at_it):
            main_thread.ask()
            again = time.monotonic() + 1.0
            while not self._answers and time.monotonic() < again:
                time.sleep(0.01)
        self._answers.append(False)  # It may yet come to it, and is to leave it then.
        kept = self._answers[0]
        if isinstance(kept, Exception):
            raise kept
        return kept

    def _do(self) -> None:
        if self._answers or starts_up(sys._getframe()):
            return
        self._is_at_it = True
        try:
            self._answers.append(self._does())
        except Declined:
            self._answers.append(False)
        except Exception as error:  # noqa: BLE001  Raised again where it is asked for.
            self._answers.append(error)
        finally:
            self._is_at_it = False


def starts_up(frame: FrameType | None) -> bool:
    """Whether a thread that stands there imports a module or compiles."""
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in _STARTING):
            return True
        frame = frame.f_back
    return False
