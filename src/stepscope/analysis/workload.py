"""What kind of program a profile is of: what advice has to fit.

A profile seldom says outright whether it is of training or of serving, which version of the framework ran or what for.
What it shows is taken as evidence, and what it does not show stays unknown: a condition on what is not known holds,
since nothing speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from stepscope.analysis.phases import Phase
from stepscope.hardware.devices import lookup
from stepscope.names.hosts import serving_frame
from stepscope.trace.trace import Trace

Version = tuple[int, int]
"""Major and minor version of a framework."""


class Purpose(StrEnum):
    """What a program does with its model."""

    TRAINING = "training"
    INFERENCE = "inference"
    """A forward pass and nothing of training."""
    SERVING = "serving"
    """Inference inside an engine that answers requests."""
    CAPTURE = "capture"
    """Recording graphs that will be launched later."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Workload:
    """What a remedy has to fit; each part is None (``UNKNOWN``) where the profile does not tell."""

    framework: str | None = None
    purpose: Purpose = Purpose.UNKNOWN
    oldest: Version | None = None
    """The framework is of this version or a later one."""
    newest: Version | None = None
    """The framework is of this version or an earlier one."""
    vendors: frozenset[str] = frozenset()
    """Who made the devices; empty where that is not known."""

    def is_for(self, purposes: Iterable[Purpose]) -> bool:
        """Whether the program may be for one of some purposes."""
        return self.purpose in (*purposes, Purpose.UNKNOWN)

    def may_be_since(self, version: Version) -> bool:
        """Whether the framework may be of a version or a later one."""
        return self.newest is None or self.newest >= version

    def may_run_on(self, vendors: Iterable[str]) -> bool:
        """Whether a device may be of one of some makes."""
        return not self.vendors or bool(self.vendors & frozenset(vendors))


def workload_of(trace: Trace, phases: list[dict[Phase, int]], *, is_capture: bool = False) -> Workload:
    """The workload of a profile; ``phases`` are per device the busy times of the used steps by phase,
    ``is_capture`` says that graphs were captured, and hardly anything ran."""
    known = (lookup(device.name) for device in trace.info.devices if device.name)
    return Workload(
        framework=trace.info.framework,
        purpose=Purpose.CAPTURE if is_capture else _purpose(trace, phases),
        vendors=frozenset(peaks.vendor for peaks in known if peaks is not None),
    )


def _purpose(trace: Trace, phases: list[dict[Phase, int]]) -> Purpose:
    shown = {phase for times in phases for phase, ns in times.items() if ns}
    if shown & {Phase.BACKWARD, Phase.OPTIMIZER, Phase.LOSS}:
        return Purpose.TRAINING
    if any(map(serving_frame, trace.strings)):
        return Purpose.SERVING
    return Purpose.INFERENCE if Phase.FORWARD in shown else Purpose.UNKNOWN
