"""A real profile with a stall put into it: a known delay of a known kind, in every step that is used.

Steps are named by their markers, those of any framework; ``None`` is the whole profile, for one that has none.

At an instant at which the device was idle and the loop's thread between two ops, time is stretched: all host threads do
nothing new for ``delay``, whatever they did later comes that much later, and so does what they launched. The stretch
holds one range on the loop's thread that says what it was. Nothing was queued, so the device loses exactly that time.

A synchronisation is more than a range: a kernel as long as the delay is launched, the host waits for it and then works
as long. Without the wait the kernel would have hidden that work, so the delay is what the wait costs. A copy is one
from memory of the host's for which its call blocks. Launching is many ops, each with a kernel of a microsecond.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.analysis.categories import Category

Event = dict[str, Any]
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}
DROPPED = {"gpu_user_annotation", "ac2g"}
CALLS = {"cuda_runtime", "cuda_driver", "hip_runtime"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of stall as profiles show it."""

    category: Category
    cat: str
    name: str


KINDS = {
    "input": Kind(Category.INPUT, "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    "gc": Kind(Category.GC, "user_annotation", "Python GC"),
    "compile": Kind(Category.COMPILE, "user_annotation", "_compile.compile_inner (dynamo_timed)"),
    "python": Kind(Category.PYTHON, "python_function", "callbacks.py(31): log_metrics"),
    "checkpoint": Kind(Category.CHECKPOINT_IO, "python_function", "torch/serialization.py(944): save"),
    "allocator": Kind(Category.ALLOCATOR, "cuda_runtime", "cudaMalloc"),
    "sync": Kind(Category.SYNC, "cpu_op", "aten::item"),
    "copy": Kind(Category.COPY_H2D, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"),
    "launch": Kind(Category.LAUNCH, "cpu_op", "aten::mul_"),
}
FREE_US = 100
CALL_US, LATENCY_US, RETURN_US = 5, 3, 5
OP_US = 25
"""One of the ops that only launch; the device waits for all of it but the microsecond that its kernel takes."""


def stretch_us(kind: Kind, delay_us: int) -> int:
    """How much longer a step gets."""
    if kind.category is Category.SYNC:
        return delay_us + CALL_US + LATENCY_US + delay_us + RETURN_US
    if kind.category is Category.COPY_H2D:
        return CALL_US + delay_us
    return delay_us


def injected(path: Path, kind: Kind, delay_us: int, steps: Sequence[str | None]) -> bytes | None:
    """The profile with one stall in each of some steps; None where one has no idle instant to put it at."""
    root = json.loads(gzip.decompress(path.read_bytes()))
    events = [_modern(event) for event in root["traceEvents"] if event.get("cat") not in DROPPED]
    marks = [_mark(events, step) for step in steps]
    found = _instants(events, marks)
    if None in found:
        return None
    instants = [at for at in found if at is not None]
    launched = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in CALLS and "correlation" in event.get("args", {})
    }
    stretch = stretch_us(kind, delay_us)
    for event in events:
        if "ts" not in event or event.get("ph") == "M":
            continue
        begun = event["ts"]
        if event.get("cat") in DEVICE:
            begun = launched.get(event.get("args", {}).get("correlation"), begun)
        elif "dur" in event:
            inside = bisect_left(instants, event["ts"] + event["dur"]) - bisect_right(instants, event["ts"])
            event["dur"] += stretch * max(inside, 0)
        event["ts"] += stretch * bisect_right(instants, begun)
    place = {"pid": marks[0]["pid"], "tid": marks[0]["tid"], "ph": "X", "args": {}}
    kernel = next(event for event in events if event.get("cat") == "kernel")
    first = FIRST_CORRELATION
    for number, instant in enumerate(instants):
        at = instant + stretch * number
        made = _stall(kind, place, kernel, at, delay_us, first)
        first += len(made)
        events += made
    root["traceEvents"] = events
    return json.dumps(root).encode()


FIRST_CORRELATION = 2_000_000_000


def _stall(kind: Kind, place: Event, kernel: Event, at: float, delay_us: int, correlation: int) -> list[Event]:
    if kind.category is Category.SYNC:
        return _wait(place, kernel, at, delay_us, correlation)
    if kind.category is Category.COPY_H2D:
        return _copy(kind, place, kernel, at, delay_us, correlation)
    if kind.category is Category.LAUNCH:
        return [
            event
            for number in range(delay_us // OP_US)
            for event in _launch(kind, place, kernel, at + number * OP_US, correlation + number)
        ]
    args = {"args": {"correlation": correlation}} if kind.cat in CALLS else {}
    return [{**place, "cat": kind.cat, "name": kind.name, "ts": at, "dur": delay_us, **args}]


def _launch(kind: Kind, place: Event, kernel: Event, at: float, correlation: int) -> list[Event]:
    """An op that ends with its launch; its kernel is done when the next op begins."""
    begun = at + OP_US - LATENCY_US - CALL_US - 1
    args = {**kernel["args"], "correlation": correlation}
    call = {**place, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begun, "dur": CALL_US}
    return [
        {**place, "cat": kind.cat, "name": kind.name, "ts": at, "dur": OP_US - LATENCY_US - 1},
        {**call, "args": {"correlation": correlation}},
        {**kernel, "ts": begun + CALL_US + LATENCY_US, "dur": 1, "name": "injected_kernel", "args": args},
    ]


def _copy(kind: Kind, place: Event, kernel: Event, at: float, delay_us: int, correlation: int) -> list[Event]:
    """A copy in whose call the host is blocked until it is done."""
    call = {**place, "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "ts": at, "dur": CALL_US + delay_us}
    args = {
        **{key: kernel["args"][key] for key in ("device", "context", "stream") if key in kernel["args"]},
        "correlation": correlation,
        "bytes": 12_000 * delay_us,
    }
    made = {**kernel, "cat": kind.cat, "name": kind.name, "ts": at + CALL_US, "dur": delay_us, "args": args}
    return [{**call, "args": {"correlation": correlation}}, made]


def _wait(place: Event, kernel: Event, at: float, delay_us: int, correlation: int) -> list[Event]:
    """A kernel, the wait for it, and host work behind that."""
    begun = at + CALL_US + LATENCY_US
    waited = begun + delay_us + RETURN_US - at - CALL_US
    call = {**place, "cat": "cuda_runtime"}
    ids = {"args": {"correlation": correlation}}
    behind = at + CALL_US + waited
    args = {**kernel["args"], "correlation": correlation}
    return [
        {**call, "name": "cudaLaunchKernel", "ts": at, "dur": CALL_US, **ids},
        {**kernel, "ts": begun, "dur": delay_us, "name": "injected_kernel", "args": args},
        {**place, "cat": "cpu_op", "name": "aten::item", "ts": at + CALL_US, "dur": waited},
        {
            **call,
            "name": "cudaStreamSynchronize",
            "ts": at + CALL_US,
            "dur": waited,
            "args": {"correlation": correlation + 1},
        },
        {**place, "cat": "cpu_op", "name": "aten::view", "ts": behind, "dur": delay_us},
    ]


def _modern(event: Event) -> Event:
    """With the categories of today."""
    spelled = {"Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Runtime": "cuda_runtime"}
    return {**event, "cat": spelled[event["cat"]]} if event.get("cat") in spelled else event


def _mark(events: list[Event], step: str | None) -> Event:
    """The range of a step on its thread; without a marker all of the thread that has most ops, behind what the program
    calls its warm-up."""
    if step is not None:
        return next(
            event
            for event in events
            if event.get("name") == step and "dur" in event and event.get("cat") != "gpu_user_annotation"
        )
    ops = [event for event in events if event.get("cat") in ("cpu_op", "Operator") and "dur" in event]
    (((pid, tid), _),) = Counter((event["pid"], event["tid"]) for event in ops).most_common(1)
    warm = [event["ts"] + event["dur"] for event in events if _is_warm_up(event)]
    begun, end = max([min(event["ts"] for event in ops), *warm]), max(event["ts"] + event["dur"] for event in ops)
    return {"pid": pid, "tid": tid, "ts": begun, "dur": end - begun}


def _is_warm_up(event: Event) -> bool:
    return event.get("cat") == "user_annotation" and "dur" in event and "warmup" in event["name"].lower()


def _instants(events: list[Event], marks: list[Event]) -> list[float | None]:
    """One per step: where an outermost op of the loop's thread that launches begins, with the device idle."""
    ends = {}
    for event in events:
        if event.get("cat") in DEVICE - {"cuda_sync"}:
            correlation = event["args"].get("correlation")
            ends[correlation] = max(ends.get(correlation, 0), event["ts"] + event["dur"])
    calls = sorted(
        (event["ts"], ends[event["args"]["correlation"]])
        for event in events
        if event.get("cat") in CALLS and event.get("args", {}).get("correlation") in ends
    )
    latest: list[float] = []
    for _, end in calls:
        latest.append(max(end, latest[-1]) if latest else end)
    starts = [start for start, _ in calls]
    chosen: list[float | None] = []
    for mark in marks:
        idle = [(at, free) for at, free in _outermost(events, mark) if _idle(at, starts, latest)]
        # Time of the host's own before the op would count with what is put there.
        chosen.append(next((at for at, free in idle if free <= FREE_US), idle[0][0] if idle else None))
    return chosen


def _outermost(events: list[Event], mark: Event) -> list[tuple[float, float]]:
    """Where outermost ops of a step's thread begin, in order, and how long the thread was in none before."""
    place = (mark["pid"], mark["tid"])
    inside = sorted(
        (event["ts"], -event["dur"])
        for event in events
        if event.get("cat") in ("cpu_op", "Operator", *CALLS)
        and (event["pid"], event["tid"]) == place
        and "dur" in event
        and mark["ts"] < event["ts"] < mark["ts"] + mark["dur"]
    )
    found, reach = [], mark["ts"]
    for start, negative in inside:
        if start > reach:
            found.append((start, start - reach))
        reach = max(reach, start - negative)
    return found


def _idle(at: float, starts: list[float], latest: list[float]) -> bool:
    """Whether all that was launched before an instant is done, and something is launched behind it."""
    before = bisect_left(starts, at)
    return 0 < before < len(starts) and latest[before - 1] <= at
