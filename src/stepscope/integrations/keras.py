"""Keras: ``model.fit(..., callbacks=[ProfileCallback("profiles")])``, on TensorFlow, JAX and PyTorch."""

from __future__ import annotations

from typing import Any

import keras

from .recording import TrainingRecording


class ProfileCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Records a few steps of ``fit``; arguments are those of ``stepscope.profile``.

    A step is one call of the training function: with ``steps_per_execution`` several batches.
    """

    def __init__(self, out: str = "stepscope", **arguments: Any) -> None:
        super().__init__()
        self.recording = TrainingRecording(out, **arguments)

    def on_train_begin(self, logs: Any = None) -> None:
        """The first step begins."""
        self.recording.begin(keras.backend.backend())

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A step ends."""
        self.recording.step()

    def on_train_end(self, logs: Any = None) -> None:
        """Profiles are written."""
        self.recording.end()
