"""Devices, and the tracks their work and the host's threads are drawn on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stepscope.formats.xplane.grouping import dense, distinct
from stepscope.formats.xplane.planes import LineRole, stream_number
from stepscope.formats.xplane.view import HOST_ROLES, View
from stepscope.formats.xplane.xla import SpaceXlaOps
from stepscope.hardware import amd
from stepscope.hardware.figures import NVIDIA, Figures, product
from stepscope.trace import tables as t
from stepscope.trace.trace import Device


class Devices:
    """The devices of a file by number: the profile's own number where it is free, else the next."""

    def __init__(self, view: View, ops: SpaceXlaOps) -> None:
        self._view = view
        self.of_plane: dict[int, int] = {}
        self.of_ordinal: dict[int, int] = {}
        """By the ordinal that calls of XLA's runtime name."""
        self._kinds: dict[int, str] = {}
        self._next = 0
        self._planes: dict[int, int] = {}
        named: dict[str, int] = {}
        for plane, parts in enumerate(view.planes):
            if parts.kind in ("host", "host_other", "other", "beside"):
                continue
            name = view.space.planes.names[plane]
            if name not in named:
                named[name] = self._number(parts.ordinal, parts.kind)
                self._planes[named[name]] = plane
            self.of_plane[plane] = named[name]
            if parts.kind == "tpu" and parts.ordinal is not None:
                self.of_ordinal[parts.ordinal] = named[name]
        self.of_processor = {ordinal: self._number(ordinal, "cpu") for ordinal in distinct(ops.ordinals)[0].tolist()}
        self.of_ordinal = self.of_ordinal or self.of_processor

    def _number(self, preferred: int | None, kind: str) -> int:
        small = preferred is not None and preferred < 1 << 20
        number = preferred if preferred is not None and small and preferred not in self._kinds else self._next
        self._next = max(self._next, number + 1)
        self._kinds[number] = kind
        return number

    def numbers(self, kind: str) -> list[int]:
        """The devices of a kind."""
        return [number for number, of in self._kinds.items() if of == kind]

    def described(self, numbers: list[int], headers: list[dict[str, Any]]) -> tuple[Device, ...]:
        """Some devices as the profile describes them; ``headers`` are the statistics of every plane."""
        names = self._view.space.planes.names
        return tuple(
            _device(number, self._kinds[number], headers[self._planes[number]], names[self._planes[number]])
            if number in self._planes
            else _device(number, self._kinds[number], {})
            for number in numbers
        )


def _device(number: int, kind: str, stats: Mapping[str, Any], plane: str = "") -> Device:
    major, minor = (_whole(stats.get(f"compute_cap_{part}")) for part in ("major", "minor"))
    known = Figures(
        version=(major, minor) if major and minor is not None else None,
        multiprocessors=_whole(stats.get("core_count")) or None,
        clock_khz=_whole(stats.get("clock_rate")) or None,
        memory_bytes=_whole(stats.get("memory_size")) or None,
        memory_bandwidth=_whole(stats.get("memory_bandwidth")) or None,
    )
    vendor = stats.get("device_vendor")
    if vendor is None and kind == "gpu" and known.version is not None:
        vendor = "Nvidia"  # ROCm's collector has named the vendor from the first; CUPTI's old ones named none.
    name = stats.get("gpu_device_name") or stats.get("device_type_string")
    if kind == "sparse_core":
        name = plane.removeprefix("/device:")  # Its TPU's: what it is called otherwise is the chip's name.
    # On AMD GPUs the version is that of the instruction set (gfx942), which is another scale.
    is_nvidia = isinstance(vendor, str) and vendor.lower() == "nvidia"
    return Device(
        id=number,
        name=_name(name if isinstance(name, str) else None, vendor if isinstance(vendor, str) else "", kind, known),
        memory_bytes=known.memory_bytes,
        multiprocessors=known.multiprocessors,
        compute_capability=known.version if is_nvidia else None,
        kind=kind,
        clock_khz=known.clock_khz,
        memory_bandwidth=known.memory_bandwidth if is_nvidia else None,
    )


