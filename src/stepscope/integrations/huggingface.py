"""Hugging Face: ``Trainer(callbacks=[ProfileCallback("profiles")])``; TRL's and other trainers take it too."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from .recording import TrainingRecording


class ProfileCallback(TrainerCallback):  # type: ignore[misc]
    """Records a few steps of ``train``; arguments are those of ``stepscope.profile``.

    A step is one update of the weights, with all the batches accumulated for it.
    """

    def __init__(self, out: str = "stepscope", **arguments: Any) -> None:
        self.recording = TrainingRecording(out, **arguments)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The first step begins; it has a later number where a training is resumed."""
        self.recording.begin("torch_xla" if args.device.type == "xla" else "torch", state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step ends."""
        self.recording.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Profiles are written."""
        self.recording.end()
