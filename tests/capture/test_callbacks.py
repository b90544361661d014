"""Ranges around Keras's callbacks while they are recorded, and around nothing else; on a stand-in for Keras."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepscope.capture import callbacks as capture_callbacks
from stepscope.capture.callbacks import METHODS, NamedCallbacks
from stepscope.names.callbacks import named_callback


class Callback:
    """Keras's own, in which every method does nothing but that for batches of training."""

    def on_train_batch_end(self, batch: int) -> None:
        self.on_batch_end(batch)

    def on_batch_end(self, batch: int) -> None: ...

    def on_epoch_end(self, epoch: int) -> None: ...


class Mine(Callback):
    def on_train_batch_end(self, batch: int) -> None:
        said.append(batch)


class Any(Callback):
    def on_batch_end(self, batch: int) -> None:
        said.append(batch)


class Closed:
    """Takes no other methods."""

    __slots__ = ()

    def on_train_batch_end(self, batch: int) -> None:
        said.append(batch)


said: list[int] = []


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    class Range:
        def __init__(self, name: str) -> None:
            names.append(name)

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

    monkeypatch.setattr(capture_callbacks, "annotate", Range)
    said.clear()
    return names


def of(*callbacks: object) -> SimpleNamespace:
    return SimpleNamespace(callbacks=list(callbacks))


def test_a_callback_has_its_range_by_class_and_line_while_it_is_recorded(opened: list[str]):
    mine, named = Mine(), NamedCallbacks(Callback)
    mine.on_train_batch_end(0)
    named.follow(of(mine), recording=True)
    mine.on_train_batch_end(1)
    named.follow(of(mine), recording=False)
    mine.on_train_batch_end(2)
    assert said == [0, 1, 2]
    (name,) = opened
    line = Mine.on_train_batch_end.__code__.co_firstlineno
    told = named_callback(name)
    assert told is not None
    assert (told[0], Path(told[1]).name, told[2]) == ("Mine.on_train_batch_end", "test_callbacks.py", line)
    assert not vars(mine)


def test_what_keras_calls_and_does_nothing_has_none(opened: list[str]):
    some, named = Any(), NamedCallbacks(Callback)
    named.follow(of(some), recording=True)
    some.on_train_batch_end(1)
    some.on_epoch_end(1)
    assert [named_callback(name)[0] for name in opened] == ["Any.on_batch_end"]  # type: ignore[index]


def test_a_function_given_to_the_callback_is_named_and_stays(opened: list[str]):
    given, named = Callback(), NamedCallbacks(Callback)
    function = given.on_epoch_end = said.append  # type: ignore[method-assign]
    written = given.on_train_batch_end = lambda batch: said.append(batch)  # type: ignore[method-assign]
    named.follow(of(given), recording=True)
    given.on_train_batch_end(3)
    given.on_epoch_end(4)
    named.clear()
    assert said == [3, 4]
    assert [named_callback(name)[0] for name in opened] == ["Callback.on_train_batch_end"]  # type: ignore[index]
    assert vars(given) == {"on_epoch_end": function, "on_train_batch_end": written}


def test_a_callback_that_cannot_be_changed_is_left_alone(opened: list[str]):
    closed, mine, named = Closed(), Mine(), NamedCallbacks(Callback)
    named.follow(of(closed, mine), recording=True)
    closed.on_train_batch_end(1)
    mine.on_train_batch_end(2)
    assert said == [1, 2]
    assert len(opened) == 1


def test_an_error_of_the_callback_is_the_jobs(opened: list[str]):
    class Broken(Callback):
        def on_epoch_end(self, epoch: int) -> None:
            raise ValueError(epoch)

    broken, named = Broken(), NamedCallbacks(Callback)
    named.follow(of(broken), recording=True)
    with pytest.raises(ValueError, match="7"):
        broken.on_epoch_end(7)


def test_another_that_replaced_the_method_since_is_kept():
    mine, named = Mine(), NamedCallbacks(Callback)
    named.follow(of(mine), recording=True)
    theirs = mine.on_train_batch_end = said.append  # type: ignore[method-assign]
    named.clear()
    assert mine.on_train_batch_end == theirs


def test_every_method_of_keras_is_known():
    assert len(METHODS) == len(set(METHODS)) == 16
    assert {"on_train_batch_end", "on_batch_end", "on_epoch_end", "on_predict_end"} <= set(METHODS)


def test_the_hook_follows_the_recording(monkeypatch: pytest.MonkeyPatch, opened: list[str]):
    """Two batches before the window, two in it, two after."""
    from stepscope.capture.phases import RecordingPhase
    from stepscope.capture.tensorflow_hooks import into_keras

    class List:
        def __init__(self, *callbacks: Callback) -> None:
            self.callbacks = callbacks

        def on_train_batch_end(self, batch: int) -> None:
            for callback in self.callbacks:
                callback.on_train_batch_end(batch)

    phases = [
        RecordingPhase.SETTLING,
        RecordingPhase.RECORDING,
        RecordingPhase.RECORDING,
        RecordingPhase.EXPORTING,
        RecordingPhase.DONE,
    ]
    recorder = SimpleNamespace(phase=RecordingPhase.SETTLING, on_done=[])

    def call(source: int, key: object) -> None:
        recorder.phase = phases.pop(0)

    recorder.call = call
    keras = types.ModuleType("keras")
    keras.callbacks = SimpleNamespace(Callback=Callback, CallbackList=List)  # type: ignore[attr-defined]
    keras.backend = SimpleNamespace(backend=lambda: "none")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keras", keras)
    into_keras(recorder, keras)  # type: ignore[arg-type]
    callbacks = List(Mine())
    for batch in range(5):
        callbacks.on_train_batch_end(batch)
    assert said == [0, 1, 2, 3, 4]
    assert len(opened) == 2  # Those that ran after the window had begun, until it was over.
    for take_out in recorder.on_done:
        take_out()
    assert "ending" not in List.on_train_batch_end.__qualname__
