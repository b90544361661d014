"""The host of a real TensorFlow profile with the device that a machine without one lacks.

Every op of the graph that a thread of the executors ran gets a launch, and a stream a kernel for it.
"""

from __future__ import annotations

from typing import Any

from tests.kit.tf_gpu import LATENCY, PS, V100
from tests.kit.xplanes import Ev, Line, Plane, Unsigned, space
from tests.kit.xspace import XEvent, XLine, read_xspace

_KERNEL = "Eigen::internal::EigenMetaKernel"
_DETAILS = "regs:32 static_shared:0 dynamic_shared:0 grid:160,1,1 block:256,1,1 occ_pct:50"


def with_kernels(data: bytes, us: int) -> bytes:
    """The same profile with kernels of so many µs on a GPU."""
    host = read_xspace(data).plane("/host:CPU")
    launched: list[tuple[int, str]] = []
    lines = tuple(_line(line, launched) for line in host.lines)
    origin = min(line.time_ns for line in lines)
    free, kernels = 0, []
    for number, (at, op) in sorted(enumerate(launched, 1), key=lambda pair: pair[1]):
        begin = max(at - origin * 1000 + LATENCY * PS, free + PS)
        free = begin + us * PS
        stats: dict[str, Any] = {"correlation_id": Unsigned(number), "tf_op": op, "kernel_details": _DETAILS}
        kernels.append(Ev(_KERNEL, begin, us * PS, stats))
    gpu = Plane("/device:GPU:0", (Line("Stream #20(Kernel)", tuple(kernels), 20, origin),), V100)
    shown = {event.name: event.display for line in host.lines for event in line.events if event.display}
    return space(Plane("/host:CPU", lines, shown=shown), gpu, hosts=("vm",))


def _line(line: XLine, launched: list[tuple[int, str]]) -> Line:
    events = []
    for event in line.events:
        events.append(Ev(event.name, event.start_ps, event.dur_ps, {k: _plain(v) for k, v in event.stats.items()}))
        if _runs_op(line, event):
            at, dur = event.start_ps + event.dur_ps // 4, max(event.dur_ps // 2, 1000)
            launched.append((line.time_ns * 1000 + at + dur, event.name))
            events.append(Ev(_KERNEL, at, dur, {"correlation_id": Unsigned(len(launched))}))
    events.sort(key=lambda event: (event.start, -event.dur))
    return Line(line.name, tuple(events), line.id, line.time_ns)


def _runs_op(line: XLine, event: XEvent) -> bool:
    of_graph = event.name.startswith("StatefulPartitionedCall/") and not event.name.endswith(":ReadVariableOp")
    return line.name.startswith("tf_Compute") and of_graph and event.dur_ps > 0


def _plain(value: Any) -> Any:
    return Unsigned(value) if isinstance(value, int) and value >= 1 << 63 else value
