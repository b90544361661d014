"""XPlane (``.xplane.pb``), the format of XProf and of TensorBoard's profiler.

Every slice is written: those of host threads to ``/host:CPU``, those of devices to a plane per device, with what the
tables say of them as statistics. Overlapping slices are legal in XPlane. What has no place in it is in ``LACKS``.
"""

from __future__ import annotations

from stepscope.writers.lacks import Lack, notices, spelled, whole
from stepscope.writers.xplane.facts import carried_flows
from stepscope.writers.xplane.layout import write

LACKS = (
    whole("memory", "memory events"),
    whole("counters", "counter values"),
    whole("instants", "events without a duration"),
    whole("tensors", "tensors"),
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

__all__ = ["LACKS", "write"]
