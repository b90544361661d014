"""Steps of TensorFlow and Keras."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Hashable
from importlib import import_module
from typing import Any

from .callbacks import NamedCallbacks
from .hooking import GivingWay, replace
from .own_profilers import make_way
from .phases import RecordingPhase
from .recorder import Recorder
from .steps import BATCH, CALL
from .stretches import record_where_nothing_repeats


def into_tensorflow(recorder: Recorder, _: Any) -> None:
    """Calls of ``tf.function`` from eager code, Keras's train function among them, gradients taped there, and
    ``Session.run``."""
    function: Any = import_module("tensorflow.python.eager.polymorphic_function.polymorphic_function").Function
    context: Any = import_module("tensorflow.python.eager.context")
    calls = function.__call__

    @functools.wraps(calls)
    def calling(self: Any, *arguments: Any, **named: Any) -> Any:
        if context.executing_eagerly():
            recorder.call(CALL, ("tensorflow", id(self)))
        return calls(self, *arguments, **named)

    replace(recorder, function, "__call__", calling)
    _tapes(recorder, context)
    trace_sessions(
        recorder,
        lambda: recorder.backend,
        lambda fetches: recorder.call(CALL, ("tensorflow_session", _identity(fetches))),
    )
    make_way(recorder, "tensorflow")
    record_where_nothing_repeats(recorder, "tensorflow")


def _tapes(recorder: Recorder, context: Any) -> None:
    """Forward passes that eager code tapes: each ``with tf.GradientTape()`` of the program is one thing called."""
    tape: Any = import_module("tensorflow.python.eager.backprop").GradientTape
    enters = tape.__enter__

    @functools.wraps(enters)
    def entering(self: Any) -> Any:
        if context.executing_eagerly():
            caller = sys._getframe(1)
            recorder.call(CALL, ("tensorflow", (id(caller.f_code), caller.f_lasti)))
        return enters(self)

    replace(recorder, tape, "__enter__", entering)


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
    if keras.backend.backend() == "tensorflow":
        _eager_models(recorder, keras)


def _eager_models(recorder: Recorder, keras: Any) -> None:
    """Calls of models from eager code."""
    context: Any = import_module("tensorflow.python.eager.context")
    calls = keras.Model.__call__

    @functools.wraps(calls)
    def calling(self: Any, *arguments: Any, **named: Any) -> Any:
        if context.executing_eagerly():
            recorder.call(CALL, ("tensorflow", id(self)))
        return calls(self, *arguments, **named)

    replace(recorder, keras.Model, "__call__", calling)
