"""Children that are forked once Kineto has been at work in a process.

Kineto's static objects wait, as a process ends, for a thread that a forked child does not have: a child that ends by
``sys.exit`` or at the end of its code then hangs for ever (PyTorch 2.13, ``libkineto::ConfigLoader::~ConfigLoader``, in
``pthread_cond_destroy``), with any profiler of PyTorch's, ours too. Such a child skips what libraries registered before
the fork to be done at the end of a process, as children of ``multiprocessing`` do.
"""

from __future__ import annotations

import ctypes
import os

from .state import shared


def end_well() -> None:
    """Have children that are forked from now on end. Once per process is enough; nothing where it is not glibc's."""
    if shared.forks_end or not hasattr(os, "register_at_fork"):
        return
    shared.forks_end = True
    try:
        libc = ctypes.CDLL(None)
        register, leave, flush = libc.on_exit, libc._exit, libc.fcloseall
    except (OSError, AttributeError):
        return

    def in_child() -> None:
        # C functions, as no Python is left by then; the last registered runs first. ``_exit`` gets the exit status.
        register(leave, None)
        register(flush, None)

    os.register_at_fork(after_in_child=in_child)
