"""Recording a stretch of time in a job in which nothing repeats that could be a step."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from .backend import Declined
from .watchdog import MainThread

if TYPE_CHECKING:
    from .recorder import Recorder

_ASKED_S = 10.0
"""The main thread is asked to begin or end for so long: within a long call of C code it does not listen."""
_STARTING = ("<frozen importlib", f"{os.sep}torch{os.sep}_dynamo", f"{os.sep}torch{os.sep}_inductor")
"""Where a thread stands in this code the job starts up: of modules half imported the profiler may need one."""


def record_stretch(recorder: Recorder, framework: str, seconds: float) -> bool:
    """Whether there is a profile of it. PyTorch's profiler belongs to a thread: it is the main thread that begins and
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
        found = self._answers[0]
        if isinstance(found, Exception):
            raise found
        return found

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
