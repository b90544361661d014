"""Steps of PyTorch, and what else of a job a recording must know: its own profiler, and the files that this writes."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .hooking import Counting, replace
from .imports import after_import
from .inference import ModelCalls, Outermost, watch_calls
from .own_profilers import make_way
from .recorder import Recorder
from .steps import OPTIMIZER
from .stretches import Stretches
from .worker_lines import SPAWN, worker_lines


def watch_torch(counting: Counting, torch: Any) -> ModelCalls:
    """Optimizer steps, and calls of models."""
    modules, call = sys.modules, counting.call

    def stepped(optimizer: Any, *_: Any) -> None:
        call(OPTIMIZER, (_owner(optimizer) if "torch_xla" in modules else "torch", optimizer_key(optimizer)))

    optimizers: Any = import_module("torch.optim.optimizer")
    hook = optimizers.register_optimizer_step_post_hook(stepped)
    counting.on_done.append(lambda: _silence(hook))
    return watch_calls(counting, torch)


def optimizer_key(optimizer: Any) -> tuple[type, int]:
    """What an optimizer and those that the job makes in its place have in common: a kind, and the first parameter."""
    first = next((each for group in optimizer.param_groups for each in group["params"]), optimizer)
    return type(optimizer), id(first)


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
    from .torch_backend import sessions

    calls = watch_torch(recorder, torch)
    _count_parameters(recorder)
    recorder.on_calls_over.append(calls.over)
    recorder.calls = calls
    make_way(recorder, "torch")
    recorder.others_record = lambda: bool(sessions.active)
    follow_exports(recorder.wrote_itself)
    worker_lines.join()
    worker_lines.follow_forks()
    after_import(dict.fromkeys(SPAWN, functools.partial(_follow_spawns, recorder)))

    def look() -> None:
        Outermost(torch, calls.watch, lambda: recorder.seeks_calls).start()
        Stretches(recorder, "torch", lambda: calls.trains or calls.seen, _loads_data).start()

    look()
    recorder.on_fork.append(look)


def _follow_spawns(recorder: Recorder, module: Any) -> None:
    begins = module.Popen.__init__

    @functools.wraps(begins)
    def beginning(*arguments: Any, **named: Any) -> None:
        worker_lines.spawns()
        begins(*arguments, **named)

    replace(recorder, module.Popen, "__init__", beginning)


def _count_parameters(recorder: Recorder) -> None:
    """How many numbers of which type the first optimizer to step has for parameters."""

    def stepped(optimizer: Any, *_: Any) -> None:
        _silence(hook)
        counts: Counter[str] = Counter()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                counts[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
        recorder.parameters = dict(counts)

    optimizers: Any = import_module("torch.optim.optimizer")
    hook = optimizers.register_optimizer_step_post_hook(stepped)
    recorder.on_done.append(lambda: _silence(hook))


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
