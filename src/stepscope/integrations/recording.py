"""What the callbacks share: a session of ``stepscope.profile`` that begins and ends with a training."""

from __future__ import annotations

import atexit
from typing import Any

from stepscope.capture import profile, schedule

_ARGUMENTS = {"schedule", "stacks", "shapes", "memory", "on_trace_ready", "tensorboard"}


class TrainingRecording:
    """The arguments of ``stepscope.profile``, and its session while a training runs.

    Without a schedule, trainings being long, it is ``stepscope.schedule()``. Raises TypeError for unknown arguments.
    """

    def __init__(self, out: str, **arguments: Any) -> None:
        self._out = out
        self._arguments = {"schedule": schedule(), **arguments}
        if unknown := arguments.keys() - _ARGUMENTS:
            raise TypeError(f"there is no argument {sorted(unknown)[0]!r}; there are {', '.join(sorted(_ARGUMENTS))}")
        self.session: profile | None = None
        """The last training's session: its ``files``, and why it ``declined``."""
        self._open = False

    def begin(self, framework: str | None, first: int = 0) -> None:
        """A training begins with step ``first``."""
        self.end()
        self.session = profile(self._out, framework=framework, first=first, **self._arguments).__enter__()
        self._open = True
        # Not every library says that a training was given up.
        atexit.register(self.end)

    def step(self) -> None:
        """A step ended."""
        if self._open and self.session is not None:
            self.session.step()

    def end(self) -> None:
        """The training ended, if one ran: wait for the profiles to be written."""
        if self._open and self.session is not None:
            self._open = False
            atexit.unregister(self.end)
            self.session.__exit__(None, None, None)
