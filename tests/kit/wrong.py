"""Plausible but wrong: what exporters, converters and full buffers make of a good profile, and nothing reports.

Each way is a function of the parsed events of a Kineto profile and the length of a step in its unit. It returns the
events as the file would then hold them.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

Event = dict[str, Any]
Way = Callable[[list[Event], float], list[Event]]

_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation", "Kernel", "Memcpy", "Memset"}
_WORK = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
_CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}
_FLOWS = "stf"


def _is_device(event: Event) -> bool:
    return event.get("cat") in _DEVICE


def _moved(event: Event, by: float) -> Event:
    return {**event, "ts": event["ts"] + by} if "ts" in event else event


def _timed(events: list[Event]) -> list[float]:
    return [event["ts"] for event in events if "ts" in event and event.get("ph") == "X"]


def device_clock_late(events: list[Event], step: float) -> list[Event]:
    return [_moved(event, step / 2) if _is_device(event) else event for event in events]


def device_clock_early(events: list[Event], step: float) -> list[Event]:
    return [_moved(event, -step / 2) if _is_device(event) else event for event in events]


def device_clock_a_step_late(events: list[Event], step: float) -> list[Event]:
    return [_moved(event, step) if _is_device(event) else event for event in events]


def device_clock_a_step_early(events: list[Event], step: float) -> list[Event]:
    return [_moved(event, -step) if _is_device(event) else event for event in events]


def device_clock_steps_late(events: list[Event], step: float) -> list[Event]:
    """By two steps and a half."""
    return [_moved(event, 2.5 * step) if _is_device(event) else event for event in events]


def device_clock_steps_early(events: list[Event], step: float) -> list[Event]:
    return [_moved(event, -2.5 * step) if _is_device(event) else event for event in events]


def _stretched(events: list[Event], factor: float) -> list[Event]:
    first = min(_timed(events))
    return [
        {**event, "ts": first + (event["ts"] - first) * factor, "dur": event.get("dur", 0) * factor}
        if _is_device(event) and "ts" in event
        else event
        for event in events
    ]


def device_clock_fast(events: list[Event], _: float) -> list[Event]:
    """A drift of 5 %: each second of the device is longer."""
    return _stretched(events, 1.05)


def device_clock_slow(events: list[Event], _: float) -> list[Event]:
    return _stretched(events, 0.95)


def device_clock_little_fast(events: list[Event], _: float) -> list[Event]:
    """A drift of 1 %."""
    return _stretched(events, 1.01)


def device_clock_little_slow(events: list[Event], _: float) -> list[Event]:
    return _stretched(events, 0.99)


def device_clock_rather_fast(events: list[Event], _: float) -> list[Event]:
    """A drift of 2 %."""
    return _stretched(events, 1.02)


def device_in_ns(events: list[Event], _: float) -> list[Event]:
    """Times of the device are nanoseconds in a file of microseconds."""
    return _stretched(events, 1000)


def device_durations_in_ns(events: list[Event], _: float) -> list[Event]:
    return [
        {**event, "dur": event["dur"] * 1000} if _is_device(event) and "dur" in event else event for event in events
    ]


def all_twice(events: list[Event], _: float) -> list[Event]:
    return [*events, *events]


def device_twice(events: list[Event], _: float) -> list[Event]:
    return [*events, *(event for event in events if _is_device(event))]


def two_ranks_in_one(events: list[Event], step: float) -> list[Event]:
    """Two files were joined: the ids of processes, threads and streams are the same."""
    return [*events, *(_moved(event, step / 5) for event in events if event.get("ph") != "M")]


def last_kernels_lost(events: list[Event], _: float) -> list[Event]:
    """The device's buffer was full: its last 40 % are missing."""
    begun = sorted(event["ts"] for event in events if event.get("cat") in _WORK)
    until = begun[int(0.6 * len(begun))]
    return [event for event in events if not (_is_device(event) and event["ts"] >= until)]


def launches_lost(events: list[Event], _: float) -> list[Event]:
    chance = random.Random(1)
    return [event for event in events if not (event.get("cat") in _CALLS and chance.random() < 0.3)]


def correlations_off(events: list[Event], _: float) -> list[Event]:
    """Each op of the device carries the number of the call after its own."""
    numbers = sorted({event["args"]["correlation"] for event in events if event.get("cat") in _CALLS and _has(event)})
    following = dict(pairwise(numbers))
    return [
        {**event, "args": {**event["args"], "correlation": following.get(event["args"]["correlation"], -1)}}
        if event.get("cat") in _WORK and _has(event)
        else event
        for event in events
        if event.get("ph") not in _FLOWS
    ]


def _has(event: Event) -> bool:
    return "correlation" in event.get("args", {})


def markers_shifted(events: list[Event], step: float) -> list[Event]:
    return [
        _moved(event, step / 2) if str(event.get("name", "")).startswith("ProfilerStep") else event for event in events
    ]


def no_metadata(events: list[Event], _: float) -> list[Event]:
    return [event for event in events if event.get("ph") != "M"]


def unsorted(events: list[Event], _: float) -> list[Event]:
    mixed = list(events)
    random.Random(1).shuffle(mixed)
    return mixed


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        device_clock_late, device_clock_early, device_clock_a_step_late, device_clock_a_step_early,
        device_clock_steps_late, device_clock_steps_early, device_clock_little_fast, device_clock_little_slow,
        device_clock_rather_fast, device_clock_fast, device_clock_slow, device_in_ns, device_durations_in_ns,
        all_twice, device_twice, two_ranks_in_one, last_kernels_lost, launches_lost, correlations_off,
        markers_shifted, no_metadata, unsorted,
    )
}  # fmt: skip


def made_wrong(data: bytes, way: str) -> bytes:
    """A Kineto profile (gzipped or not), wrong in one way."""
    root = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    marks = sorted(
        (event for event in root["traceEvents"] if str(event.get("name", "")).startswith("ProfilerStep#")),
        key=lambda event: event["ts"],
    )
    step = sorted(event["dur"] for event in marks)[len(marks) // 2]
    root["traceEvents"] = WAYS[way](root["traceEvents"], step)
    return json.dumps(root).encode()
