"""Perfetto's rules for complete events, worked out from the written JSON alone.

Source: src/trace_processor/importers/common/slice_tracker.cc. Events are sorted by time, stably; per thread a stack
holds the slices that are open. One that has ended by the new one's start is closed; one that ends before the new one
does makes Perfetto drop the new one.
"""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any


def load(path: Path) -> dict[str, Any]:
    """The document; numbers with a point keep every digit."""
    data = path.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=Decimal)
    return found


def dropped(document: dict[str, Any]) -> list[str]:
    """The names of the slices that Perfetto would drop."""
    complete = [event for event in document["traceEvents"] if event.get("ph") == "X"]
    complete.sort(key=lambda event: event["ts"])
    ends: dict[tuple[Any, Any], list[Any]] = {}
    lost = []
    for event in complete:
        stack = ends.setdefault((event["pid"], event["tid"]), [])
        while stack and stack[-1] <= event["ts"]:
            stack.pop()
        end = event["ts"] + event["dur"]
        if stack and end > stack[-1]:
            lost.append(event["name"])
        else:
            stack.append(end)
    return lost
