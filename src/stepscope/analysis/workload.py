"""What kind of program a profile is of: what advice has to fit.

A profile seldom says outright whether it is of training or of serving, which version of the framework ran or what for.
What it shows is taken as evidence, and what it does not show stays unknown: a condition on what is not known holds,
since nothing speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.analysis.phases import Phase
from stepscope.hardware.devices import lookup
from stepscope.names.in_use import Feature, in_use
from stepscope.names.kernels import Collective, describe
from stepscope.names.purposes import Purpose, infers, serves, trains, trains_on_device, vendor_of_call, vendor_of_device
from stepscope.names.versions import Range, Version, of_date, of_names
from stepscope.record import record
from stepscope.trace.codes import among, used_codes
from stepscope.trace.tables import FlowKind, Kind
from stepscope.trace.trace import Device, Trace

__all__ = ["Feature", "Purpose", "Version", "Workload", "workload_of"]


CPU = "CPU"


@record
class Workload:
    """What a remedy has to fit; each part is None (``UNKNOWN``) where the profile does not tell."""

    framework: str | None = None
    purpose: Purpose = Purpose.UNKNOWN
    oldest: Version | None = None
    """The framework is of this version or a later one."""
    newest: Version | None = None
    """The framework is of this version or an earlier one."""
    vendors: frozenset[str] = frozenset()
    """Who made the devices, ``CPU`` where these are the host's own; empty where that is not known."""
    uses: frozenset[Feature] = frozenset()
    """What the profile shows in use; what is not among it may be in use all the same."""

    def is_for(self, purposes: Iterable[Purpose]) -> bool:
        """Whether the program may be for one of some purposes."""
        return self.purpose in (*purposes, Purpose.UNKNOWN)

    def may_be_since(self, version: Version) -> bool:
        """Whether the framework may be of a version or a later one."""
        return self.newest is None or self.newest >= version

    def is_before(self, version: Version) -> bool:
        """Whether the framework is known to be older than a version."""
        return not self.may_be_since(version)

    def may_run_on(self, vendors: Iterable[str]) -> bool:
        """Whether a device may be of one of some makes."""
        return not self.vendors or bool(self.vendors & frozenset(vendors))


def workload_of(
    trace: Trace, phases: list[dict[Phase, int]], *, is_capture: bool = False, ours: bool = False
) -> Workload:
    """The workload of a profile; ``phases`` are per device the busy times of the used steps by phase.

    ``is_capture`` says that graphs were captured, and hardly anything ran; ``ours`` that stepscope recorded it.
    """
    names = _names(trace)
    versions = _versions(trace, names)
    return Workload(
        framework=trace.info.framework,
        purpose=Purpose.CAPTURE if is_capture else _purpose(trace, names, phases),
        oldest=versions.oldest,
        newest=versions.newest,
        vendors=_vendors(trace),
        uses=in_use(names)
        | ({Feature.SESSION} if len(trace.nodes) else frozenset())
        | ({Feature.OWN_RECORDING} if ours else frozenset()),
    )


def _names(trace: Trace) -> list[str]:
    """What slices are called, and the scopes of compiled ops: other texts of a profile say nothing of its purpose."""
    codes = {*used_codes(trace.slices.name, len(trace.strings)).tolist()}
    codes |= {*used_codes(trace.xla_ops.scope, len(trace.strings)).tolist()}
    codes |= {*used_codes(trace.nodes.node, len(trace.strings)).tolist()}
    return [trace.strings[code] for code in codes]


def _kernels(trace: Trace) -> list[str]:
    codes = used_codes(trace.slices.name[trace.device_ops.slice], len(trace.strings))
    return [trace.strings[code] for code in codes.tolist()]


def _versions(trace: Trace, names: list[str]) -> Range:
    """What the file, the names in it and its date say; names know better than a clock."""
    info = trace.info
    named = Range(info.framework_oldest, info.framework_newest) & of_names(info.framework, names)
    if not named.is_possible:
        return Range()
    dated = named & of_date(info.framework, info.origin_epoch_ns)
    return dated if dated.is_possible else named


def _vendors(trace: Trace) -> frozenset[str]:
    """Who made the devices; where no name says so, whose calls were made."""
    named = {vendor for device in trace.info.devices if (vendor := _vendor(device)) is not None}
    if named:
        return frozenset(named)
    slices = trace.slices
    calls = among(slices.kind, (Kind.RUNTIME_CALL, Kind.ALLOCATION, Kind.SYNC))
    codes = used_codes(slices.name[calls], len(trace.strings)).tolist()
    called = frozenset(vendor for code in codes if (vendor := vendor_of_call(trace.strings[code])) is not None)
    devices = trace.info.devices
    # PyTorch's profiler lists the devices that it knows of.
    none = trace.info.on_cpu or (trace.info.header.get("deviceProperties") == [] and not devices)
    on_host = none or (bool(devices) and all(device.kind == "cpu" for device in devices))
    return called or (frozenset({CPU}) if on_host else called)


def _vendor(device: Device) -> str | None:
    if device.kind == "cpu":
        return None
    known = lookup(device.name or "")
    if known is not None:
        return known.vendor
    return vendor_of_device(device.name or "") or ("Google" if device.kind == "tpu" else None)


def _purpose(trace: Trace, names: list[str], phases: list[dict[Phase, int]]) -> Purpose:
    shown = {phase for times in phases for phase, ns in times.items() if ns}
    arrows = bool((trace.flows.kind == FlowKind.FORWARD_BACKWARD).any())
    if arrows or shown & {Phase.BACKWARD, Phase.OPTIMIZER} or any(map(trains, names)):
        return Purpose.TRAINING
    if any(map(trains_on_device, _kernels(trace))):
        return Purpose.TRAINING
    if any(map(serves, names)):
        return Purpose.SERVING
    if any(map(infers, names)):
        return Purpose.INFERENCE
    # A loss is computed to train or to evaluate: a profile that shows nothing behind it may have been cut there.
    forward_only = Phase.FORWARD in shown and Phase.LOSS not in shown
    return Purpose.INFERENCE if forward_only and not _reduces(trace) else Purpose.UNKNOWN


def _reduces(trace: Trace) -> bool:
    """Whether replicas of TensorFlow reduce something, as those that train do: any layer counts as forward there."""
    if trace.info.framework != "TensorFlow":
        return False
    collectives = (describe(name).collective for name in _kernels(trace))
    return any(one in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER) for one in collectives)
