"""The quick estimate of what reducing gradients takes: parameters x bytes / bandwidth, as people reckon it.

Beside it the same for a ring, in which each link carries 2(n-1)/n of the bytes of an all-reduce of n ranks, (n-1)/n of
those of a reduce-scatter (NVIDIA nccl-tests, doc/PERFORMANCE.md). TensorFlow keeps its variables, and reduces their
gradients, in float32 with fp16 on too: a parameter is 4 bytes there.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from stepscope.analysis.exchange.asked import NOTHING_GIVEN, Asked
from stepscope.analysis.exchange.collectives import HOST, KINDS, Collectives
from stepscope.analysis.exchange.groups import size_of
from stepscope.analysis.exchange.links import bus_factor, link_of
from stepscope.diagnosis.remedies import TENSORFLOW
from stepscope.names.collectives import Collective
from stepscope.record import record
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import I64, Bools
from stepscope.trace.trace import Device

_REDUCING = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER)
_FLOAT32 = 4


@record
class Gradients:
    """What one device reduces per step, and how long that would take at its link's peak."""

    source: Literal["trace", "given"]
    """Whether bytes are those of the trace or of a number of parameters that was given."""
    parameters: int
    bytes_per_parameter: int
    bytes_per_step: int
    ranks: int | None
    """Of the group that reduces them; None where it is not known."""
    link_bandwidth: float | None
    """Bytes per second in one direction; None where none was given and the device is not known, or ranks are on several
    hosts."""
    link_source: Literal["device", "given"] | None
    """Whether that is the device's peak or was given."""
    one_host: bool | None
    """Whether the ranks share a host, as the peak assumes; None where it is not known."""
    estimate_ns: int | None
    """Bytes by bandwidth."""
    ring_estimate_ns: int | None
    measured_ns: int | None
    """What these collectives take per step on that device, waiting included; None where the trace has none."""


class Setting(Protocol):
    """What a rank's profile says of the job."""

    @property
    def framework(self) -> str | None:
        """The framework."""

    @property
    def world_size(self) -> int | None:
        """Ranks of the job."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The rank's devices."""


def gradients(
    table: Collectives, steps: I64, setting: Setting, one_host: bool | None, asked: Asked = NOTHING_GIVEN
) -> Gradients | None:
    """The estimate of one rank over some steps (indices); None where nothing is reduced (or its sizes are not recorded)
    and no parameters are given.

    Of several groups the largest counts, and of equals the one with most bytes: smaller ones split layers."""
    chosen, parameters = _reduced(table, steps), asked.parameters
    known = chosen & (table.bytes > 0)
    count = max(steps.size, 1)
    recorded = round(int(table.bytes[known].sum()) / count)
    if parameters is None and not recorded:
        return None
    width = _FLOAT32 if setting.framework == TENSORFLOW else table.width or _FLOAT32
    size = parameters * width if parameters is not None else recorded
    group = table.groups[int(table.group[chosen][0])] if chosen.any() else None
    ranks = setting.world_size if group is None else size_of(group, setting.world_size)
    one_host = True if ranks and ranks <= len(setting.devices) else one_host  # A process's devices are one host's.
    peak = link_of(setting.devices) if one_host is not False else None
    link = asked.bandwidth or peak
    plain = None if link is None else size / link * 1e9
    factor = _ring_factor(table, known, ranks)
    return Gradients(
        source="trace" if parameters is None else "given",
        parameters=parameters if parameters is not None else recorded // width,
        bytes_per_parameter=width,
        bytes_per_step=size,
        ranks=ranks,
        link_bandwidth=link,
        link_source="given" if asked.bandwidth else "device" if link else None,
        one_host=one_host,
        estimate_ns=None if plain is None else round(plain),
        ring_estimate_ns=None if plain is None or factor is None else round(plain * factor),
        measured_ns=round(int((table.end - table.start)[chosen].sum()) / count) if chosen.any() else None,
    )


def _reduced(table: Collectives, steps: I64) -> Bools:
    """The collectives of the used steps by which one device reduces gradients."""
    kinds = [KINDS.index(kind) for kind in _REDUCING]
    reduced: Bools = among(table.kind, kinds) & among(table.step, steps) & ~table.other
    if not reduced.any():
        return reduced
    on_devices = reduced & (table.device != HOST)
    reduced = on_devices if on_devices.any() else reduced
    reduced &= table.device == table.device[reduced].min()
    totals = {
        group: ((table.groups[group].size or 0), int(table.bytes[reduced & (table.group == group)].clip(min=0).sum()))
        for group in distinct(table.group[reduced])
    }
    return np.asarray(reduced & (table.group == max(totals, key=lambda group: totals[group])))


def _ring_factor(table: Collectives, known: Bools, ranks: int | None) -> float | None:
    """What a ring's links carry per byte: the mean over what is reduced, weighted by size; else an all-reduce's."""
    factors = [bus_factor(kind, ranks) for kind in _REDUCING]
    if None in factors:
        return None
    sizes = [int(table.bytes[known & (table.kind == KINDS.index(kind))].sum()) for kind in _REDUCING]
    if not sum(sizes):
        return factors[0]
    return sum(size * (factor or 0.0) for size, factor in zip(sizes, factors, strict=True)) / sum(sizes)
