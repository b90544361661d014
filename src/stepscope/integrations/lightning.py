"""Lightning: ``Trainer(callbacks=[ProfileCallback("profiles")])``."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .recording import TrainingRecording


def _callback() -> Any:
    """The base class of callbacks, of the package that the job uses: ``lightning`` is also ``pytorch_lightning``."""
    names = ("lightning.pytorch", "pytorch_lightning")
    imported = [name for name in names if name in sys.modules]
    installed = [name for name in names if find_spec(name.split(".")[0])]
    return import_module((imported or installed or names)[0]).Callback


class ProfileCallback(_callback()):  # type: ignore[misc]
    """Records a few steps of ``fit``; arguments are those of ``stepscope.profile``.

    A step ends with the batch in which an optimizer stepped: accumulated batches are one step, and so is a batch in
    which several optimizers step. Where Lightning sees no optimizer step (manual optimization past its own wrappers)
    every batch is one.
    """

    def __init__(self, out: str = "stepscope", **arguments: Any) -> None:
        super().__init__()
        self.recording = TrainingRecording(out, **arguments)
        self._seen = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The first step begins."""
        self._seen = trainer.global_step
        framework = "torch_xla" if pl_module.device.type == "xla" else "torch"
        self.recording.begin(framework, trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """A step ends, unless its gradients are accumulated further."""
        unseen = trainer.global_step == 0 and not pl_module.automatic_optimization
        if unseen or trainer.global_step != self._seen:
            self._seen = trainer.global_step
            self.recording.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Profiles are written."""
        self.recording.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """So they are where the training fails."""
        self.recording.end()
