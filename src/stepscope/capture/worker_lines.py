"""Which lines the worker processes of a PyTorch loader are at while a window is recorded.

No profiler of the process that trains sees into them. Workers that are forked from it share a few pages of memory with
it: the number of the window that is open stands there, and a thread in each worker, which does nothing else until one
is, looks at the lines and leaves there what it saw. Workers that are spawned find the pages as a file that the
environment names.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from time import monotonic, perf_counter_ns, process_time_ns, sleep
from types import FrameType
from typing import Any

from .lines import ThreadLines, waited_for_core_ns
from .own_code import is_own

SLOTS, SLOT_BYTES = 64, 16 << 10
"""Workers that have room for what they saw, and how much; pages that nobody writes to take no memory."""
_BYTES = mmap.PAGESIZE + SLOTS * SLOT_BYTES
NAMED = "STEPSCOPE_WORKER_PAGES"
"""Tells spawned workers, in their environment, the process that made the pages, by number, a colon and their file."""
SPAWN = "multiprocessing.popen_spawn_posix", "multiprocessing.popen_spawn_win32", "multiprocessing.popen_forkserver"
"""Modules with a ``Popen``, of which one is made for each process that is spawned."""
MOST_PLACES = 40
POLL_S = 0.02
"""How often a worker asks whether a window is open: some 20 us each time, a thousandth of it."""
ENDING_S = 0.005
"""The same while one is."""
WRITING_S = 0.5
"""How long is waited, on a thread of ours, for what the workers saw: their code may keep the interpreter."""
_HEAD = struct.Struct("<I")
_SLOT = struct.Struct("<III")
"""Process, number of the window, length of what follows; 0 until it is written."""
_OVER = 0xFFFFFFFE
"""Even: no window is open."""
_LOADER = os.path.join("torch", "utils", "data", "dataloader.py")
_PARTS = os.path.join("torch", "utils", "data", "_utils", "")
_LOOP = os.path.join(_PARTS, "worker.py")
_PROCESS = os.path.join("multiprocessing", "process.py")


class WorkerLines:
    """In the process that trains: ``open`` and ``close`` with each window, ``told`` for what its workers saw."""

    def __init__(self) -> None:
        self._pages: mmap.mmap | None = None
        self._of: int | None = None
        """The process whose workers share the pages."""
        self._number = 0
        """Odd while a window is open."""
        self._file: str | None = None
        """That of the pages, where spawned workers look for it."""
        self._follows = False

    def follow_forks(self) -> None:
        """Have workers that are forked from now on look. Once per process is enough."""
        if not self._follows and hasattr(os, "register_at_fork"):
            self._follows = True
            os.register_at_fork(before=self._share, after_in_child=self._begin_in_child)

    def spawns(self) -> None:
        """A process is about to be spawned, which may become a worker."""
        if self._of != os.getpid() or (self._file is None and self._number != _OVER):
            with suppress(OSError, ValueError):
                self._share_by_name()

    def join(self) -> None:
        """In a process that ``multiprocessing`` has just begun: look, should it become a worker of one that asks for
        it."""
        maker, _, file = os.environ.get(NAMED, "").partition(":")
        if file and getattr(_process(), "_inheriting", False):
            with suppress(OSError, ValueError, RuntimeError):  # It is all over, or no thread can be had.
                with open(file, "r+b") as named:
                    pages = mmap.mmap(named.fileno(), _BYTES)

                def works() -> bool:
                    made_by = getattr(_process(), "_parent_pid", None)
                    return str(made_by) == maker and _works(sys._current_frames().get(ident))

                ident = threading.get_ident()
                self._start(pages, ident, works)

    def open(self) -> None:
        """A window begins."""
        if self._follows:
            self._share()  # Workers may be forked while it is open.
        if self._of == os.getpid() and self._number != _OVER:
            self._set(self._number + 1 + self._number % 2)

    def close(self) -> None:
        """It ends, if one is open."""
        if self._of == os.getpid() and self._number % 2:
            self._set(self._number + 1)

    def over(self) -> None:
        """There will be no more."""
        if self._of == os.getpid():
            self._set(_OVER)
            if self._file is not None:
                os.environ.pop(NAMED, None)
                with suppress(OSError):
                    os.unlink(self._file)

    def told(self) -> dict[str, Any] | None:
        """What the workers saw in the window that was closed last, all together: how many they are, the time of all in
        which they were looked at, had nothing to do, ran on a core and waited for one, and places (file, line,
        function) with the time at them, longest first; times in ns. None where none looked."""
        if self._of != os.getpid() or self._pages is None or self._number == _OVER:
            return None
        until = monotonic() + WRITING_S
        while (seen := self._written()) is None and monotonic() < until:
            sleep(ENDING_S)
        return _together(seen if seen is not None else self._written(whole=False) or [])

    # --- the pages ------------------------------------------------------------------------------------------------

    def _share(self) -> None:
        """Have pages of this process's own."""
        if self._of != os.getpid():
            with suppress(OSError, ValueError):
                self._pages, self._number, self._file = mmap.mmap(-1, _BYTES), 0, None
                self._of = os.getpid()

    def _share_by_name(self) -> None:
        """Have pages with a name, in place of those that forked workers may have: these look no more."""
        number = 0
        if self._of == os.getpid():
            number = self._number
            self._set(_OVER)
        descriptor, self._file = tempfile.mkstemp(prefix="stepscope-workers-")
        with open(descriptor, "r+b") as file:
            file.truncate(_BYTES)
            self._pages, self._of = mmap.mmap(file.fileno(), _BYTES), os.getpid()
        self._set(number)
        os.environ[NAMED] = f"{os.getpid()}:{self._file}"
        import_module("multiprocessing.util").Finalize(None, self.over, exitpriority=0)

    def _set(self, number: int) -> None:
        self._number = number
        if self._pages is not None:
            _HEAD.pack_into(self._pages, 0, number)

    def _open_number(self, pages: mmap.mmap) -> int:
        return int(_HEAD.unpack_from(pages, 0)[0])

    def _written(self, *, whole: bool = True) -> list[dict[str, Any]] | None:
        """What is written of the window closed last; None while any worker that began has not written, if ``whole``."""
        assert self._pages is not None
        seen = []
        for slot in range(SLOTS):
            at = mmap.PAGESIZE + slot * SLOT_BYTES
            _, number, length = _SLOT.unpack_from(self._pages, at)
            if number != self._number - 1:
                continue
            if length:
                with suppress(ValueError):
                    seen.append(json.loads(self._pages[at + _SLOT.size : at + _SLOT.size + length]))
            elif whole:
                return None
        return seen

    # --- in a worker ----------------------------------------------------------------------------------------------

    def _begin_in_child(self) -> None:
        pages = self._pages
        if pages is None or not _makes_a_worker(sys._getframe()):
            return
        with suppress(RuntimeError):  # No thread can be had: nothing is known of this worker.
            self._start(pages, threading.get_ident(), lambda: True)

    def _start(self, pages: mmap.mmap, ident: int, works: Callable[[], bool]) -> None:
        asked = (pages, ident, works, os.getppid())
        threading.Thread(target=self._follow, args=asked, name="stepscope-lines", daemon=True).start()

    def _follow(self, pages: mmap.mmap, ident: int, works: Callable[[], bool], parent: int) -> None:
        seen = 0
        while os.getppid() == parent and (number := self._open_number(pages)) != _OVER:
            if number % 2 and number != seen and works():
                seen = number
                self._look(pages, ident, number)
            sleep(POLL_S)

    def _look(self, pages: mmap.mmap, ident: int, number: int) -> None:
        at = _claimed(pages, number)
        if at is None:
            return
        lines, began, ran = ThreadLines(worker_frame), perf_counter_ns(), process_time_ns()
        waited = waited_for_core_ns(os.getpid())

        def tell() -> None:
            lines.stop()
            by_place, waits = lines.by_place(), waited_for_core_ns(os.getpid())
            facts = {
                "passed_ns": perf_counter_ns() - began,
                "ran_ns": process_time_ns() - ran,
                "core_wait_ns": None if waits is None or waited is None else waits - waited,
                "looked_ns": sum(by_place.values()),
                "waiting_ns": by_place.pop(None, 0),
                "places": [[*place, ns] for place, ns in Counter(by_place).most_common(MOST_PLACES)],  # type: ignore[misc]
            }
            _write(pages, at, facts)

        lines.start(ident)
        finalize, telling = import_module("multiprocessing.util").Finalize, None
        while self._open_number(pages) == number:
            # A worker whose pass over the data ends within the window tells as it ends. What is registered before a
            # child has begun is forgotten.
            if telling is None or not telling.still_active():
                telling = finalize(None, tell, exitpriority=0)
            sleep(ENDING_S)
        tell()


