"""What a log of device placement says of the ops that a profile shows on the host."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from stepscope.analysis.executors import of_pipeline
from stepscope.analysis.placement import is_graph_op
from stepscope.names.tf_graph import parse_annotation
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.codes import mapped, used_codes
from stepscope.trace.tables import Kind
from stepscope.trace.trace import Trace

_HOST = regex(r"[/:](?:XLA_)?CPU:\d+$", re.I)


@record
class LoggedOp:
    """An op that the profile shows on the host, where the log places it."""

    name: str
    """As the profile calls it."""
    op: str
    device: str
    """As logged."""
    also_on: str | None
    """A device other than the CPU on which the log has ops of this type: such ops can run there. None: on none."""
    count: int
    ns: int


def logged_ops(trace: Trace, start_ns: int, end_ns: int) -> tuple[LoggedOp, ...]:
    """Ops that begin in ``[start, end)`` on the host and compute something, and that the log places on the CPU, those
    first that take longest."""
    if not len(trace.placements):
        return ()
    slices, strings = trace.slices, trace.strings
    nodes, others = _logged(trace)
    ops = (slices.kind == Kind.HOST_OP) & (slices.start_ns >= start_ns) & (slices.start_ns < end_ns)
    ops &= mapped(slices.name, strings, is_graph_op, np.bool_) & ~of_pipeline(trace)
    names = slices.name[ops]
    count = np.bincount(names, minlength=len(strings))
    total = np.bincount(names, slices.dur_ns[ops], minlength=len(strings))
    logged = []
    for code in used_codes(names, len(strings)).tolist():
        node, op = parse_annotation(strings[code], "")
        device = _device(nodes, node or "", op or "")
        if op is not None and device is not None and _is_host(device):
            logged.append(LoggedOp(strings[code], op, device, others.get(op), int(count[code]), int(total[code])))
    return tuple(sorted(logged, key=lambda one: -one.ns))


def _logged(trace: Trace) -> tuple[dict[tuple[str, str], set[str]], dict[str, str]]:
    """Per node (empty for ops that ran eagerly) and type the devices it is on; per type another device than the CPU
    that has some."""
    strings, table = trace.strings, trace.placements
    nodes: dict[tuple[str, str], set[str]] = defaultdict(set)
    others: dict[str, str] = {}
    for node, op, device in zip(table.node.tolist(), table.op.tolist(), table.device.tolist(), strict=True):
        nodes[strings[node] if node >= 0 else "", strings[op]].add(strings[device])
        if not _is_host(strings[device]):
            others.setdefault(strings[op], strings[device])
    return nodes, others


def _device(nodes: dict[tuple[str, str], set[str]], node: str, op: str) -> str | None:
    """Where the log has a node, if it is one device: under its name, under the name it has within a function (a profile
    puts that of the call before it), or as an op that ran eagerly."""
    parts = node.split("/")
    for names in (*("/".join(parts[at:]) for at in range(len(parts))), ""):
        devices = nodes.get((names, op))
        if devices:
            return next(iter(devices)) if len(devices) == 1 else None
    return None


def _is_host(device: str) -> bool:
    return _HOST.search(device) is not None
