"""What each link between devices carries per byte of a collective, and what it could.

Formulas: NVIDIA nccl-tests, doc/PERFORMANCE.md. Sizes there are those of the larger buffer: of an all-gather the
output, of a reduce-scatter the input.
"""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.analysis.peaks import peaks_of
from stepscope.names.collectives import Collective
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Device

BUS_FACTORS: dict[Collective, str] = {
    Collective.ALL_REDUCE: "2(n-1)/n",
    Collective.ALL_GATHER: "(n-1)/n",
    Collective.REDUCE_SCATTER: "(n-1)/n",
    Collective.ALL_TO_ALL: "(n-1)/n",
    Collective.GATHER: "(n-1)/n",
    Collective.SCATTER: "(n-1)/n",
    Collective.BROADCAST: "1",
    Collective.REDUCE: "1",
    Collective.SEND_RECV: "1",
}
"""What each link carries per byte of a collective of n ranks."""


def larger_buffer(kind: Collective, bytes_: int, size: int | None) -> int | None:
    """The size that bandwidths are made of: an all-gather's output is that of all ranks' inputs."""
    if bytes_ == NULL or (kind is Collective.ALL_GATHER and size is None):
        return None
    return bytes_ * size if kind is Collective.ALL_GATHER and size else bytes_


def bus_factor(kind: Collective, size: int | None) -> float | None:
    """What each link carries per byte; None where the formula needs a number of ranks that is not known.

    >>> bus_factor(Collective.ALL_REDUCE, 4), bus_factor(Collective.BROADCAST, None)
    (1.5, 1.0)
    """
    formula = BUS_FACTORS.get(kind)
    if formula in (None, "1"):
        return 1.0 if formula else None
    if not size:
        return None
    return (2.0 if formula == "2(n-1)/n" else 1.0) * (size - 1) / size


def link_of(devices: Iterable[Device]) -> float | None:
    """Peak of the links of one kind of device in one direction, bytes per second; None where it is not known."""
    kinds = list({(device.name, device.compute_capability): device for device in devices if device.name}.values())
    peaks = peaks_of(kinds[0]) if len(kinds) == 1 else None
    return None if peaks is None or peaks.link_bandwidth is None else peaks.link_bandwidth.value / 2
