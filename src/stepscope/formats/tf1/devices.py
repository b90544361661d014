"""Which device each GPU stream of StepStats belongs to, where that can be told."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.names.tf_graph import DeviceRow
from stepscope.trace.tables import I32
from stepscope.trace.trace import Device, Loss

NOT_DETERMINED = "GPU not determined"

Place = tuple[str | None, int]
"""Task and number of a device."""


def number_devices(
    rows: Sequence[DeviceRow], streams: I32, launches: I32
) -> tuple[list[int], tuple[Device, ...], Loss | None]:
    """The device number of every row, the devices, and what is not determined.

    ``streams`` holds the row of every kernel and copy, ``launches`` that of every node placed on an accelerator.
    TensorFlow up to 1.13 wrote the streams of all GPUs under ``gpu:0``: where nodes were placed on a GPU that has no
    stream row, no stream's device is known. All streams then belong to one device of a number that no GPU has.
    """
    of_streams: list[Place] = sorted({_place(rows[at]) for at in set(streams.tolist())}, key=_order)
    of_nodes = {_place(rows[at]) for at in set(launches.tolist())}
    if not of_streams:
        return [row.number for row in rows], (), None
    homes = {_home(place, of_streams) for place in of_nodes}
    if None in homes or len(homes) < len(of_nodes):
        number = max(place[1] for place in (*of_nodes, *of_streams)) + 1
        loss = Loss(
            "device_not_determined",
            int(streams.size),
            f"kernels and copies whose GPU is not determined: nodes ran on {len(of_nodes)} GPUs, and this TensorFlow "
            "wrote the streams of all of them under one; idle time is time in which none of them worked",
        )
        in_streams = set(streams.tolist())
        numbers = [number if at in in_streams else row.number for at, row in enumerate(rows)]
        return numbers, (Device(number, NOT_DETERMINED),), loss
    distinct = len({number for _, number in of_streams}) == len(of_streams)
    number_of = {place: place[1] if distinct else at for at, place in enumerate(of_streams)}
    numbers = [number_of.get(_home(_place(row), of_streams) or (None, -1), row.number) for row in rows]
    return numbers, tuple(Device(number_of[place]) for place in of_streams), None


def _place(row: DeviceRow) -> Place:
    return row.task, row.number


def _order(place: Place) -> tuple[int, str]:
    return place[1], place[0] or ""


def _home(place: Place, of_streams: Sequence[Place]) -> Place | None:
    """The device of the streams on which a node placed at ``place`` ran; rows of streams often name no task."""
    return next((stream for stream in of_streams if stream[1] == place[1] and stream[0] in (None, place[0])), None)
