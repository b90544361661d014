"""Which line the thread that runs the steps is at, looked up every few milliseconds.

XLA's profilers tell of Python functions that begin while they record. The body of a script began long before, so that
a loop in it has no line in the profile, and TensorFlow 2.21 and PyTorch/XLA record no Python code at all.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections import Counter
from typing import Any

EVERY_MS = 2
"""In a loop that never leaves Python, the worst case, this cost between nothing and 3 % in five sittings of
``benchmarks/line_lookups.py`` on two cores, which differ by as much: a lock is handed over for each look."""
_KEPT = 20
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NOT_THE_JOB_S = tuple(
    {os.path.join(path, "") for path in (*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), _OURS) if path}
)


class Lines:
    """Looks at one thread from ``start`` to ``stop``."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: Counter[tuple[str, int, str]] = Counter()
        self._looks = 0

    def start(self, ident: int) -> None:
        """Look at the thread of that number; where no thread can be started the profile goes without."""
        if self._thread is not None:
            return
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

    def facts(self) -> dict[str, Any]:
        """How often it looked, and the lines it found most often; nothing where it found none."""
        seen = [
            {"file": file, "line": line, "function": function, "looks": looks}
            for (file, line, function), looks in self._seen.most_common(_KEPT)
        ]
        return {"lines": {"looks": self._looks, "every_ms": EVERY_MS, "seen": seen}} if seen else {}

    def _look(self, ident: int) -> None:
        while not self._over.wait(EVERY_MS / 1_000):
            self._looks += 1
            frame = sys._current_frames().get(ident)
            while frame is not None and not _is_the_job_s(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None:
                self._seen[frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name] += 1


def _is_the_job_s(path: str) -> bool:
    """Whether code is of the program itself, not of Python, of a package or of ours."""
    return not path.startswith(("<", *_NOT_THE_JOB_S))
