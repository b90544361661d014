"""XPlane (``.xplane.pb``), the format of XProf and of TensorBoard's profiler.

What was recorded as XPlane is carried as it was recorded (``carried.py``). Of other profiles every slice is written:
those of host threads to ``/host:CPU``, those of devices to a plane per device, with what the tables say of them as
statistics. Overlapping slices are legal in XPlane. What has no place in it is in ``LACKS``.
"""

from __future__ import annotations

from pathlib import Path

from stepscope.formats.lacks import Lack, notices, spelled, whole
from stepscope.formats.xplane.writing import carried, layout
from stepscope.formats.xplane.writing.facts import carried_flows
from stepscope.replacing import replacing
from stepscope.trace.trace import Trace
from stepscope.wire import field

_WARNINGS = 3
"""Field of ``XSpace``."""

LACKS = (
    whole("frames", "lines at which functions were called"),
    whole("looks", "looks at the line that a thread was at"),
    whole("memory", "memory events"),
    whole("counters", "counter values"),
    whole("instants", "events without a duration"),
    whole("tensors", "tensors"),
    whole("metrics", "counters of PyTorch/XLA"),
    whole("placements", "logged placements of ops"),
    Lack(
        "arrows (one may end at a slice, and none on a device)",
        ("flows",),
        lambda trace: len(trace.flows) - len(carried_flows(trace)),
    ),
    Lack("notices about what was lost or cut out", ("losses",), notices),
    spelled(
        "processes and threads are called as XProf calls them; threads on which nothing ran, and annotations among the "
        "ops of a stream, have no line there",
        "tracks", "slices.track", "slices.depth", "slices.parent",
    ),
    spelled("grid and block are spelled as CUPTI's collector does; an occupancy of 0 is not recorded",
            "device_ops.grid", "device_ops.block", "device_ops.occupancy_pct"),
)  # fmt: skip

CARRIED = (Lack("values of files beside the profile", ("counters",), carried.from_beside),)
"""What is not carried of a file that was recorded as XPlane."""


def write(trace: Trace, path: Path) -> None:
    """Write the trace as an ``XSpace``.

    Raises OSError where the disk does, OutputError where there is nothing to write or times do not fit the format.
    """
    source = carried.recorded_file(trace)
    with replacing(path) as part, part.open("wb") as file:
        file.writelines(layout.pieces(trace) if source is None else carried.pieces(trace, source))
        for loss in trace.completeness.losses:
            if loss.damaged or loss.lost_events or loss.lost_bytes:
                file.write(field(_WARNINGS, f"{loss.count} {loss.text}"))


def carries(trace: Trace) -> tuple[Lack, ...] | None:
    """What is left out of a trace whose recorded file is carried; None where it is laid out anew."""
    return None if carried.recorded_file(trace) is None else CARRIED


__all__ = ["LACKS", "carries", "write"]
