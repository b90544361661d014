"""Neutral events -> the bytes of a Kineto profile, in any generation, vendor and text layout.

The text layouts follow files Kineto wrote and its source; what they hold comes from ``kineto_elements``.
Times are exact to the nanosecond in every layout: also where ``json.dump`` would have rounded them, because
what a rewrite loses is no concern of the tests.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

from tests.kit.events import Event, Stream
from tests.kit.kineto_elements import Number, elements, representable
from tests.kit.kineto_form import BASE_NS, ZERO_NS, Form

__all__ = ["FORMS", "Form", "representable", "write_kineto", "zero_ns"]

FORMS: tuple[Form, ...] = (
    Form(generation="2021"),
    Form(generation="2022"),
    Form(generation="2023"),
    Form(),
    Form(vendor="amd"),
    Form(vendor="amd", style="head"),
    Form(vendor="amd", style="line"),
    Form(vendor="amd", style="indent2"),
    Form(vendor="amd", style="indent4"),
    Form(generation="2021", style="indent2"),
    Form(generation="2023", style="line"),
    Form(generation="2023", style="indent4"),
    Form(generation="2022", root="list", style="line"),
    Form(root="list", gz=True),
    Form(style="head", gz=True),
)
"""A form of every generation, vendor, layout, root and container, for ``parametrize``."""

_DEVICES = {
    "nvidia": {
        "name": "NVIDIA A100-SXM4-80GB",
        "totalGlobalMem": 85_899_345_920,
        "computeMajor": 8,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": 108,
    },
    "amd": {
        "name": "AMD Instinct MI300X",
        "totalGlobalMem": 206_158_430_208,
        "computeMajor": 9,
        "computeMinor": 4,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 64,
        "sharedMemPerBlock": 65536,
        "numSms": 304,
    },
}


def zero_ns(form: Form) -> int:
    """Epoch nanoseconds of the kit's time zero, as far as a reader can know it.

    A bare list of the 2025 generation holds times relative to a base it does not name.
    """
    nameless = form.root == "list" and form.generation == "2025"
    return ZERO_NS[form.generation] - (BASE_NS if nameless else 0)


def write_kineto(events: Sequence[Event], form: Form | None = None, header: Mapping[str, Any] | None = None) -> bytes:
    """The profile as a file holds it; ``header`` adds or replaces root keys (``distributedInfo`` …).

    Events the writer of that form did not record (:func:`representable`) are left out. Raises ValueError
    where a time is no whole microsecond and the generation cannot write it.
    """
    form = form or Form()
    made = elements(events, form)
    root = _header(events, form) | dict(header or {})
    if form.style == "kineto":
        text = _as_kineto(root, made, form)
    elif form.style == "head":
        text = _as_head(root, made, form)
    else:
        text = _dumps(made if form.root == "list" else root | {"traceEvents": made}, form.style)
    data = text.encode()
    return gzip.compress(data, compresslevel=6, mtime=0) if form.gz else data


def _header(events: Sequence[Event], form: Form) -> dict[str, Any]:
    devices = sorted({event.track.device for event in events if isinstance(event.track, Stream)})
    root: dict[str, Any] = {"schemaVersion": 1}
    if devices:
        root["deviceProperties"] = [{"id": i} | _DEVICES[form.vendor] for i in range(devices[-1] + 1)]
    if form.generation != "2021" and any(event.cat == "python_function" for event in events):
        root["with_stack"] = 1
    if form.generation == "2025":
        root |= {
            "trace_id": "00000000000000000000000000000001",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
        }
    return root


def _dumps(value: Any, style: str = "kineto") -> str:
    """JSON text with every :class:`Number` as it stands."""
    indent = {"indent2": 2, "indent4": 4}.get(style)
    if indent is None:
        return _on_a_line(value)
    text = json.dumps(value, default=lambda number: f"\0{number.text}\0", indent=indent, ensure_ascii=False)
    return re.sub(r'"\\u0000([-0-9.]+)\\u0000"', r"\1", text)


def _on_a_line(value: Any) -> str:
    """As ``json.dumps`` writes it, in a fraction of its time: most tests begin with a profile that is written."""
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is int:
        return str(value)
    if type(value) is Number:
        return value.text
    if type(value) is dict:
        return "{" + ", ".join([f"{encode_basestring(key)}: {_on_a_line(held)}" for key, held in value.items()]) + "}"
    if type(value) in (list, tuple):
        return "[" + ", ".join(map(_on_a_line, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _as_kineto(root: dict[str, Any], made: list[dict[str, Any]], form: Form) -> str:
    """Several keys a line, as released Kineto writes."""
    body = ",\n".join(_kineto_element(element) for element in made)
    if form.root == "list":
        return f"[\n{body}\n]\n"
    before = "".join(f'  "{key}": {_dumps(value)},\n' for key, value in root.items())
    return f'\n{{\n{before}  "traceEvents": [\n{body}\n  ],\n  "traceName": "trace.json"\n}}\n'


_NEW_LINE_BEFORE = {
    "X": ("ts", "args"),
    "Trace": ("pid", "name", "args"),
    "M": ("args",),
    "s": ("cat",),
    "f": ("cat",),
    "i": ("pid",),
    "cpu_instant_event": ("pid", "ts", "args"),
}


def _kineto_element(element: dict[str, Any]) -> str:
    breaks = _NEW_LINE_BEFORE.get(element.get("cat", ""), _NEW_LINE_BEFORE[element["ph"]])
    lines: list[list[str]] = [[]]
    for key, value in element.items():
        if key in breaks:
            lines.append([])
        lines[-1].append(
            f'"args": {{\n      {_on_a_line(value)[1:-1]}\n    }}' if key == "args" else f'"{key}": {_on_a_line(value)}'
        )
    return "  {\n    " + ",\n    ".join(", ".join(line) for line in lines if line) + "\n  }"


def _as_head(root: dict[str, Any], made: list[dict[str, Any]], form: Form) -> str:
    """One key a line, blank lines, and a lone comma before ``args``, as Kineto's main branch writes."""
    body = ",\n".join(_head_element(element) for element in made)
    if form.root == "list":
        return f"[\n    \n{body}\n  ]"
    before = "".join(f'    "{key}": {_on_a_line(value)},\n' for key, value in root.items())
    return f' {{\n{before}    "traceEvents": [\n    \n{body}\n  ],"traceName": "trace.json" }}'


def _head_element(element: dict[str, Any]) -> str:
    items = [(key, value) for key, value in element.items() if key != "args"]
    lines = ",\n".join(f'    "{key}": {_on_a_line(value)}' for key, value in items)
    if "args" not in element:
        return f"  {{\n{lines}\n    \n  }}"
    between = ",\n" if element["ph"] == "M" else "\n    ,\n"
    return f'  {{\n{lines}{between}    "args": {{\n      {_on_a_line(element["args"])[1:-1]}\n    }}\n  }}'
