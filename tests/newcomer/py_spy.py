"""What py-spy saw of a judged run (``judge.py``): its looks at the main thread, in Unix time."""

from __future__ import annotations

import json
import os
import sysconfig
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

Line = tuple[str, int, str]
"""File, line and function."""
_PACKAGES = ("site-packages", "<", sysconfig.get_path("stdlib"))


def looks(folder: Path) -> list[tuple[int, int, Line]]:
    """When py-spy saw another stack (Unix time, ns), how long until the next one, and the innermost line that was of no
    package nor the judge's; skips the test where py-spy may not look."""
    refused = folder / "refused.txt"
    if refused.exists():
        pytest.skip(f"py-spy may not look here: {refused.read_text(encoding='utf-8').strip().splitlines()[-1]}")
    told = json.loads((folder / "marks.json").read_text(encoding="utf-8"))
    events = json.loads((folder / "looks.json").read_text(encoding="utf-8"))
    stacks = _stacks([event for event in events if event["tid"] == told["thread"]])
    origin = _origin(stacks, told["marks"])
    found: list[tuple[int, int, Line]] = []
    for (at, stack), (until, _) in pairwise(stacks):
        line = next((frame for frame in reversed(stack) if _is_the_job_s(frame[0])), None)
        if line is not None:
            found.append((origin + at, until - at, line))
    return found


def _stacks(events: list[dict[str, Any]]) -> list[tuple[int, tuple[Line, ...]]]:
    """When the stack was first seen to be another one (ns on py-spy's clock), and which: outermost first."""
    found: list[tuple[int, tuple[Line, ...]]] = []
    stack: list[Line] = []
    for event in events:
        at = event["ts"] * 1_000
        if event["ph"] == "B":
            stack.append((event["args"]["filename"], event["args"]["line"], event["name"]))
        else:
            stack.pop()
        if found and found[-1][0] == at:
            found.pop()
        found.append((at, tuple(stack)))
    return found


def _origin(stacks: list[tuple[int, tuple[Line, ...]]], marks: list[int]) -> int:
    """When py-spy's clock began: it saw no mark sooner than that began, and the soonest one at once."""
    seen: dict[str, int] = {}
    for at, stack in stacks:
        for path, _, _ in stack:
            seen.setdefault(path, at)
    named = {f"<mark {number}>": begun for number, begun in enumerate(marks)}
    return max(begun - seen[name] for name, begun in named.items() if name in seen)


def _is_the_job_s(path: str) -> bool:
    ours = f"{os.sep}stepscope{os.sep}" in path or path.endswith("judge.py")
    return not ours and not any(part in path for part in _PACKAGES)
