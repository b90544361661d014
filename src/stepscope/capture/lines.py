"""Which line the thread that runs the steps is at, looked up every few milliseconds.

Profilers tell of Python functions that begin while they record, not of the line that a function is at: the body of a
script began long before, operators (``x @ y``) call nothing that is recorded, and TensorFlow 2.21 and PyTorch/XLA
record no Python code at all.
"""

from __future__ import annotations

import os
import sys
import threading
from array import array
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter_ns, sleep, thread_time_ns, time_ns
from types import CodeType, FrameType
from typing import Any

from .own_code import is_own

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # Only Linux counts it per thread.
    getrusage = None  # type: ignore[assignment]

EVERY_MS = 4
MOST_SHARE = 0.008
"""The most of the time passed that looking takes: its thread's own processor time, or how long it kept the interpreter,
whichever is more. One look takes some 50 us, most of it the waking up; where they are dearer there are fewer. Handing
the interpreter over and back costs the job a little more, which nothing counts: between nothing and 3 % of a loop that
never leaves Python, in sittings that differ by as much (``benchmarks/line_lookups.py``)."""
SLOWEST = 2
"""How many times as long as looks of the mean cost need a pause is at most: one that was dear because the machine did
something else is made up for in several pauses, not in one in which whole steps pass unseen."""
SWITCH_S = 0.0002
"""How long a thread that computes in Python keeps the interpreter from one that wants it, while lines are looked up.
With Python's own 5 ms a look comes when the job lets go of the interpreter by itself, in a wait or an op: the lines of
short loops between them would hardly ever be seen."""
LONGEST_SWITCH_S = 0.001
"""The same, once native code kept the interpreter for more than ``KEPT_NS``: a thread that wants it asks once in each
such time. That is done on another core where there is one, and not counted: 12 us of each millisecond at most."""
KEPT_NS = 10_000_000
LATE_NS = 1_500_000
"""A look that came later than this is one of two: if the interpreter was kept from it meanwhile, the thread was at the
same line all the time, in C code, as Python would have handed it over long before."""
POLLS = 2
"""In how many of Python's intervals, and a fifth of a millisecond, it was asked for again at least, if it was kept."""
WAITED_EVERY_NS = 30_000_000
"""How often it is read how long the thread waited for a core: that costs a look a quarter more, as reading a file lets
go of the interpreter, which must then be waited for again."""
MOST = 50_000
"""Looks that are kept; four minutes of them."""
MOST_FUNCTIONS = 500
"""Functions whose calls are kept; reading the bytecode of one takes some 0.2 ms."""


def own_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the job's own code; None for none."""
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


