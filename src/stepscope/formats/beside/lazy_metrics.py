"""What PyTorch/XLA counted while a profile was recorded: its metrics report, as ``stepscope run`` keeps it.

A report has blocks of lines (torch/csrc/lazy/core/metrics.cpp, torch_xla/csrc/runtime/metrics.cc):
``Metric: <name>`` with ``TotalSamples: 3`` and ``Accumulator: 01s226ms137.620us`` (or ``919.44MB``, or ``384.00``), and
``Counter: <name>`` with ``Value: 3``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from stepscope.formats.beside.rows import table_of
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

_TIME = regex(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?(\d+(?:\.\d+)?)us$")
_NS = (86_400e9, 3_600e9, 60e9, 1e9, 1e6, 1e3)
_SIZE = regex(r"(\d+(?:\.\d+)?)([KMGTP]?)B$")
_MOST_DIGITS = 18
"""Of a count: more is more than a column holds."""
_LINE = regex(r"\s*(Metric|Counter|TotalSamples|Accumulator|Value):\s*(.{1,300})$")


class MetricReading(NamedTuple):
    """What a report says of one metric or counter."""

    times: int
    total: float = math.nan
    unit: str | None = None


def parsed(report: str) -> dict[str, MetricReading]:
    """Readings by name; lines that are none are passed over."""
    readings: dict[str, MetricReading] = {}
    name = None
    for line in report.splitlines():
        said = _LINE.match(line)
        if said is None:
            continue
        what, value = said[1], said[2].strip()
        if what in ("Metric", "Counter"):
            name = value
        elif name is None:
            continue
        elif what == "Accumulator":
            total, unit = _amount(value)
            readings[name] = readings.get(name, MetricReading(0))._replace(total=total, unit=unit)
        elif value.isdecimal() and len(value) <= _MOST_DIGITS:
            readings[name] = readings.get(name, MetricReading(0))._replace(times=int(value))
    return readings


def with_metrics(trace: Trace, manifest: Mapping[str, Any] | None, name: str) -> Trace:
    """The trace with what PyTorch/XLA counted in its window, where the manifest's entry of that file tells.

    A trace that has it already (a saved one) stays as it is.
    """
    entry = _entry(manifest, name)
    reports = entry.get("metrics")
    if len(trace.metrics) or not isinstance(reports, Mapping):
        return trace
    before, after = parsed(str(reports.get("before") or "")), parsed(str(reports.get("after") or ""))
    steps = entry.get("steps")
    steps = steps if isinstance(steps, int) and 0 < steps < 1 << 31 else t.NULL
    rows = [
        (name, earlier.times, reading.times, earlier.total, reading.total, reading.unit, steps)
        for name, reading in after.items()
        for earlier in (before.get(name, MetricReading(0, 0.0 if reading.unit else math.nan)),)
    ]
    strings, metrics = table_of(trace.strings, t.Metrics, rows)
    return dataclasses.replace(trace, strings=strings, metrics=metrics)


def _amount(text: str) -> tuple[float, str | None]:
    """A sum and its unit."""
    if time := _TIME.match(text):
        return sum(float(part or 0) * scale for part, scale in zip(time.groups(), _NS, strict=True)), "ns"
    if size := _SIZE.match(text):
        return float(size[1]) * 1024.0 ** " KMGTP".index(size[2] or " "), "bytes"
    try:
        return float(text), None
    except ValueError:
        return math.nan, None


def _entry(manifest: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """What a manifest says of one of its files."""
    files = manifest.get("files", ()) if manifest is not None else ()
    return next((file for file in files if PurePath(str(file.get("path"))).name == name), {})
