"""Where TensorFlow's log of device placement, a text that lies beside a profile, says that ops run.

``tf.debugging.set_log_device_placement(True)`` and ``ConfigProto(log_device_placement=True)`` write a line per node of
each graph, ``fc/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0`` (core/common_runtime/placer.cc; until
TensorFlow 1.4 or so without the second colon), and one per op that runs eagerly, ``Executing op MatMul in device
/job:…`` (common_runtime/eager/execute.cc), on stderr with the logger's prefix and some on stdout without.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path

from stepscope.formats.beside.rows import table_of
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

_DEVICE = rb"(?P<device>/job:[\w.-]+(?:/[\w:.-]+)*/(?:device:)?[A-Za-z_]+:\d+)\s*$"
_NODE = regex(rb"(?:^|[\s\]])(?P<node>[A-Za-z0-9_.][\w.\\/>-]*): \((?P<op>[A-Za-z_]\w*)\):? ?" + _DEVICE, re.M)
_EAGER = regex(rb"\bExecuting op (?P<op>[A-Za-z_]\w*) in device " + _DEVICE, re.M)
_JSON = regex(rb"\s*(?:\{|\[\s*[\[{\"\]])")
_MOST_FILES, _MOST_BYTES, _HEAD = 64, 64 << 20, 4_096
Placed = tuple[str | None, str, str]
"""Node (None of an op that ran eagerly), op, device."""


def placements(text: bytes) -> Counter[Placed]:
    """How often a text says that an op runs on a device."""
    counts: Counter[Placed] = Counter()
    for match in _NODE.finditer(text):
        counts[match["node"].decode(), match["op"].decode(), match["device"].decode()] += 1
    for match in _EAGER.finditer(text):
        counts[None, match["op"].decode(), match["device"].decode()] += 1
    return counts


def with_placements(trace: Trace, path: Path) -> Trace:
    """A trace of TensorFlow with what logs beside it say of placement; a trace that has it already stays as it is.

    The profile's folder counts, and in TensorBoard's layout the one above ``plugins/profile/<run>``.
    """
    if len(trace.placements) or trace.info.framework != "TensorFlow":
        return trace
    path = path.absolute()
    run = path.parent
    for folder in (run, *(run.parents[2:3] if run.parts[-3:-1] == ("plugins", "profile") else ())):
        counts = _in_folder(folder, path)
        if counts:
            rows = [(*placed, count) for placed, count in counts.items()]
            strings, table = table_of(trace.strings, t.Placements, rows)
            return dataclasses.replace(trace, strings=strings, placements=table)
    return trace


def _in_folder(folder: Path, profile: Path) -> Counter[Placed]:
    counts: Counter[Placed] = Counter()
    left = _MOST_BYTES
    try:
        files = [entry for entry in sorted(folder.iterdir()) if entry != profile and entry.is_file()]
    except OSError:
        return counts
    for file in files[:_MOST_FILES]:
        text = _text(file, left)
        left -= len(text)
        if b"/job:" in text:
            counts += placements(text)
    return counts


def _text(path: Path, most: int) -> bytes:
    """The beginning of a text file; nothing of one that is none, or JSON."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if b"\0" in head or _JSON.match(head) or head[:2] == b"\x1f\x8b":
                return b""
            return (head + file.read(most - len(head)))[:most] if most > len(head) else b""
    except OSError:
        return b""