class ThreadLines:
    """Looks at one thread from ``start`` to ``stop``; of its stack the frame counts that ``choose`` takes, given the
    innermost."""

    def __init__(self, choose: Callable[[FrameType | None], FrameType | None] = own_frame) -> None:
        self._choose = choose
        self._over = False
        """Asked after each pause: of all ways to wait sleeping takes the least."""
        self._thread: threading.Thread | None = None
        self._of: int | None = None
        """The system's number of the thread that is looked at."""
        self._places: dict[tuple[str, int, str], int] = {}
        self._codes: set[CodeType] = set()
        self._times = array("q")
        self._seen = array("i")
        """Per look its place, -1 where the thread was in none of the job's own functions."""
        self._waited: list[tuple[int, int]] = []
        """Looks (by number) of which is known how long the thread had waited for a core (ns, the system's count)."""
        self._switched = self._interval = sys.getswitchinterval()
        """The job's own, and the one that holds while it looks."""
        self.spent_ns = 0
        """What all looks took."""
        self.passed_ns = 0
        """In how much time."""

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
        else:
            self._switched = sys.getswitchinterval()
            self._switch(SWITCH_S)

    def stop(self) -> None:
        """Look no more."""
        self._over = True
        if self._thread is not None and sys.getswitchinterval() == self._interval:
            sys.setswitchinterval(self._switched)

    def looks(self) -> dict[str, Any] | None:
        """What was seen: the thread, Unix times (ns; each but the first from the one before), per look its place in
        the list of them (file, line, function), -1 for none, and how long the thread had waited for a core (ns, each
        but the first from the one before), where that is known. None where it never looked at code of the job."""
        if not self._places:
            return None
        count = min(len(self._times), len(self._seen))
        return {
            "thread": self._of,
            "every_ms": EVERY_MS,
            "places": [list(place) for place in self._places],
            "time_ns": _steps(self._times[:count]),
            "place": self._seen[:count].tolist(),
            **({"core_wait_ns": self._core_waits(count)} if self._waited else {}),
        }

    def by_place(self) -> dict[tuple[str, int, str] | None, int]:
        """How long the thread was at each place (file, line, function), in ns; None is where it was at none. What
        passes between two looks is shared by both."""
        places: list[tuple[str, int, str] | None] = [*self._places, None]
        count = min(len(self._times), len(self._seen))
        spent: Counter[tuple[str, int, str] | None] = Counter()
        for (began, first), (ended, last) in pairwise(zip(self._times[:count], self._seen[:count], strict=True)):
            half = (ended - began) // 2
            spent[places[first]] += half
            spent[places[last]] += ended - began - half
        return dict(spent)

    def _core_waits(self, count: int) -> list[int | None]:
        steps: list[int | None] = [None] * count
        told = [(look, waited) for look, waited in self._waited if look < count]
        for (look, _), step in zip(told, _steps(array("q", (waited for _, waited in told))), strict=True):
            steps[look] = step
        return steps

    def files(self) -> set[str]:
        """The names of the files of the job that were met, without their folders."""
        return {os.path.basename(path) for path, _, _ in self._places}

    def _calls(self) -> list[list[Any]]:
        from .call_sites import called_at  # Not before the job ran: it needs a module that few jobs load.

        codes = sorted(self._codes, key=lambda code: (code.co_filename, code.co_firstlineno))[:MOST_FUNCTIONS]
        return [[code.co_filename, code.co_firstlineno, code.co_name, called_at(code)] for code in codes]

    def facts(self) -> dict[str, Any]:
        """The looks, for a manifest, and of each function met its file, first line and name, and at which line it calls
        what; nothing where it found none."""
        looks = self.looks()
        return {"looks": looks | {"calls": self._calls()}} if looks else {}

    def cost(self) -> dict[str, Any]:
        """What looking took and in how much time, for a manifest; nothing where it never looked."""
        return {"looking": {"spent_ns": self.spent_ns, "passed_ns": self.passed_ns}} if self.passed_ns else {}

    def _look(self, ident: int) -> None:
        sys.setprofile(None)  # Tracers of JAX and TensorFlow record threads that begin later, this one too.
        scheduled = _scheduled(self._of)
        try:
            self._look_on(ident, scheduled)
        finally:
            if scheduled is not None:
                os.close(scheduled)

    def _look_on(self, ident: int, scheduled: int | None) -> None:
        began, own, pause = perf_counter_ns(), thread_time_ns(), EVERY_MS / 1_000
        asked, due, looks, waits = began, began, 0, _waits()
        while len(self._times) < MOST:
            sleep(pause)
            has, looks = perf_counter_ns(), looks + 1
            if self._over:
                return
            late_ns = has - asked - round(pause * 1e9)
            was_kept = late_ns > KEPT_NS
            in_c_code = late_ns > LATE_NS and self._asked_in_vain(late_ns, _waits() - waits)
            if was_kept and sys.getswitchinterval() == self._interval:
                self._switch(LONGEST_SWITCH_S)
            self._one(ident, late_ns if in_c_code else 0)
            held = perf_counter_ns() - has
            if scheduled is not None and has >= due:  # How long the interpreter is wanted back costs the job nothing.
                scheduled = self._read_waited(scheduled)
                due = has + WAITED_EVERY_NS
            before, own = own, thread_time_ns()
            self.spent_ns += held if was_kept else max(own - before, held)
            waits, asked = _waits(), perf_counter_ns()
            self.passed_ns = asked - began
            pause = self._pause(looks)

    def _read_waited(self, scheduled: int) -> int | None:
        """Keep how long the thread waited for a core; the file to ask the next time, None once the thread has ended."""
        try:
            self._waited.append((len(self._times) - 1, _waited(scheduled)))
        except OSError:
            return None
        return scheduled

    def _asked_in_vain(self, late_ns: int, waits: int) -> bool:
        """Whether it was the interpreter that a look waited for, and no core: it is asked for again and again."""
        return waits > 3 and waits * (POLLS * self._interval + 0.0002) * 1e9 > late_ns

    def _pause(self, looks: int) -> float:
        """Seconds until the next one: of changing length, or else of steps as long as a pause one line would be met."""
        needs_ns = self.spent_ns / MOST_SHARE
        longest_ns = SLOWEST * needs_ns / looks
        return (0.75 + looks * 0.618034 % 1 / 2) * max(EVERY_MS / 1e3, min(needs_ns - self.passed_ns, longest_ns) / 1e9)

    def _switch(self, seconds: float) -> None:
        sys.setswitchinterval(min(seconds, self._switched))
        self._interval = sys.getswitchinterval()

    def _one(self, ident: int, late_ns: int) -> None:
        frame = sys._current_frames().get(ident)
        now = time_ns()
        frame = self._choose(frame)
        place = -1
        if frame is not None:
            key = frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name
            known = len(self._places)
            place = self._places.setdefault(key, known)
            if place == known:
                self._codes.add(frame.f_code)
        for time in (now - late_ns, now) if late_ns else (now,):
            self._times.append(time)
            self._seen.append(place)


def _steps(values: array[int]) -> list[int]:
    """The first, and of each other what it is more than the one before: short in a file."""
    first: list[int] = values[:1].tolist()
    return first + [later - earlier for earlier, later in pairwise(values)]


def _waits() -> int:
    """How often this thread has waited for anything; 0 where the system does not tell."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw if getrusage is not None else 0


def _scheduled(thread: int | None) -> int | None:
    """A file in which Linux says how long a thread ran and how long it waited for a core; None where there is none."""
    try:
        descriptor = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)
    except OSError:
        return None
    try:
        _waited(descriptor)
    except (OSError, IndexError, ValueError):
        os.close(descriptor)
        return None
    return descriptor


def _waited(scheduled: int) -> int:
    return int(os.pread(scheduled, 96, 0).split()[1])


def waited_for_core_ns(thread: int) -> int | None:
    """How long a thread of this process, by the system's number, was ready to run and had no core so far; None where
    the system does not tell."""
    scheduled = _scheduled(thread)
    if scheduled is None:
        return None
    try:
        return _waited(scheduled)
    finally:
        os.close(scheduled)


def working_thread() -> int:
    """The number of the thread that works: this one, but for one of ours, which records while the main one does."""
    ours = threading.current_thread().name.startswith("stepscope-")
    return (ours and threading.main_thread().ident) or threading.get_ident()
