"""Profiles to show, among them one whose every name is an attack."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "profiles"
EXAMPLE = EXAMPLES / "cpu_input_bound.json.gz"

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    '"><svg onload=window.hacked=1>',
    "<!-- <script>",
    "\u202eesrever\u202c & \u05e9\u05dc\u05d5\u05dd",
    "{{constructor.constructor('window.hacked = 1')()}}",
    "javascript:window.hacked=1",
    '=HYPERLINK("http://example.invalid")',
)
LONG = "x" * 1_000_000


@cache
def _events() -> str:
    return gzip.decompress(EXAMPLE.read_bytes()).decode()


def hostile_profile(folder: Path) -> Path:
    """The example's profile with its ops, ranges and files called by attacks, and one by a megabyte."""
    trace = json.loads(_events())
    names: dict[str, str] = {}
    longest = LONG
    for event in trace["traceEvents"]:
        name = event.get("name")
        if event.get("ph") == "X" and isinstance(name, str) and not name.startswith(("ProfilerStep", "enumerate")):
            at = names.setdefault(name, f"{HOSTILE[len(names) % len(HOSTILE)]} {len(names)}")
            event["name"], longest = longest or at, ""
        elif event.get("ph") == "M" and "name" in event.get("args", {}):
            event["args"]["name"] = HOSTILE[0]
    path = folder / "<b>hostile & 'named'.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    return path
