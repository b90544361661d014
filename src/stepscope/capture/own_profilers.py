"""The job's own profilers: one process has one at a time, so ours ends before the job's begins."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from .hooking import GivingWay, replace


def _make_way(recorder: GivingWay, modules: list[Any], name: str) -> None:
    """End our window before the job starts a profiler of its own, which would fail beside ours."""
    original = getattr(modules[0], name)

    @functools.wraps(original)
    def starting(*arguments: Any, **named: Any) -> Any:
        if not recorder.starts_now:
            recorder.make_way()
        return original(*arguments, **named)

    for module in modules:
        if getattr(module, name, None) is original:
            replace(recorder, module, name, starting)


_STARTS = {
    "jax": (("jax._src.profiler", "jax.profiler"), "start_trace"),
    "tensorflow": (("tensorflow.python.profiler.profiler_v2", "tensorflow._api.v2.profiler.experimental"), "start"),
    "torch_xla": (("torch_xla.debug.profiler",), "start_trace"),
}
"""Framework -> where its profiler is started: modules and name."""


def make_way(recorder: GivingWay, framework: str) -> None:
    """Notice the job's own profiler of a framework, and end before it starts."""
    if framework == "torch":
        from .torch_backend import sessions

        sessions.follow(import_module("torch.autograd.profiler").profile)
        sessions.make_way = recorder.make_way
    elif framework in _STARTS:
        modules, name = _STARTS[framework]
        _make_way(recorder, [import_module(module) for module in modules], name)
