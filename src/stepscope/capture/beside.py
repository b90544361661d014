"""Threads of the program that run beside the one that makes the steps: one at a time has the interpreter."""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns
from types import FrameType
from typing import Any

from .lines import working_thread
from .own_code import is_own

MOST_THREADS = 64
"""Of a program that has more, the rest are not looked at: it takes 12 us each."""
LONGEST_NAME = 80


class ThreadsBeside:
    """What processor time they take from now on."""

    def __init__(self) -> None:
        self._of = working_thread()
        self._began = perf_counter_ns()
        self._before = {thread: ran for thread in self._others() if (ran := _ran_ns(thread.native_id)) is not None}

    def told(self) -> list[dict[str, Any]]:
        """Per thread that ran since: its name, for how long, in how much time, and the outermost function of the
        program that it is in; times in ns."""
        passed, frames = perf_counter_ns() - self._began, sys._current_frames()
        told = []
        for thread in self._others():
            ran = _ran_ns(thread.native_id)
            if ran is None or thread not in self._before or ran <= self._before[thread]:
                continue
            one = {"name": thread.name[:LONGEST_NAME], "ran_ns": ran - self._before[thread], "passed_ns": passed}
            told.append(one | _place(frames.get(thread.ident or 0)))
        return told

    def _others(self) -> list[threading.Thread]:
        every = [thread for thread in threading.enumerate() if thread.ident != self._of]
        return [thread for thread in every if not thread.name.startswith("stepscope-")][:MOST_THREADS]


def _place(frame: FrameType | None) -> dict[str, Any]:
    outermost = None
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            outermost = frame.f_code
        frame = frame.f_back
    if outermost is None:
        return {}
    return {"file": outermost.co_filename, "line": outermost.co_firstlineno, "function": outermost.co_name}


def _ran_ns(thread: int | None) -> int | None:
    """How long a thread ran on a core, as Linux counts it; None elsewhere."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, IndexError, ValueError):
        return None
