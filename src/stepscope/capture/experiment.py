"""Experiments on input and callbacks: the job runs with one thing changed, to see what that thing costs.

Only what the process holds in memory is changed; the job's files stay as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from .cures.cure import Applying
from .cures.pinned_memory import PINNED_MEMORY
from .cures.workers import WORKERS as WORKERS_CURE
from .phases import RecordingPhase
from .recorder import Recorder

SYNTHETIC, PINNED, WORKERS, CALLBACKS = "synthetic-input", "pinned-memory", "workers", "no-callbacks"
REPLAYED = 4
"""Batches that are kept in memory and given again and again."""
UNKNOWN_LENGTH = 1_000
"""A tf.data dataset that does not know its length ends after this many batches."""


def parsed(text: str) -> tuple[str, int | None]:
    """An experiment's name and number. Raises ValueError where there is none of that name."""
    name, _, number = text.partition("=")
    if name == WORKERS and number.isdecimal():
        return name, int(number)
    if text in (SYNTHETIC, PINNED, CALLBACKS):
        return text, None
    raise ValueError(f"there is no experiment {text!r}: {SYNTHETIC}, {PINNED}, {WORKERS}=N or {CALLBACKS}")


class Replay:
    """A loader's iterator that gives its first batches over and over, as many as there would have been."""

    def __init__(self, real: Iterator[Any], length: int | None, over: Callable[[], bool]) -> None:
        self._real, self._length, self._over = real, length, over
        self._kept: list[Any] = []
        self._given = 0

    def __iter__(self) -> Replay:
        return self

    def __next__(self) -> Any:
        if self._length is not None and self._given >= self._length:
            raise StopIteration
        if len(self._kept) < REPLAYED or self._over():
            batch = next(self._real)
            if len(self._kept) < REPLAYED:
                self._kept.append(batch)
        else:
            batch = self._kept[self._given % REPLAYED]
        self._given += 1
        return _container_anew(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _container_anew(batch: Any) -> Any:
    """Jobs that take entries out of a batch find them there again; the tensors are the same."""
    if type(batch) in (list, dict):
        return batch.copy()
    return batch


def into(recorder: Recorder, module_name: str, module: Any) -> None:
    """Change what the options ask to be changed, in a framework that was just imported."""
    asked = recorder.options.experiment
    if asked is None:
        return
    name, number = parsed(asked)
    told = recorder.manifest.facts.setdefault("experiment", {"name": asked, "applied": 0, "refused": None})

    def applied() -> None:
        told["applied"] += 1

    if name == CALLBACKS:
        if module_name == "keras":
            _without_callbacks(module, applied)
    elif module_name == "torch" and name == SYNTHETIC:
        _replayed_loaders(recorder, applied)
    elif module_name == "torch":
        cure = (PINNED_MEMORY if name == PINNED else WORKERS_CURE).into
        assert cure is not None
        cure(Applying(told, number, recorder.on_edge), module, recorder)
    elif module_name == "tensorflow" and name == SYNTHETIC:
        _replayed_datasets(applied)


def _replayed_loaders(recorder: Recorder, applied: Callable[[], None]) -> None:
    loader: Any = import_module("torch.utils.data").DataLoader
    iterates = loader.__iter__

    @functools.wraps(iterates)
    def replaying(self: Any) -> Any:
        real = iterates(self)
        if recorder.phase is RecordingPhase.DONE:
            return real
        applied()
        return Replay(real, _length(self), lambda: recorder.phase is RecordingPhase.DONE)

    loader.__iter__ = replaying


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


def _replayed_datasets(applied: Callable[[], None]) -> None:
    dataset: Any = import_module("tensorflow.python.data.ops.dataset_ops").DatasetV2
    iterates = dataset.__iter__

    @functools.wraps(iterates)
    def replaying(self: Any) -> Any:
        length = int(self.cardinality())  # Negative where it is infinite (-1) or unknown (-2).
        replayed = self.take(REPLAYED).cache().repeat()
        applied()
        return iterates(replayed if length == -1 else replayed.take(length if length >= 0 else UNKNOWN_LENGTH))

    dataset.__iter__ = replaying


def _without_callbacks(keras: Any, applied: Callable[[], None]) -> None:
    lists: Any = keras.callbacks.CallbackList
    makes = lists.__init__

    @functools.wraps(makes)
    def making(self: Any, callbacks: Any = None, add_history: bool = False, *_: Any, **named: Any) -> None:
        makes(self, None, add_history=add_history, **{**named, "add_progbar": False})
        applied()

    lists.__init__ = making
