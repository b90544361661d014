"""What ended a process, where that was an exception that nothing caught."""

from __future__ import annotations

import sys

from .options import Options


def raised() -> str | None:
    """``ImportError: No module named 'x' (train.py:3)``; None where the process ends as it should, or by an exit."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        return None
    import traceback  # Rarely needed.

    text = " ".join(str(error).split())[:200]
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<")]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' + text if text else ''}{place}"


def told_without_framework(options: Options) -> None:
    """Leave a manifest where a process ends by an exception before it has imported a framework."""
    ended_by = raised()
    if ended_by is not None:
        from .manifest import Manifest

        why = f"it ended with {ended_by} before a framework was imported"
        Manifest(options.out).write(options, phase="done", steps_seen=0, no_profile=why, raised=ended_by)
