"""The user's own lines beside a finding, where they can be read and are still those that ran."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.report.phrases import Place

if TYPE_CHECKING:
    from stepscope.document.report import Report as Document

_AROUND = 2
"""Lines shown before and behind the one that is told of."""
_LARGEST, _LONGEST = 2 << 20, 200


def source_of(place: Place | None, document: Document) -> dict[str, Any] | None:
    """The line of a place with its neighbours: ``first`` is the number of the first of ``lines``; None where the file
    cannot be read here, lies outside of the working folder, or was changed after the profile began.

    A profile may name any file, and reports are given away: only Python files of the project at hand are shown.
    """
    line = place and place["line"]
    recorded = document["profile"].get("epoch_ns")
    if place is None or not place["file"] or not line or recorded is None:
        return None
    lines = _lines(place["file"], recorded)
    if lines is None or line > len(lines):
        return None
    first = max(1, line - _AROUND)
    return {"first": first, "line": line, "lines": [text[:_LONGEST] for text in lines[first - 1 : line + _AROUND]]}


def _lines(name: str, recorded_ns: int) -> list[str] | None:
    """The lines of a source that has not been touched since; None where it may not or cannot be read."""
    try:
        folder = Path.cwd().resolve()
        path = (folder / name).resolve()
        if path.suffix != ".py" or not path.is_relative_to(folder) or not path.is_file():
            return None
        with path.open("rb") as file:
            told = os.fstat(file.fileno())
            if told.st_size > _LARGEST or told.st_mtime_ns > recorded_ns:
                return None
            return file.read(_LARGEST).decode("utf-8").splitlines()
    except (OSError, ValueError, RuntimeError):
        return None


__all__ = ["source_of"]
