"""One window, asked for from outside of a job that runs: its main thread is made to call ``begin``."""

from __future__ import annotations

import atexit
import json
import sys
import threading
from typing import Any

from .backend import Declined
from .files import moved, written
from .inference import Outermost
from .on_demand import OnDemand, WindowRequest
from .state import shared
from .torch_hooks import watch_torch

_EXPORT_S = 60.0
"""A job that ends waits so long for what was recorded of it to be written."""


def begin(asked: dict[str, Any], answer: str) -> None:
    """Record on a thread of ours, and write what became of it, as JSON, to the file ``answer``."""
    window = OnDemand()
    thread = threading.Thread(target=_answer, args=(window, asked, answer), name="stepscope-injected", daemon=True)

    def job_ends() -> None:
        window.close()  # A profiler that is at work as Python ends takes the process down.
        thread.join(_EXPORT_S)

    atexit.register(job_ends)
    thread.start()


def _answer(window: OnDemand, asked: dict[str, Any], answer: str) -> None:
    try:
        told = {"path": _capture(window, WindowRequest(**asked))}
    except Declined as reason:
        told = {"declined": str(reason)}
    except Exception as error:  # noqa: BLE001  Between our code and the user's.
        told = {"declined": f"recording failed ({type(error).__name__}: {error})"}
    written(answer + ".part", json.dumps(told).encode())
    moved(answer + ".part", answer)


def _capture(window: OnDemand, asked: WindowRequest) -> str:
    torch = sys.modules.get("torch")
    if torch is None:
        raise Declined("PyTorch is not imported in this process")
    if shared.on_demand is not None:
        path: str = shared.on_demand.capture(asked)
        return path
    calls = watch_torch(window, torch)
    Outermost(torch, calls.watch, lambda: bool(window.on_done) and not window.status()["steps"]).start()
    try:
        return window.capture(asked)
    finally:
        window.close()
