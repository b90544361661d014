"""Where a recording stands."""

from __future__ import annotations

from enum import Enum


class RecordingPhase(Enum):
    """Where a recording stands."""

    SETTLING = "settling"
    LISTENING = "listening"
    """As settling, with a profile that is only kept if nothing better comes: of a stretch of time, or of calls of
    models in a job that may train yet."""
    WARMING = "warming up"
    RECORDING = "recording"
    EXPORTING = "exporting"
    AFTER = "timing"
    WATCHING = "watching"
    DONE = "done"


SETTLING = (RecordingPhase.SETTLING, RecordingPhase.LISTENING)
"""In these steps are looked for."""
