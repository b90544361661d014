"""TensorFlow's Timelines: what a trace and a Timeline say alike, and Timelines compared as sets of events."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from stepscope.trace.tables import Tensors
from stepscope.trace.trace import Trace

Event = dict[str, Any]
Said = dict[str, list[Any]]

ABSENT_IN_TRACES = re.compile(r"\s*(?:allocation_id: \d+|has_single_reference: true)")
"""What a ``TensorDescription`` says that no table holds."""


def said(trace: Trace) -> Said:
    """What both StepStats and their Timeline say, in whole microseconds of Unix time."""
    origin, slices = trace.info.origin_epoch_ns or 0, trace.slices

    def text(code: int) -> str | None:
        return trace.strings[code] if code >= 0 else None

    def key(at: int) -> tuple[Any, ...]:
        start = int(slices.start_ns[at])
        track = int(slices.track[at])
        return (
            (start + origin) // 1000,
            (start + int(slices.dur_ns[at]) + origin) // 1000,
            text(slices.name[at]),
            text(trace.tracks.process[track]),
            text(trace.tracks.label[track]),
            int(slices.kind[at]),
        )

    keys = [key(at) for at in range(len(slices))]
    nodes, tensors, ops, flows = trace.nodes, trace.tensors, trace.device_ops, trace.flows
    texts = {"dtype", "shape", "allocator"}
    columns = [name for name in Tensors.__dataclass_fields__ if name != "slice"]
    found: dict[str, Iterable[Any]] = {
        "slices": keys,
        "nodes": (
            (keys[at], text(node), text(op), text(inputs), text(placement))
            for at, node, op, inputs, placement in zip(
                nodes.slice, nodes.node, nodes.op, nodes.inputs, nodes.placement, strict=True
            )
        ),
        "tensors": (
            (keys[at], *(text(row[k]) if name in texts else int(row[k]) for k, name in enumerate(columns)))
            for at, *row in zip(tensors.slice, *(getattr(tensors, name) for name in columns), strict=True)
        ),
        "flows": ((keys[source], keys[target]) for source, target in zip(flows.source, flows.target, strict=True)),
        "device_ops": (
            (keys[at], int(device), int(stream), keys[launch] if launch >= 0 else None)
            for at, device, stream, launch in zip(ops.slice, ops.device, ops.stream, ops.launch, strict=True)
        ),
    }
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def as_set(events: Iterable[Event]) -> Counter[str]:
    """The events of a Timeline with processes by name, arrows whole and without their ids."""
    events = list(events)
    process = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    found: Counter[str] = Counter()
    arrows: dict[int, list[str]] = {}
    for event in events:
        plain = {key: value for key, value in event.items() if key != "id"} | {"pid": process[event["pid"]]}
        if event["ph"] == "O":
            described = event["args"]["snapshot"]["tensor_description"]
            plain["args"] = re.sub(r"\s+", " ", ABSENT_IN_TRACES.sub("", described))
        line = json.dumps(plain, sort_keys=True)
        if event["ph"] in "st":
            arrows.setdefault(event["id"], []).append(line)
        else:
            found[line] += 1
    found.update(" -> ".join(ends) for ends in arrows.values())
    return found
