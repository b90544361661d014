"""How steps are noticed in each framework: hooks put in after its import, and taken out when the recording is over."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Hashable
from importlib import import_module
from types import ModuleType
from typing import Any

from .callbacks import NamedCallbacks
from .hooking import GivingWay, replace
from .inference import SERVING, into_generation, into_serving
from .phases import RecordingPhase
from .recorder import Recorder
from .steps import BATCH, CALL
from .torch_hooks import into_torch

DURATION_AFTER_S = 60.0
"""A job in which no step was found this long after its framework was imported is recorded for a stretch of time."""
DURATION_S = 2.0


# --- JAX --------------------------------------------------------------------------------------------------------------


class Watched:
    """A compiled function that tells the recorder of its calls, and is otherwise the function."""

    def __init__(self, jitted: Any, called: Callable[[tuple[str, int]], None]) -> None:
        self._jitted = jitted
        self._called = called
        functools.update_wrapper(self, jitted)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.told()
        return self._jitted(*arguments, **named)

    def told(self) -> None:
        """It is about to be called."""
        self._called(("jax", id(self)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def lower(self, *arguments: Any, **named: Any) -> Any:
        """The compiled function's own."""
        return self._jitted.lower(*arguments, **named)

    def trace(self, *arguments: Any, **named: Any) -> Any:
        """The compiled function's own."""
        return self._jitted.trace(*arguments, **named)


def into_jax(recorder: Recorder, jax: Any) -> None:
    """Calls of functions that the job compiles with ``jax.jit`` or ``jax.pmap``, outside of tracing."""
    core: Any = import_module("jax._src.core")
    clean: Callable[[], bool] = getattr(core, "trace_state_clean", lambda: True)

    def called(key: tuple[str, int]) -> None:
        if clean():
            recorder.call(CALL, key)

    def watching(compiles: Any) -> Any:
        @functools.wraps(compiles)
        def compiled(*arguments: Any, **named: Any) -> Any:
            result = compiles(*arguments, **named)
            if hasattr(result, "lower"):
                return Watched(result, called)
            return lambda function: Watched(result(function), called)  # Options alone: a decorator.

        return compiled

    for name in ("jit", "pmap"):
        if hasattr(jax, name):
            replace(recorder, jax, name, watching(getattr(jax, name)))
    make_way(recorder, "jax")
    _duration(recorder, "jax")


# --- TensorFlow -------------------------------------------------------------------------------------------------------


def into_tensorflow(recorder: Recorder, _: Any) -> None:
    """Calls of ``tf.function`` from eager code, Keras's train function among them, and ``Session.run``."""
    function: Any = import_module("tensorflow.python.eager.polymorphic_function.polymorphic_function").Function
    context: Any = import_module("tensorflow.python.eager.context")
    calls = function.__call__

    @functools.wraps(calls)
    def calling(self: Any, *arguments: Any, **named: Any) -> Any:
        if context.executing_eagerly():
            recorder.call(CALL, ("tensorflow", id(self)))
        return calls(self, *arguments, **named)

    replace(recorder, function, "__call__", calling)
    trace_sessions(
        recorder,
        lambda: recorder.backend,
        lambda fetches: recorder.call(CALL, ("tensorflow_session", _identity(fetches))),
    )
    make_way(recorder, "tensorflow")
    _duration(recorder, "tensorflow")


def trace_sessions(giving: GivingWay, backend: Callable[[], Any], called: Callable[[Any], None] | None = None) -> None:
    """Have ``Session.run`` fill a RunMetadata while a session backend records; ``called`` gets what a run fetches."""
    from .session_backend import SessionBackend

    session: Any = import_module("tensorflow.python.client.session").BaseSession
    runs = session.run

    @functools.wraps(runs)
    def running(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        if called is not None:
            called(fetches)
        recording = backend()
        # Hooked sessions pass options with every run. Who traces by himself is left alone.
        by_himself = options is not None and options.trace_level
        if not isinstance(recording, SessionBackend) or not recording.active or by_himself:
            return runs(self, fetches, feed_dict, options, run_metadata)
        traced, metadata = recording.traced(options)
        result = runs(self, fetches, feed_dict, traced, metadata)
        if run_metadata is not None:
            run_metadata.CopyFrom(metadata)
        return result

    replace(giving, session, "run", running)


def _identity(fetches: Any) -> Hashable:
    """What stays the same where the same things are fetched again, in a list made anew."""
    if isinstance(fetches, dict):
        return tuple(map(id, fetches.values()))
    return tuple(map(id, fetches)) if isinstance(fetches, (list, tuple)) else id(fetches)


# --- Keras ------------------------------------------------------------------------------------------------------------


def into_keras(recorder: Recorder, keras: Any) -> None:
    """The ends of ``fit``'s batches, on every backend: with ``steps_per_execution`` several end together. While they
    are recorded, so is what each callback takes."""
    lists: Any = keras.callbacks.CallbackList
    ends = lists.on_train_batch_end
    key = (keras.backend.backend(), "batch")
    named_callbacks = NamedCallbacks(keras.callbacks.Callback)
    recording = RecordingPhase.RECORDING

    @functools.wraps(ends)
    def ending(self: Any, *arguments: Any, **named: Any) -> None:
        ends(self, *arguments, **named)
        recorder.call(BATCH, key)
        named_callbacks.follow(self, recording=recorder.phase is recording)

    replace(recorder, lists, "on_train_batch_end", ending)
    recorder.on_done.append(named_callbacks.clear)


# --- all --------------------------------------------------------------------------------------------------------------


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


def _duration(recorder: Recorder, framework: str) -> None:
    timer = threading.Timer(DURATION_AFTER_S, recorder.record_for, (framework, DURATION_S))
    timer.daemon = True
    timer.start()
    recorder.on_done.append(timer.cancel)


def into_torch_xla(recorder: Recorder, _: Any) -> None:
    """Steps are PyTorch's optimizer steps; only the job's own profiler must be made way for."""
    make_way(recorder, "torch_xla")


def into_transformers(recorder: Recorder, module: Any) -> None:
    """Calls of ``generate``."""
    if recorder.calls is not None:
        into_generation(recorder, recorder.calls, module)


INTO: dict[str, Callable[[Recorder, ModuleType], None]] = {
    "torch": into_torch,
    "transformers.generation.utils": into_transformers,
    **dict.fromkeys(SERVING, into_serving),
    "jax": into_jax,
    "tensorflow": into_tensorflow,
    "torch_xla": into_torch_xla,
    "keras": into_keras,
}
"""Module -> what puts hooks into it once it was imported."""
