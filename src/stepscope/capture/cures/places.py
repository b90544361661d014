"""Places in the user's code: where a call stands that a cure changes."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

from ..own_code import OURS, is_own

Place = dict[str, Any]
"""``file``, ``line``, ``function``, and ``end_line``, ``column``, ``end_column`` (columns count bytes from 0) where
Python tells them (3.11 and later)."""


def calling_place(frame: FrameType | None) -> Place | None:
    """The place of a call that the user's code makes directly; None where a library makes it."""
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return place_of(frame) if frame is not None and is_own(frame.f_code.co_filename) else None


def nearest_place(frame: FrameType | None, *, passes: Any = None) -> Place | None:
    """The innermost place in the user's code; frames are passed over while ``passes`` says so."""
    while frame is not None:
        if is_own(frame.f_code.co_filename) and not (passes is not None and passes(frame)):
            return place_of(frame)
        frame = frame.f_back
    return None


def place_of(frame: FrameType) -> Place:
    """Where a frame stands."""
    code = frame.f_code
    place: Place = {"file": os.path.abspath(code.co_filename), "line": frame.f_lineno, "function": code.co_name}
    if sys.version_info >= (3, 11) and frame.f_lasti >= 0:
        line, end_line, column, end_column = list(code.co_positions())[frame.f_lasti // 2]
        if line is not None:
            place.update(line=line, end_line=end_line, column=column, end_column=end_column)
    return place
