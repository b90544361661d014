"""Steps of PyTorch, and what else of a job a recording must know: its own profiler, and the files that this writes."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .hooking import Counting
from .inference import ModelCalls, Outermost, watch_calls
from .place import is_launcher
from .recorder import Recorder
from .steps import OPTIMIZER
from .stretches import starts_up

QUIET_S = 10.0
"""A job that neither imports nor compiles, and calls nothing again and again for so long, is recorded for a stretch of
time; and again after twice as long where nothing of PyTorch ran in it."""
STRETCH_S = 2.0
_EVERY_S = 0.5


def watch_torch(counting: Counting, torch: Any) -> ModelCalls:
    """Optimizer steps, and calls of models."""
    modules, call = sys.modules, counting.call

    def stepped(optimizer: Any, *_: Any) -> None:
        call(OPTIMIZER, (_owner(optimizer) if "torch_xla" in modules else "torch", id(optimizer)))

    optimizers: Any = import_module("torch.optim.optimizer")
    hook = optimizers.register_optimizer_step_post_hook(stepped)
    counting.on_done.append(lambda: _silence(hook))
    return watch_calls(counting, torch)


def _silence(handle: Any) -> None:
    """Put a hook that does nothing in a hook's place: PyTorch walks its hooks while they run, and none may go then."""
    hooks = handle.hooks_dict_ref()
    if hooks is not None and handle.id in hooks:
        hooks[handle.id] = lambda *_: None


def _owner(optimizer: Any) -> str:
    """The framework whose profiler sees what the optimizer works on, where PyTorch/XLA is imported."""
    groups = optimizer.param_groups
    device = groups[0]["params"][0].device.type if groups and groups[0]["params"] else ""
    return "torch_xla" if device == "xla" else "torch"


# --- under ``stepscope run`` ------------------------------------------------------------------------------------------


def into_torch(recorder: Recorder, torch: Any) -> None:
    """Steps, profilers that the job starts itself and what they write; and a stretch of time where nothing repeats."""
    from .hooks import make_way
    from .torch_backend import sessions

    calls = watch_torch(recorder, torch)
    recorder.on_calls_over.append(calls.over)
    recorder.calls = calls
    make_way(recorder, "torch")
    recorder.others_record = lambda: bool(sessions.active)
    follow_exports(recorder.wrote_itself)

    def look() -> None:
        Outermost(torch, calls.watch, lambda: recorder.seeks_calls).start()
        _Stretches(recorder, calls).start()

    look()
    recorder.on_fork.append(look)


class _Stretches(threading.Thread):
    """Has a stretch of time recorded where no steps are found."""

    def __init__(self, recorder: Recorder, calls: ModelCalls) -> None:
        super().__init__(name="stepscope-stretches", daemon=True)
        self._recorder, self._calls = recorder, calls
        self._main = threading.main_thread().ident or 0

    def run(self) -> None:
        """Wait, and ask for it, until there are steps or there is a profile."""
        wait_s, quiet_s = QUIET_S, 0.0
        while self._recorder.seeks_calls and not _loads_data():
            time.sleep(_EVERY_S)
            if self._calls.trains or self._calls.seen or starts_up(sys._current_frames().get(self._main)):
                continue
            quiet_s += _EVERY_S
            if quiet_s >= wait_s:
                if is_launcher() or self._recorder.record_for("torch", STRETCH_S):
                    return
                wait_s, quiet_s = 2 * wait_s, 0.0


def _loads_data() -> bool:
    """Whether this process is a worker of a loader."""
    data: Any = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def follow_exports(wrote: Callable[[str], None]) -> None:
    """Tell of every trace that the job's own profiler writes, once it is written."""
    kineto = getattr(import_module("torch.profiler.profiler"), "_KinetoProfile", None)
    plain = import_module("torch.autograd.profiler").profile
    within: list[int] = []

    def following(exports: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(exports)
        def export_chrome_trace(self: Any, path: Any, *arguments: Any, **named: Any) -> Any:
            thread = threading.get_ident()
            if thread in within:  # The one calls the other, with a file of its own.
                return exports(self, path, *arguments, **named)
            within.append(thread)
            try:
                result = exports(self, path, *arguments, **named)
            finally:
                within.remove(thread)
            wrote(os.fspath(path))
            return result

        return export_chrome_trace

    for owner in (kineto, plain):
        if owner is not None:
            owner.export_chrome_trace = following(owner.export_chrome_trace)
