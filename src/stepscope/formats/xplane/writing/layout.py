"""Which plane and line each track becomes, and the file made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from stepscope.analysis.device import DeviceActivity, device_activities
from stepscope.analysis.once import one_time_work
from stepscope.analysis.step_rows import device_rows
from stepscope.analysis.steps import find_markers
from stepscope.errors import OutputError
from stepscope.formats.restated import space_of
from stepscope.formats.xplane.stats import DERIVED, KIND, RUN
from stepscope.formats.xplane.writing.facts import Fact, facts_of, host_steps, producer_types
from stepscope.formats.xplane.writing.names import EventNames
from stepscope.formats.xplane.writing.plane import Plane, Value
from stepscope.formats.xplane.writing.wire import REFERENCE, SIGNED, StatColumn, encode_events, number_field
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.trace import Device, Trace
from stepscope.wire import field

HOST, _GPU = "/host:CPU", "/device:GPU:"
_HOSTNAMES = 4
_LONGEST_NS = (1 << 62) // 1000
"""Times from the first slice must fit in 64 bits as picoseconds, with room for sums."""

_STEPS = 0xDEADBEEF - (1 << 32)
"""Id of the line of steps (tsl/profiler/utils/trace_utils.h). XProf adds to it what it derives from a step's ops and
takes the longest event of a step for its time; all lines of a plane must begin at the same time for it."""

_ASIDE = _STEPS + 60
"""First id of lines that XProf draws but leaves out of steps and statistics (those it has for host offloading).
Annotations and waits drawn on a stream would stretch the steps it derives."""

_LINE_TYPES = {
    t.Kind.KERNEL: "Compute",
    t.Kind.COLLECTIVE: "Compute",
    t.Kind.MEMSET: "Memset",
    t.Kind.DEVICE_WAIT: "Wait",
    t.Kind.DEVICE_ANNOTATION: "Annotation",
}
_COPY_TYPES = {
    t.Direction.H2D: "MemcpyH2D",
    t.Direction.D2H: "MemcpyD2H",
    t.Direction.D2D: "MemcpyD2D",
    t.Direction.P2P: "MemcpyP2P",
}
_THREAD_NUMBER = regex(r"-?[1-9][0-9]{0,17}")
_VENDORS = (
    (regex(r"nvidia|tesla|geforce|quadro", re.I), "Nvidia"),
    (regex(r"amd|instinct|radeon", re.I), "AMD"),
)


def pieces(trace: Trace) -> Iterator[bytes | memoryview]:
    """The bytes of the trace as an ``XSpace``.

    Raises OutputError where there is nothing to write or times do not fit the format.
    """
    slices = trace.slices
    if not len(slices):
        raise OutputError("the trace has no slices, and XPlane holds little else")
    if int((slices.start_ns + slices.dur_ns).max()) - int(slices.start_ns.min()) >= _LONGEST_NS:
        raise OutputError("the trace is longer than 53 days, which XPlane's picoseconds cannot hold")
    for plane in _Layout(trace).planes():
        yield from plane.parts()
    if trace.info.host:
        yield field(_HOSTNAMES, trace.info.host)


class _Layout:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.activities = device_activities(trace)
        self.markers = find_markers(trace, self.activities, one_time_work(trace, self.activities))
        self.names = EventNames.of(trace, self.markers)
        self.facts = facts_of(trace, self.markers)
        self.producers = producer_types(trace, self.markers)
        self.begin = int(trace.slices.start_ns.min())
        self.devices = {device.id: device for device in trace.info.devices}
        self.bounds = np.searchsorted(trace.slices.track, np.arange(len(trace.tracks) + 1)).tolist()
        self.position = np.full(len(trace.slices), -1, np.int64)
        """Of a slice in its line; -1 until it has been written."""

    def planes(self) -> Iterator[Plane]:
        """Every plane: devices, also those that did nothing, the host, and when it all was."""
        groups: dict[str, list[int]] = {}
        described = {_plane_name(device): device for device in self.devices.values()}
        for name in described:
            groups[name] = []
        for track in np.flatnonzero(np.diff(self.bounds)).tolist():
            groups.setdefault(self._plane_of(track), []).append(track)
        for name, tracks in groups.items():
            plane = Plane(name)
            if name != HOST and name in described:
                plane.describe(_device_stats(described[name]))
            for line in self._lines(tracks):
                self._add_tracks(plane, line, streams=name.startswith(_GPU))
            slices = [np.arange(self.bounds[track], self.bounds[track + 1]) for track in tracks]
            self.names.describe(plane, np.concatenate([np.empty(0, np.intp), *slices]))
            for activity in self.activities:
                if name == f"{_GPU}{activity.device}":
                    self._add_windows(plane, activity)
            yield plane
        if self.trace.hlo:
            yield _programs(self.trace)
        environment = Plane("Task Environment")
        if (origin := self.trace.info.origin_epoch_ns) is not None:
            last = int((self.trace.slices.start_ns + self.trace.slices.dur_ns).max())
            environment.describe({"profile_start_time": origin, "profile_stop_time": origin + last})
        # Not msgspec's own JSON: profiles hold lone surrogates.
        environment.describe({RUN: json.dumps(msgspec.to_builtins(space_of(self.trace)))})
        yield environment

    def _plane_of(self, track: int) -> str:
        tracks = self.trace.tracks
        if tracks.kind[track] not in (t.TrackKind.DEVICE_STREAM, t.TrackKind.DEVICE_LINE):
            return HOST
        number = int(tracks.device[track])
        if number < 0:
            return "/device:CUSTOM:undetermined"
        return _plane_name(self.devices.get(number, Device(number)))

    def _lines(self, tracks: list[int]) -> Iterable[list[int]]:
        """Tracks that are one line: XLA:CPU's ops stand among the other events of the thread that ran them."""
        of, lines = self.trace.tracks, dict[tuple[int, ...], list[int]]()
        for track in tracks:
            on_thread = of.thread[track] >= 0 and self._plane_of(track) == HOST
            key = (int(of.process[track]), int(of.thread[track])) if on_thread else (track,)
            lines.setdefault(key, []).append(track)
        return lines.values()

    def _add_tracks(self, plane: Plane, tracks: list[int], streams: bool) -> None:
        of, first = self.trace.tracks, tracks[0]
        slices = np.concatenate([np.arange(self.bounds[track], self.bounds[track + 1]) for track in tracks])
        if len(tracks) > 1:
            of_slice = self.trace.slices
            slices = slices[np.lexsort((-of_slice.dur_ns[slices], of_slice.start_ns[slices]))]
        if not streams or of.kind[first] != t.TrackKind.DEVICE_STREAM:
            self._add_line(plane, self._thread_number(first), self._track_name(first), slices)
            return
        stream = int(of.stream[first])
        busy = np.isin(self.trace.slices.kind[slices], t.DEVICE_BUSY_KINDS)
        for id, part in ((first if stream == t.NULL else stream, slices[busy]), (_ASIDE, slices[~busy])):
            if part.size:
                types = ",".join(self._types(part))
                name = self._track_name(first) if stream == t.NULL else f"Stream #{stream}"
                self._add_line(plane, id, f"{name}({types})", part)

    def _add_windows(self, plane: Plane, activity: DeviceActivity) -> None:
        """Where steps begin and end on a device: XProf would leave out the wait before a step's first op."""
        rows, marked = device_rows(activity, self.markers), host_steps(self.trace, self.markers)
        step = np.array([-1 if step is None else step for step in rows.steps], np.int64)
        shown = np.flatnonzero((step >= 0) & marked[step] & (np.diff(rows.bounds) > 0))
        if not shown.size:
            return
        step, every = step[shown], np.arange(shown.size)
        names = len(self.names.example) + 1 + every
        for name, index in zip(names.tolist(), step.tolist(), strict=True):
            number = self.markers.numbers[index]
            plane.name_events(name, str(index if number is None else number), None, {KIND: DERIVED})
        marker = self.markers.slices[step].astype(np.int64)
        stats = [StatColumn(plane.stat("_ct"), SIGNED, every, self.producers[marker]),
                 StatColumn(plane.stat("_c"), SIGNED, every, marker)]  # fmt: skip
        start = rows.bounds[shown]
        events = encode_events(names, start - self.begin, rows.bounds[shown + 1] - start, stats)
        plane.add_line(_STEPS, "Steps", self.begin, events)

    def _add_line(self, plane: Plane, id: int, name: str, slices: t.Rows) -> None:
        of = self.trace.slices
        self.position[slices] = np.arange(slices.size)
        stats = [column for fact in self.facts if (column := self._column(plane, fact, slices)) is not None]
        events = encode_events(self.names.of_slice[slices], of.start_ns[slices] - self.begin, of.dur_ns[slices], stats)
        self.position[slices] = -1
        plane.add_line(id, name, self.begin, events)

    def _column(self, plane: Plane, fact: Fact, slices: t.Rows) -> StatColumn | None:
        low, high = np.searchsorted(fact.slices, (slices.min(), slices.max() + 1))
        rows, values = self.position[fact.slices[low:high]], fact.values[low:high]
        on_line = rows >= 0
        if not on_line.any():
            return None
        if not on_line.all():
            rows, values = rows[on_line], values[on_line]
        if (np.diff(rows) < 0).any():  # a line of several tracks
            order = np.argsort(rows)
            rows, values = rows[order], values[order]
        if fact.texts is None:
            return StatColumn(plane.stat(fact.stat), number_field(fact.stat), rows, values.astype(np.int64))
        return StatColumn(plane.stat(fact.stat), REFERENCE, rows, plane.texts(values, fact.texts))

    def _types(self, slices: t.Rows) -> list[str]:
        """What runs on a stream, in the words of XProf's collectors."""
        types: dict[str, None] = {}
        shown = self.trace.slices.kind[slices].astype(np.int64) * len(t.Direction) + self.names.direction[slices]
        for both in np.unique(shown).tolist():
            kind, direction = t.Kind(both // len(t.Direction)), t.Direction(both % len(t.Direction))
            copy = _COPY_TYPES.get(direction, "MemcpyOther")
            types[copy if kind == t.Kind.COPY else _LINE_TYPES.get(kind, "Other")] = None
        return list(types)

    def _track_name(self, track: int) -> str:
        tracks, strings = self.trace.tracks, self.trace.strings
        label, thread, process = (
            strings[code] if code >= 0 else ""
            for code in (tracks.label[track], tracks.thread[track], tracks.process[track])
        )
        if tracks.kind[track] == t.TrackKind.OTHER:
            return label or "/".join(part for part in (process, thread) if part)
        return label or (f"Host Threads/{thread}" if tracks.kind[track] == t.TrackKind.HOST_THREAD else thread)

    def _thread_number(self, track: int) -> int:
        """The id of a thread's line: the thread's own where it is a number, else the track's."""
        code = int(self.trace.tracks.thread[track])
        text = self.trace.strings[code] if code >= 0 else ""
        return int(text) if _THREAD_NUMBER.fullmatch(text) else track + 1


def _programs(trace: Trace) -> Plane:
    """The compiled programs, where XProf looks for them."""
    plane = Plane("/host:metadata")
    rows = trace.table("programs").select("program", "module").rows()
    for id, ((program, module), hlo) in enumerate(zip(rows, trace.hlo, strict=True), 1):
        if hlo:
            known = "" if program is None else f"({program % (1 << 64)})"
            plane.name_events(id, f"{module}{known}", None, {"Hlo Proto": hlo})
    return plane


def _plane_name(device: Device) -> str:
    kind = device.kind.upper()
    if kind == "CPU":
        return HOST
    return f"/device:{kind if kind in ('GPU', 'TPU') else f'CUSTOM:{kind}'}:{device.id}"


def _device_stats(device: Device) -> dict[str, Value]:
    name, capability = device.name, device.compute_capability
    vendor = next((vendor for words, vendor in _VENDORS if name and words.search(name)), None)
    stats: dict[str, Value | None] = {
        "device_vendor": vendor,
        "gpu_device_name": name,
        "clock_rate": device.clock_khz,
        "core_count": device.multiprocessors,
        "memory_bandwidth": device.memory_bandwidth,
        "memory_size": device.memory_bytes,
        "compute_cap_major": capability[0] if capability else None,
        "compute_cap_minor": capability[1] if capability else None,
    }
    return {stat: value for stat, value in stats.items() if value is not None}
