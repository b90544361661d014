"""The rows of a trace while they are collected: slices table by table, tracks as they are first met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.formats.nsys.export import EventRows
from stepscope.formats.nsys.strings import StringIds
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.tables import I32, I64, NULL, U8, Kind, TrackKind


class Draft:
    """Slices of all tables in one numbering, and the tracks they lie on."""

    def __init__(self, builder: TraceBuilder, strings: StringIds, labels: dict[int, str]) -> None:
        self.builder = builder
        self.strings = strings
        self.labels = labels
        """Names of threads by ``globalTid``."""
        self.count = 0
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []
        self._tracks: dict[tuple[str, int, int], int] = {}

    def slices(
        self,
        events: EventRows,
        track: I32,
        name: I32,
        kind: U8 | Kind,
        category: I32 | str,
        correlation: I64 | None = None,
    ) -> I32:
        """Add rows as slices; returns their ids."""
        size = len(events)
        self._parts.append(
            (
                track,
                events.start,
                events.end,
                name,
                np.full(size, kind, np.uint8) if isinstance(kind, Kind) else kind,
                np.full(size, self.builder.text(category), np.int32) if isinstance(category, str) else category,
                np.full(size, NULL, np.int64) if correlation is None else correlation,
                events.rows.offset,
            )
        )
        first, self.count = self.count, self.count + size
        return np.arange(first, self.count, dtype=np.int32)

    def columns(self) -> list[npt.NDArray[Any]]:
        """Track, start, end, name, kind, category, correlation and offset of every slice, by id; given once."""
        parts = [list(column) for column in zip(*self._parts, strict=True)]
        self._parts.clear()
        return [np.concatenate(parts.pop(0)) for _ in range(len(parts))]

    def host_tracks(self, threads: I64, lane: str = "") -> I32:
        """The track of each ``globalTid``; ``lane`` names one of its own beside the thread's."""
        used, which = dense(threads)
        return np.array([self._host_track(thread, lane) for thread in used.tolist()], np.int32)[which]

    def device_tracks(self, devices: I64, streams: I64) -> I32:
        """The track of each pair of device and stream."""
        first, which = groups(devices, streams)
        pairs = zip(devices[first].tolist(), streams[first].tolist(), strict=True)
        return np.array([self._device_track(device, stream) for device, stream in pairs], np.int32)[which]

    def by_name(self, codes: I32, function: Callable[[str], int], dtype: type[Any]) -> npt.NDArray[Any]:
        """A function of each row's name, asked once per name."""
        used, which = dense(codes)
        return np.array([function(self.builder.string(code)) for code in used.tolist()], dtype)[which]

    def _host_track(self, thread: int, lane: str) -> int:
        key = (lane, thread, NULL)
        if key not in self._tracks:
            absent = thread == NULL
            self._tracks[key] = self.builder.track(
                TrackKind.OTHER if lane or absent else TrackKind.HOST_THREAD,
                None if absent else str(thread >> 24 & 0xFFFFFF),
                None if absent else str(thread & 0xFFFFFF),
                label=": ".join(filter(None, (self.labels.get(thread), lane))) or None,
            )
        return self._tracks[key]

    def _device_track(self, device: int, stream: int) -> int:
        key = ("device", device, stream)
        if key not in self._tracks:
            known = None if stream == NULL else stream
            self._tracks[key] = self.builder.track(
                TrackKind.DEVICE_STREAM,
                None if device < 0 else str(device),
                None if known is None else str(known),
                label=None if known is None else f"stream {known}",
                device=None if device < 0 else device,
                stream=known,
            )
        return self._tracks[key]


def dense(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], t.Rows]:
    """The distinct values of a column, rising, and which of them each row has."""
    if values.size == 0:
        return values, np.empty(0, np.intp)
    low, high = int(values.min()), int(values.max())
    if high - low > _COUNTED:
        return np.unique(values, return_inverse=True)
    # Counting beats sorting where values lie close together, as numbers of devices, streams and blocks do.
    seen = np.bincount(values - low, minlength=high - low + 1) > 0
    return np.flatnonzero(seen).astype(values.dtype) + low, (np.cumsum(seen) - 1)[values - low]


_COUNTED = 1 << 20


def groups(*columns: npt.NDArray[Any]) -> tuple[t.Rows, t.Rows]:
    """A row of each distinct combination of values, and which combination each row has."""
    which: t.Rows = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        used, place = dense(column)
        which = dense(which * used.size + place)[1]
    first = np.zeros(int(which.max(initial=-1)) + 1, np.intp)
    first[which] = np.arange(which.size)
    return first, which
