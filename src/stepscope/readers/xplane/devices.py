"""Devices, and the tracks their work and the host's threads are drawn on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.readers.xplane.planes import LineRole, stream_number
from stepscope.readers.xplane.view import HOST_ROLES, View
from stepscope.readers.xplane.xla import XlaOps
from stepscope.trace import tables as t
from stepscope.trace.trace import Device

Identity = tuple[str, str | int]
"""What tells devices apart: their kind, and the plane or (XLA:CPU) the ordinal."""


class Devices:
    """The devices of a file by number: the profile's own number where it is free, else the next."""

    def __init__(self, view: View, ops: XlaOps) -> None:
        self._view = view
        self.of_plane: dict[int, int] = {}
        self.of_ordinal: dict[int, int] = {}
        """By the ordinal that calls of XLA's runtime name."""
        self._kinds: dict[int, str] = {}
        self._planes: dict[int, int] = {}
        named: dict[str, int] = {}
        for plane, parts in enumerate(view.planes):
            if parts.kind in ("host", "host_other", "other"):
                continue
            name = view.space.planes.names[plane]
            if name not in named:
                named[name] = self._number(parts.ordinal, parts.kind)
                self._planes[named[name]] = plane
            self.of_plane[plane] = named[name]
            if parts.kind == "tpu" and parts.ordinal is not None:
                self.of_ordinal[parts.ordinal] = named[name]
        ordinals = view.space.stats.sizes("device_ordinal", ops.on_processor)
        self.of_processor = {ordinal: self._number(ordinal, "cpu") for ordinal in np.unique(ordinals).tolist()}
        self.of_ordinal = self.of_ordinal or self.of_processor

    def _number(self, preferred: int | None, kind: str) -> int:
        small = preferred is not None and preferred < 1 << 20
        number = preferred if small and preferred not in self._kinds else max(self._kinds, default=-1) + 1
        assert number is not None
        self._kinds[number] = kind
        return number

    def numbers(self, kind: str) -> list[int]:
        """The devices of a kind."""
        return [number for number, of in self._kinds.items() if of == kind]

    def described(self, numbers: list[int], headers: list[dict[str, Any]]) -> tuple[Device, ...]:
        """Some devices as the profile describes them; ``headers`` are the statistics of every plane."""
        return tuple(
            _device(number, self._kinds[number], headers[self._planes[number]] if number in self._planes else {})
            for number in numbers
        )


def _device(number: int, kind: str, stats: Mapping[str, Any]) -> Device:
    vendor = stats.get("device_vendor")
    name = stats.get("gpu_device_name") or stats.get("device_type_string")
    if not isinstance(name, str):
        name = f"{vendor} {kind.upper()}" if isinstance(vendor, str) and vendor else None
    # On AMD GPUs the two numbers are those of the instruction set (gfx942), which is another scale.
    is_nvidia = isinstance(vendor, str) and vendor.lower() == "nvidia"
    major, minor = (_whole(stats.get(f"compute_cap_{part}")) for part in ("major", "minor"))
    return Device(
        id=number,
        name=name,
        memory_bytes=_whole(stats.get("memory_size")) or None,
        multiprocessors=_whole(stats.get("core_count")) or None,
        compute_capability=(major, minor) if is_nvidia and major and minor is not None else None,
        kind=kind,
    )


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else None


@dataclass(frozen=True, slots=True)
class Tracks:
    """Where events lie: track, and device and stream (-1 and NULL on the host), one value per event."""

    track: t.I32
    device: t.I32
    stream: t.I64


def tracks_of(view: View, ops: XlaOps, devices: Devices, held: t.Bools) -> Tracks:
    """Add the tracks that hold any of the ``held`` events to the builder, and place every event."""
    lines, events = view.lines, view.events
    used = np.zeros(len(lines), np.bool_)
    used[events.line[held]] = True
    track, device = np.full(len(lines), -1, np.int32), np.full(len(lines), -1, np.int32)
    stream = np.full(len(lines), t.NULL, np.int64)
    known: dict[tuple[str | int, ...], int] = {}
    for line in np.flatnonzero(used).tolist():
        key = _identity(view, line)
        role = LineRole(view.role[line])
        if role not in HOST_ROLES:
            device[line] = devices.of_plane[int(lines.plane[line])]
            stream[line] = stream_number(lines.names[line], int(lines.id[line])) if role == LineRole.STREAM else t.NULL
        if key not in known:
            known[key] = _add(view, line, role, int(device[line]), int(stream[line]))
        track[line] = known[key]
    placed = Tracks(track[events.line], device[events.line], stream[events.line])
    _place_ops(view, ops, devices, placed)
    return placed


def _identity(view: View, line: int) -> tuple[str | int, ...]:
    """What lines of one track share: lines of equal id are one thread, unless nobody wrote ids."""
    lines = view.lines
    plane, id = view.planes[int(lines.plane[line])], int(lines.id[line])
    if view.role[line] in HOST_ROLES and id != 0:
        return plane.thread_space, id
    return view.space.planes.names[int(lines.plane[line])], id, lines.names[line]


def _add(view: View, line: int, role: LineRole, device: int, stream: int) -> int:
    lines = view.lines
    if role in (LineRole.HOST, LineRole.HOST_OTHER):
        kind = t.TrackKind.HOST_THREAD
    elif role == LineRole.STREAM:
        kind = t.TrackKind.DEVICE_STREAM
    else:
        kind = t.TrackKind.OTHER if role == LineRole.OTHER else t.TrackKind.DEVICE_LINE
    return view.builder.track(
        kind,
        view.space.planes.names[int(lines.plane[line])] or None,
        str(int(lines.id[line])),
        label=lines.displayed[line] or lines.names[line] or None,
        device=device if device >= 0 else None,
        stream=stream if stream != t.NULL else None,
    )


def _place_ops(view: View, ops: XlaOps, devices: Devices, placed: Tracks) -> None:
    """Ops of XLA:CPU leave their thread: a track per thread and device, whose stream is a small number."""
    rows = ops.on_processor
    if not rows.size:
        return
    line = view.events.line[rows]
    ordinals = view.space.stats.sizes("device_ordinal", rows)
    pairs, each = np.unique(np.stack((ordinals, placed.track[rows]), axis=1), axis=0, return_inverse=True)
    each = each.reshape(-1)
    _, first = np.unique(each, return_index=True)
    streams: dict[int, int] = {}
    places = []
    for (ordinal, _), at in zip(pairs.tolist(), first.tolist(), strict=True):
        device, on = devices.of_processor[ordinal], int(line[at])
        stream = streams.get(device, 0)
        streams[device] = stream + 1
        places.append((_add(view, on, LineRole.STREAM, device, stream), device, stream))
    table = np.array(places, np.int64)
    for column, values in zip((placed.track, placed.device, placed.stream), table.T, strict=True):
        column[rows] = values[each]
