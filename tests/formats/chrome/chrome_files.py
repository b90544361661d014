"""Chrome-trace files from a few events, read by whichever dialect knows them. Times in the events are µs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stepscope.formats.chrome import read as chrome
from stepscope.inputs.source import Source
from stepscope.trace.trace import Trace

Event = dict[str, Any]


def event(phase: str, name: str | None = None, ts: Any = 0, **more: Any) -> Event:
    """An event of thread 1 in process 1."""
    named = {} if name is None else {"name": name}
    return {"ph": phase, **named, "pid": 1, "tid": 1, "ts": ts} | more


def slice_(name: str, ts: Any, dur: Any, **more: Any) -> Event:
    return event("X", name, ts, dur=dur, **more)


def named(kind: str, name: str, **more: Any) -> Event:
    """Metadata: ``process_name`` or ``thread_name``."""
    return {"ph": "M", "name": kind, "pid": 1, "args": {"name": name}} | more


def read(*events: Event, **root: Any) -> Trace:
    return read_bytes(json.dumps({**root, "traceEvents": events}).encode())


def read_bytes(data: bytes) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(data)
        return chrome.read(Source(str(path)))


def rows(trace: Trace, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return trace.table(table).select(columns).rows()


def slices(trace: Trace) -> list[tuple[str, int, int]]:
    """Name, start and duration in ns of every slice, in the order of the table."""
    return rows(trace, "slices", "name", "start_ns", "dur_ns")


def losses(trace: Trace) -> dict[str, tuple[int, int]]:
    """Code -> how many, how many of them lost."""
    return {loss.code: (loss.count, loss.lost_events) for loss in trace.completeness.losses}


def linked(trace: Trace, table: str, *columns: str) -> list[tuple[str, ...]]:
    """Columns of slice ids as names."""
    return [tuple(trace.name_of(at) for at in row) for row in rows(trace, table, *columns)]


def in_any_order(events: Sequence[Event]) -> Sequence[Event]:
    return sorted(events, key=json.dumps)
