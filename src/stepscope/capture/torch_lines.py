"""The lines of a PyTorch profile: what called each function, which the Chrome JSON leaves out, and looks at the thread.

``with_stack`` makes PyTorch keep the caller's line of every Python and C call, but its export writes only where each
function begins. They are in the tree of events that the finished profile still holds (PyTorch 1.12 to 2.13), and its
calls in order of time are numbered as in the file (``Python id``).
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from operator import itemgetter
from typing import Any

KEY = "stepscopeLines"
"""Root key of the file: ``calls``, the caller's line of each call by ``Python id`` from 1 on (0: not known), and
``looks`` (``capture/lines.py``)."""
MOST_BYTES = 512 << 20
"""Of a larger file the calls are left out: walking the events takes about 2 µs for each, and two millions of them,
which is what such a file holds, 4 s in which the job's own steps share the interpreter."""


def callers(profile: Any, path: str) -> list[int] | None:
    """The caller's line of each Python and C call of a finished profile, in order of time; None where PyTorch tells
    none, or the profile is too large to ask."""
    results: Any = getattr(getattr(profile, "profiler", None), "kineto_results", None)
    if not hasattr(results, "experimental_event_tree") or os.path.getsize(path) > MOST_BYTES:
        return None
    frames: list[tuple[int, int]] = []
    are_calls: dict[Any, bool] = {}
    events = list(results.experimental_event_tree())
    while events:
        event = events.pop()
        events.extend(event.children)
        tag = event.tag
        is_call = are_calls.get(tag)
        if is_call is None:  # PyCall and PyCCall; the enumeration is not exported everywhere
            is_call = are_calls[tag] = "Py" in str(tag)
        if is_call:
            frames.append((event.start_time_ns, event.extra_fields.caller.line_number))
    frames.sort(key=itemgetter(0))
    return [max(int(line), 0) for _, line in frames]


def add_lines(profile: Any, path: str, looks: dict[str, Any] | None) -> None:
    """Write what is known of lines into the profile's file; where that fails the file is as it was."""
    facts: dict[str, Any] = {"looks": looks} if looks else {}
    with suppress(Exception):  # The tree is an experiment of PyTorch's.
        if calls := callers(profile, path):
            facts["calls"] = calls
    if facts:
        with suppress(OSError):
            _append(path, KEY, facts)


def _append(path: str, key: str, value: Any) -> None:
    """Add a member to the JSON object that a file holds; on a full disk the file stays what it was."""
    text = json.dumps(value, separators=(",", ":"))
    with open(path, "r+b", buffering=0) as file:
        size = os.path.getsize(path)
        file.seek(max(size - 64, 0))
        end = max(size - 64, 0) + file.read().rfind(b"}")
        file.seek(end)
        try:
            rest = f",{json.dumps(key)}:{text}}}\n".encode()
            while rest:  # A disk that is nearly full takes a part of it, and says so only when asked again.
                rest = rest[file.write(rest) :]
            file.truncate()
        except OSError:
            file.truncate(end)
            file.seek(end)
            file.write(b"}")
            raise
