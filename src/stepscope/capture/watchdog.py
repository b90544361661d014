"""A thread that looks after an open window, since a step that never ends calls no hook."""

from __future__ import annotations

import threading
from collections.abc import Callable

EVERY_S = 0.5


class Watchdog(threading.Thread):
    """Asks ``overdue`` twice a second, and tells ``act`` what it answered, until that says it is enough."""

    def __init__(self, overdue: Callable[[], str | None], act: Callable[[str], bool], over: Callable[[], bool]) -> None:
        super().__init__(name="stepscope-watchdog", daemon=True)
        self._overdue, self._act, self._over = overdue, act, over
        self._pause = threading.Event()

    def run(self) -> None:
        """Watch until the window is over."""
        while not self._pause.wait(EVERY_S) and not self._over():
            reason = self._overdue()
            if reason is not None and self._act(reason):
                return


_calls: list[object] = []


def on_main_thread(call: Callable[[], None]) -> bool:
    """Have the main thread make this call between two of its own instructions; False where it cannot be asked.

    PyTorch's profiler belongs to the thread that started it, so no other thread can stop it.
    """

    import ctypes  # Rarely needed.

    def pending(_: object) -> int:
        call()
        return 0

    made = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(pending)
    _calls.append(made)  # It must outlive the call.
    return bool(ctypes.pythonapi.Py_AddPendingCall(made, None) == 0)


class MainThread:
    """Asks the main thread for one thing again and again, but never while it is at it.

    Python 3.11 that is asked while it does so, and starts tracing in it, never comes out of it: the request stays, and
    the first instruction of a traced function looks for requests until there is none.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._is_asked = False

    def ask(self) -> None:
        """Ask, unless it has been asked and has not answered."""
        if not self._is_asked:
            self._is_asked = True
            if not on_main_thread(self._answer):
                self._is_asked = False

    def _answer(self) -> None:
        try:
            self._call()
        finally:
            self._is_asked = False
