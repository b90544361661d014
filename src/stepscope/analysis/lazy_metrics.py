"""What PyTorch/XLA counted between the beginning and the end of the recorded window, of which a profile shows little:
graphs compiled, values transferred, ops that have no lowering and ran on the CPU."""

from __future__ import annotations

import math

from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Trace

COMPILED = "CompileTime"
TO_DEVICE = ("TransferToDeviceTime", "TransferToServerTime")
FROM_DEVICE = ("TransferFromDeviceTime", "TransferFromServerTime")
"""As PyTorch/XLA has called them since it left XRT (2.1), and before."""
READS = "aten::_local_scalar_dense"
"""A tensor's value is asked for (``.item()``, ``if tensor:``): counted as a fall-back, which it is by its nature."""
_FALLS_BACK = regex(r"(?!xla::)[A-Za-z_]\w*::[\w.]+$")
"""An op under the name of the dispatcher, which only the fall-back counts so (torch_xla/csrc/aten_cpu_fallback.cpp)."""


@record
class Counted:
    """What was counted in the window."""

    name: str
    count: int
    total: float | None
    """Sum of its samples; None where it has none."""
    unit: str | None
    """Of the sum: ns or bytes; None for other numbers."""


@record
class LazyMetrics:
    """Everything that was counted in the window, in the order of the report."""

    steps: int | None
    counted: tuple[Counted, ...]

    @property
    def compiled(self) -> Counted | None:
        """Graphs compiled, and how long that took; None where none was."""
        return self._first((COMPILED,))

    @property
    def to_device(self) -> Counted | None:
        """Transfers to the device, and how long they took."""
        return self._first(TO_DEVICE)

    @property
    def from_device(self) -> Counted | None:
        """Values read back, and how long that took."""
        return self._first(FROM_DEVICE)

    @property
    def fallbacks(self) -> tuple[Counted, ...]:
        """Ops that ran on the CPU for want of a lowering, those first that did so most often."""
        fallbacks = [one for one in self.counted if _FALLS_BACK.match(one.name) and one.name != READS]
        return tuple(sorted(fallbacks, key=lambda one: -one.count))

    def tells(self, one: Counted) -> bool:
        """Whether it is one of these, and no bookkeeping."""
        return one in (self.compiled, self.to_device, self.from_device) or one in self.fallbacks or one.name == READS

    def _first(self, names: tuple[str, ...]) -> Counted | None:
        return next((one for one in self.counted if one.name in names), None)


def lazy_metrics(trace: Trace) -> LazyMetrics | None:
    """What was counted in the window; None where that was not recorded, or the program set its counters back in it."""
    metrics, strings = trace.metrics, trace.strings
    counts = metrics.count_after - metrics.count_before
    if not len(metrics) or (counts < 0).any():
        return None
    totals = (metrics.total_after - metrics.total_before).tolist()
    steps = int(metrics.steps[0])
    counted = (
        Counted(strings[name], count, None if math.isnan(total) else total, strings[unit] if unit >= 0 else None)
        for name, count, total, unit in zip(
            metrics.name.tolist(), counts.tolist(), totals, metrics.unit.tolist(), strict=True
        )
    )
    return LazyMetrics(None if steps == NULL else steps, tuple(one for one in counted if one.count))