def _name(recorded: str | None, vendor: str, kind: str, known: Figures) -> str | None:
    """What a device is called: as recorded, else the only product of its figures, else by vendor and kind."""
    version = amd.version_of(recorded or "")
    if kind == "gpu" and vendor.lower() == "amd" and (recorded is None or version is not None):
        return amd.called(replace(known, version=version or known.version))
    if recorded is None and kind == "gpu" and vendor.lower() == "nvidia":
        recorded = product(NVIDIA, known)
    return recorded or (f"{vendor} {kind.upper()}" if vendor else None)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else None


class SpaceTracks:
    """The tracks of a trace, and the one of every event (-1 for events that become nothing)."""

    def __init__(self, view: View, ops: SpaceXlaOps, devices: Devices, held: t.Bools, threads: list[int]) -> None:
        """Add the tracks that hold any of the ``held`` events to the builder; ``threads`` says which lines are one."""
        self._view, self._devices, self._threads = view, devices, threads
        self._places: list[tuple[int, int]] = []
        self.track: t.I32 = view.of_lines(self._of_lines(held))
        self._place_ops(ops)
        places = np.array([*self._places, (-1, t.NULL)], np.int64)
        self._device, self._stream = places[:, 0].astype(np.int32), places[:, 1]

    def device(self, rows: t.Rows) -> t.I32:
        """The device of some events, -1 on the host."""
        return self._device[self.track[rows]]

    def stream(self, rows: t.Rows) -> t.I64:
        """The stream of some events, NULL where there is none."""
        return self._stream[self.track[rows]]

    def _of_lines(self, held: t.Bools) -> t.I32:
        lines = self._view.lines
        used = self._view.lines_with(held)
        track = np.full(len(lines), -1, np.int32)
        known: dict[tuple[str | int, ...], int] = {}
        keys, roles = self._identities(), self._view.role.tolist()
        # What made the calls of other lines comes first: the track is called after it.
        for line in sorted(range(len(lines)), key=lambda line: self._threads[line] != line):
            key, role = keys[self._threads[line]], roles[line]
            if not used[line]:
                continue
            if key not in known:
                device = self._devices.of_plane.get(int(lines.plane[line]), -1)
                is_stream = role == LineRole.STREAM
                stream = stream_number(lines.names[line], int(lines.id[line])) if is_stream else t.NULL
                known[key] = self._add(line, LineRole(role), device, stream)
            track[line] = known[key]
        return track

    def _identities(self) -> list[tuple[str | int, ...]]:
        """What lines of one track share: lines of equal id are one thread, unless nobody wrote ids."""
        view, lines = self._view, self._view.lines
        numbered = (np.isin(view.role, HOST_ROLES) & (lines.id != 0)).tolist()
        return [
            (view.planes[plane].thread_space, id) if is_thread else (view.space.planes.names[plane], id, name)
            for is_thread, plane, id, name in zip(
                numbered, lines.plane.tolist(), lines.id.tolist(), lines.names, strict=True
            )
        ]

    def _add(self, line: int, role: LineRole, device: int, stream: int) -> int:
        lines = self._view.lines
        if role in (LineRole.HOST, LineRole.HOST_OTHER):
            kind = t.TrackKind.HOST_THREAD
        elif role == LineRole.STREAM:
            kind = t.TrackKind.DEVICE_STREAM
        else:
            kind = t.TrackKind.OTHER if role == LineRole.OTHER else t.TrackKind.DEVICE_LINE
        self._places.append((device, stream))
        return self._view.builder.track(
            kind,
            self._view.space.planes.names[int(lines.plane[line])] or None,
            str(int(lines.id[line])),
            label=lines.displayed[line] or lines.names[line] or None,
            device=device if device >= 0 else None,
            stream=stream if stream != t.NULL else None,
        )

    def _place_ops(self, ops: SpaceXlaOps) -> None:
        """Ops of XLA:CPU leave their thread: a track per thread and device, whose stream is a small number."""
        rows = ops.on_processor
        if not rows.size:
            return
        each, first = dense(ops.ordinals, self.track[rows])
        streams: dict[int, int] = {}
        tracks = []
        for ordinal, row in zip(ops.ordinals[first].tolist(), rows[first].tolist(), strict=True):
            device = self._devices.of_processor[ordinal]
            stream = streams[device] = streams.get(device, -1) + 1
            tracks.append(self._add(int(self._view.events.line[row]), LineRole.STREAM, device, stream))
        self.track[rows] = np.array(tracks, np.int32)[each]
