"""XPlane (``.xplane.pb``), the format of XProf and of TensorBoard's profiler.

Every slice is written: those of host threads to ``/host:CPU``, those of devices to a plane per device, with what the
tables say of them as statistics. Overlapping slices are legal in XPlane. Memory events, counters, instants, TensorFlow
nodes and tensors have no place in it and are left out.
"""

from __future__ import annotations

from stepscope.writers.xplane.layout import write

__all__ = ["write"]
