"""Files that are mapped, and stay readable where somebody cuts them off meanwhile.

The system ends a process that touches a page of a mapped file that is no longer there (SIGBUS). Here such pages become
zeros instead, and where the file ended is kept, so that what was read of it can be told as far as it goes. On Linux;
the handler is ctypes' and costs nothing until a page is gone. Elsewhere the system does what it does.
"""

from __future__ import annotations

import _thread
import ctypes
import mmap
import os
import signal
import sys
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

_TRIES = 1000
"""Signals that no cut file explains (a file that grew again at once, a failing disk) before the system decides."""


@dataclass
class Map:
    """A file that is mapped, and by now perhaps cut."""

    file: int
    address: int
    length: int
    raising: tuple[int, type[Exception]] | None
    """A thread, and what it is told where the file is cut off."""
    cut: int | None = None


_MAPS: dict[int, Map] = {}
_LOCK = threading.Lock()


def mapped(file: BinaryIO, gone: type[Exception] | None = None) -> npt.NDArray[np.uint8]:
    """The bytes of a file. Raises OSError where it cannot be mapped, ValueError where it is empty.

    With ``gone`` the calling thread gets that exception where the file turns out to be cut off, as what lies in it is
    of no use in part.
    """
    data = np.memmap(file, np.uint8, mode="r")
    if _install():
        raising = None if gone is None else (threading.get_ident(), gone)
        known = Map(os.dup(file.fileno()), data.ctypes.data, data.nbytes, raising)
        _MAPS[known.address] = known
        weakref.finalize(data._mmap, _forget, known)  # type: ignore[attr-defined]
    return data


def map_of(data: npt.NDArray[Any]) -> Map | None:
    """What is known of mapped bytes; ``cut`` is where the file ended when a page behind its end was asked for."""
    return _MAPS.get(data.ctypes.data)


def _forget(known: Map) -> None:
    if _MAPS.get(known.address) is known:
        del _MAPS[known.address]
    os.close(known.file)


# --- the signal -------------------------------------------------------------------------------------------------------

_HANDLER: list[Any] = []
_AT_WORK: set[int] = set()
_SOON_S = 0.001
_unexplained = 0
_MAP_FIXED = 0x10


def _install() -> bool:
    """Handle the signal from now on; whether that is possible."""
    if not sys.platform.startswith("linux"):
        return False
    with _LOCK:
        if not _HANDLER:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.signal.restype = ctypes.c_void_p
            libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
            handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: _on_missing(libc, number))
            before = libc.signal(signal.SIGBUS, ctypes.cast(handler, ctypes.c_void_p))
            _HANDLER.extend((handler, before))
    return True


def _on_missing(libc: Any, number: int) -> None:
    """Runs in the thread that touched the page, which does so again when this returns."""
    global _unexplained
    _AT_WORK.add(threading.get_ident())
    try:
        mended = [_mended(libc, known) for known in list(_MAPS.values())]
        if not any(mended):
            _unexplained += 1
            if _unexplained > _TRIES:
                libc.signal(number, _HANDLER[1])
    finally:
        _AT_WORK.discard(threading.get_ident())


def _mended(libc: Any, known: Map) -> bool:
    size = os.fstat(known.file).st_size
    if size >= known.length or (known.cut is not None and size >= known.cut):
        return False
    kept = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    if kept < known.length:
        libc.mmap(known.address + kept, known.length - kept, mmap.PROT_READ, flags, -1, 0)
    known.cut = size
    if known.raising is not None:
        _thread.start_new_thread(_raise, known.raising)
    return True


def _raise(thread: int, kind: type[Exception]) -> None:
    """Raise in a thread, once it is out of the handler: what is raised within ctypes' calls is lost."""
    while thread in _AT_WORK:
        time.sleep(_SOON_S)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
