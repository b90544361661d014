"""Which line the thread that runs the steps is at, looked up every few milliseconds.

Profilers tell of Python functions that begin while they record, not of the line that a function is at: the body of a
script began long before, operators (``x @ y``) call nothing that is recorded, and TensorFlow 2.21 and PyTorch/XLA
record no Python code at all.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from array import array
from itertools import pairwise
from time import thread_time_ns, time_ns
from typing import Any

EVERY_MS = 4
SHARE = 200
"""Between two looks passes at least so many times what the last one took: they take 0.5 % of a thread's time at most.
Measured in a loop that never leaves Python, the worst case, on two busy cores: 0.43 to 0.46 %, in looks of some 170 us
each. The loop itself was not slower by more than such a machine's own swings (``benchmarks/line_lookups.py``)."""
MOST = 50_000
"""Looks that are kept; four minutes of them."""
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NOT_THE_JOB_S = tuple(
    {os.path.join(path, "") for path in (*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), _OURS) if path}
)


class Lines:
    """Looks at one thread from ``start`` to ``stop``."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._of: int | None = None
        """The system's number of the thread that is looked at."""
        self._places: dict[tuple[str, int, str], int] = {}
        self._times = array("q")
        self._seen = array("i")
        """Per look its place, -1 where the thread was in none of the job's own functions."""
        self._waited = array("q")
        """Per look how long the thread had waited for a core (ns, the system's count); empty where it does not tell."""

    def start(self, ident: int) -> None:
        """Look at the thread of that number; where no thread can be started the profile goes without."""
        if self._thread is not None:
            return
        self._of = next((thread.native_id for thread in threading.enumerate() if thread.ident == ident), None)
        self._thread = threading.Thread(target=self._look, args=(ident,), name="stepscope-lines", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout=1)

    def looks(self) -> dict[str, Any] | None:
        """What was seen: the thread, Unix times (ns; each but the first from the one before), per look its place in
        the list of them (file, line, function), -1 for none, and how long the thread had waited for a core (as the
        times), where that is known. None where it never looked at code of the job."""
        if not self._places:
            return None
        count = min(len(self._times), len(self._seen))
        return {
            "thread": self._of,
            "every_ms": EVERY_MS,
            "places": [list(place) for place in self._places],
            "time_ns": _steps(self._times[:count]),
            "place": self._seen[:count].tolist(),
            **({"core_wait_ns": _steps(self._waited[:count])} if len(self._waited) >= count else {}),
        }

    def facts(self) -> dict[str, Any]:
        """The looks, for a manifest; nothing where it found none."""
        found = self.looks()
        return {"looks": found} if found else {}

    def _look(self, ident: int) -> None:
        scheduled = _scheduled(self._of)
        try:
            self._look_on(ident, scheduled)
        finally:
            if scheduled is not None:
                os.close(scheduled)

    def _look_on(self, ident: int, scheduled: int | None) -> None:
        pause = EVERY_MS / 1_000
        while not self._over.wait(pause) and len(self._times) < MOST:
            began = thread_time_ns()
            frame = sys._current_frames().get(ident)
            now = time_ns()
            while frame is not None and not _is_the_job_s(frame.f_code.co_filename):
                frame = frame.f_back
            place = -1
            if frame is not None:
                key = frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name
                place = self._places.setdefault(key, len(self._places))
            if scheduled is not None:
                self._waited.append(_waited(scheduled))
            self._times.append(now)
            self._seen.append(place)
            frame = None  # Else the job's values live on until the next look.
            pause = max(EVERY_MS / 1_000, SHARE * (thread_time_ns() - began) / 1e9)


def _steps(values: array[int]) -> list[int]:
    """The first, and of each other what it is more than the one before: short in a file."""
    first: list[int] = values[:1].tolist()
    return first + [later - earlier for earlier, later in pairwise(values)]


def _scheduled(thread: int | None) -> int | None:
    """A file in which Linux says how long a thread ran and how long it waited for a core; None where there is none."""
    try:
        found = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)
    except OSError:
        return None
    try:
        _waited(found)
    except (OSError, IndexError, ValueError):
        os.close(found)
        return None
    return found


def _waited(scheduled: int) -> int:
    return int(os.pread(scheduled, 96, 0).split()[1])


def working_thread() -> int:
    """The number of the thread that works: this one, but for a timer of ours, which records while the main one does."""
    ours = isinstance(threading.current_thread(), threading.Timer)
    return (ours and threading.main_thread().ident) or threading.get_ident()


def _is_the_job_s(path: str) -> bool:
    """Whether code is of the program itself, not of Python, of a package or of ours."""
    return not path.startswith(("<", *_NOT_THE_JOB_S))