def worker_frame(frame: FrameType | None) -> FrameType | None:
    """Of a worker's stack the innermost frame of the job's own code; where it has none, that which PyTorch's loader
    called, or the loader's; None where the worker waits or hands over."""
    called = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith((_LOOP, _PROCESS)):  # Behind it is the stack of the process that was forked.
            return None
        if is_own(file):
            return frame
        if _PARTS in file:
            return called or frame
        called, frame = frame, frame.f_back
    return None


def _makes_a_worker(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__init__" and frame.f_code.co_filename.endswith(_LOADER):
            return True
        frame = frame.f_back
    return False


def _process() -> Any:
    """This process as ``multiprocessing`` knows it; None where the job does not use that."""
    module = sys.modules.get("multiprocessing.process")
    return module.current_process() if module is not None else None


def _works(frame: FrameType | None) -> bool:
    """Whether a worker of a loader is at work, by the innermost frame of its main thread."""
    while frame is not None:
        if frame.f_code.co_filename.endswith(_LOOP):
            return True
        frame = frame.f_back
    return False


def _claimed(pages: mmap.mmap, number: int) -> int | None:
    """Where this process may write; None where all of it is taken."""
    for turn in range(SLOTS):
        at = mmap.PAGESIZE + (os.getpid() + turn) % SLOTS * SLOT_BYTES
        if _SLOT.unpack_from(pages, at)[1] != number:
            _SLOT.pack_into(pages, at, os.getpid(), number, 0)
            return at
    return None


def _write(pages: mmap.mmap, at: int, facts: dict[str, Any]) -> None:
    """What fits: places of long names may be too many."""
    data = json.dumps(facts).encode()
    while len(data) > SLOT_BYTES - _SLOT.size and facts["places"]:
        facts["places"].pop()
        data = json.dumps(facts).encode()
    process, number, _ = _SLOT.unpack_from(pages, at)
    pages[at + _SLOT.size : at + _SLOT.size + len(data)] = data
    _SLOT.pack_into(pages, at, process, number, len(data))


def _together(seen: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not seen:
        return None
    places: Counter[tuple[str, int, str]] = Counter()
    # As PyTorch names files.
    roots = sorted({os.path.join(os.path.abspath(path), "") for path in sys.path}, key=len, reverse=True)
    for one in seen:
        for file, line, function, ns in one["places"]:
            root = next((root for root in roots if file.startswith(root)), "")
            places[file[len(root) :], line, function] += ns
    core_waits = [one["core_wait_ns"] for one in seen]
    return {
        "processes": len(seen),
        **{name: sum(one[name] for one in seen) for name in ("passed_ns", "looked_ns", "waiting_ns", "ran_ns")},
        "core_wait_ns": None if None in core_waits else sum(core_waits),
        "places": [[*place, ns] for place, ns in places.most_common(MOST_PLACES)],
    }


worker_lines = WorkerLines()
"""Those of this process."""
