"""Recording a running job from the page: one at a time, in the background, into the list of what is shown."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from stepscope.errors import StepscopeError, UsageError
from stepscope.web.entries import Entry
from stepscope.web.limits import PAGE_CAPTURE_LONGEST_S, PAGE_CAPTURES

Record = Callable[[str, float, threading.Event], Entry]
"""Records ``HOST:PORT`` for so many seconds, unless the event is set meanwhile. Raises StepscopeError with what a user
should know."""


class Captures:
    """What was recorded since the pages are served, and what is being recorded.

    ``check`` raises UsageError for what is no address; ``missing`` says what must be installed first, where something
    must.
    """

    def __init__(self, record: Record, check: Callable[[str], object], missing: str | None = None) -> None:
        self.entries: list[Entry] = []  # Only ever grows: requests name entries by position.
        self.missing = missing
        self._record, self._check = record, check
        self._lock = threading.Lock()
        self._address: str | None = None
        self._seconds = 0.0
        self._began = 0.0
        self._failure: list[str] = []
        self._stop = threading.Event()

    def state(self) -> dict[str, Any]:
        """What the page shows: the capture that runs, how many profiles arrived, why the last one did not."""
        with self._lock:
            return {
                "running": self._address,
                "seconds": self._seconds,
                "cancelled": self._address is not None and self._stop.is_set(),
                "elapsed": round(time.monotonic() - self._began, 1) if self._address is not None else None,
                "captured": len(self.entries),
                "failure": self._failure,
            }

    def start(self, address: object, seconds: object) -> None:
        """Begin to record. Raises UsageError for what cannot be recorded, and while another capture runs."""
        if self.missing is not None:
            raise UsageError(self.missing)
        if not isinstance(address, str) or isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise UsageError("a capture needs an address, HOST:PORT, and a number of seconds")
        self._check(address)
        if not 0.001 <= seconds <= PAGE_CAPTURE_LONGEST_S:
            raise UsageError(f"a capture from the page lasts from 1 ms to {PAGE_CAPTURE_LONGEST_S:g} s")
        with self._lock:
            if self._address is not None:
                raise UsageError(f"{self._address} is being recorded: wait until it has ended")
            if len(self.entries) >= PAGE_CAPTURES:
                raise UsageError(f"{PAGE_CAPTURES} profiles were captured here: start stepscope view again for more")
            self._address, self._seconds, self._began, self._failure = address, seconds, time.monotonic(), []
            stop = self._stop = threading.Event()
        threading.Thread(target=self._run, args=(address, seconds, stop), name="stepscope-capture", daemon=True).start()

    def cancel(self) -> None:
        """Give up the capture that runs, if one does; its end follows soon."""
        with self._lock:
            self._stop.set()

    def _run(self, address: str, seconds: float, stop: threading.Event) -> None:
        failure: list[str] = []
        try:
            entry = self._record(address, seconds, stop)
        except StepscopeError as error:
            failure = [error.sentence, *error.details]
        except Exception as error:  # noqa: BLE001  The page says it; nobody reads this thread's traceback.
            failure = [f"stepscope itself failed ({type(error).__name__}: {error})"]
        with self._lock:
            if not failure:
                self.entries.append(entry)
            self._address, self._failure = None, failure
