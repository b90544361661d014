"""Neutral events as the objects Kineto puts in ``traceEvents``, as each generation and vendor spells it.

Keys, their order and their arguments follow files written by Kineto of the year named and its source
(``libkineto/src/output_json.cpp``). ``kineto_form`` says how the generations differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kit.events import CALLS, DEVICE_WORK, Event, Stream, Thread, Track, enclosing
from tests.kit.kineto_form import BASE_NS, WHOLE_MICROSECONDS, ZERO_NS, Form

HOST_PID = 4242


@dataclass(frozen=True, slots=True)
class Number:
    """A number as text, so that no float comes between."""

    text: str


_OLD_CATEGORIES = {
    "cpu_op": "Operator",
    "user_annotation": "Operator",
    "cuda_runtime": "Runtime",
    "cuda_driver": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}
_HIP_CALLS = {
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cuLaunchKernelEx": "hipExtModuleLaunchKernel",
    "cudaLaunchKernelExC": "hipExtLaunchKernel",
}
_CBID = {
    "cudaLaunchKernel": 211,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaDeviceSynchronize": 165,
    "cudaEventRecord": 135,
    "cudaStreamWaitEvent": 147,
    "cuLaunchKernel": 307,
}


def representable(event: Event, form: Form) -> bool:
    """Whether that writer recorded such an event at all.

    In 2021 there were no Python frames, device waits, overhead rows or device annotations; AMD has no device
    waits.
    """
    if form.generation == "2021":
        return event.cat in _OLD_CATEGORIES or event.cat == "memory"
    return not (form.vendor == "amd" and event.cat == "cuda_sync")


def elements(events: Sequence[Event], form: Form) -> list[dict[str, Any]]:
    """The objects of ``traceEvents``, in the writer's order.

    Raises ValueError where a time does not fit a generation that writes whole microseconds.
    """
    speller = _Speller([event for event in events if representable(event, form)], form, events)
    body = [element for position in range(len(speller.events)) for element in speller.spell(position)]
    names, marks = speller.metadata(), speller.marks()
    return names + body + marks if form.style == "head" else body + names + marks


class _Speller:
    """Writes one event after another, knowing what is around it."""

    def __init__(self, events: Sequence[Event], form: Form, recorded: Sequence[Event]) -> None:
        self.events, self.form = events, form
        self.threads = _thread_ids(recorded)
        self.worked = {event.correlation for event in events if event.cat in DEVICE_WORK}
        self.external = _external_ids(events)
        self.frames = enclosing(events, ("python_function",))
        self.stacks = _call_stacks(recorded, events) if form.generation == "2021" else {}

    def spell(self, position: int) -> list[dict[str, Any]]:
        """The event and the flow ends bound to it."""
        event = self.events[position]
        pid, tid = self.place(event.track)
        name = _copy_name(event, self.form) if event.cat == "gpu_memcpy" else _call_name(event, self.form)
        element: dict[str, Any] = {"ph": "i" if event.dur_ns is None else "X"}
        if not (event.cat == "memory" and self.form.generation == "2021"):
            element["cat"] = self.category(event)
        if event.dur_ns is None:
            element["s"] = "t"
        element |= {"name": name, "pid": pid, "tid": tid, "ts": self.time(event.start_ns)}
        if event.dur_ns is not None:
            element["dur"] = self.duration(event.dur_ns)
        args = self.args(position)
        if args:
            element["args"] = args
        return [element, *self.flows(event, pid, tid)]

    def place(self, track: Track) -> tuple[int, int | str]:
        """Process and thread as the generation writes them."""
        old = self.form.generation == "2021"
        if isinstance(track, Stream):
            return track.device, f"stream {track.stream}" if old else track.stream
        if track.name == "overhead":
            return -1, 0
        tid = self.threads[track]
        return HOST_PID, str(tid) if old else tid

    def category(self, event: Event) -> str:
        if event.cat == "memory":
            return "cpu_instant_event"
        if self.form.generation == "2021":
            return _OLD_CATEGORIES[event.cat]
        return "cuda_runtime" if event.cat == "cuda_driver" and self.form.vendor == "amd" else event.cat

    def time(self, ns: int) -> Number:
        """A point in time, as microseconds in decimal."""
        base = BASE_NS if self.form.generation == "2025" else 0
        return self._microseconds(ns + ZERO_NS[self.form.generation] - base)

    def duration(self, ns: int) -> Number:
        """A duration, as microseconds in decimal."""
        return self._microseconds(ns)

    def _microseconds(self, ns: int) -> Number:
        sign, (whole, rest) = "-" if ns < 0 else "", divmod(abs(ns), 1000)
        if self.form.generation in WHOLE_MICROSECONDS:
            if rest:
                raise ValueError(f"{ns} ns is no whole microsecond, which is all {self.form.generation} can write")
            return Number(f"{sign}{whole}")
        decimals = f"{rest:03}"
        # json.dump writes a float as short as it can.
        shown = decimals if self.form.style in ("kineto", "head") else decimals.rstrip("0") or "0"
        return Number(f"{sign}{whole}.{shown}")

    def flows(self, event: Event, pid: int, tid: int | str) -> list[dict[str, Any]]:
        """Launch arrows come from the correlation.

        A call that launched nothing ends one, as Kineto has it.
        """
        old = self.form.generation == "2021"
        ends: list[tuple[int, bool, str, str]] = []
        if event.correlation is not None and (event.cat in CALLS or event.cat in DEVICE_WORK):
            starts = event.cat in CALLS and event.correlation in self.worked
            if not old or event.correlation in self.worked:
                ends.append((event.correlation, starts, *(("async", "launch") if old else ("ac2g", "ac2g"))))
        for flow in event.flows:
            ends.append((flow.id, flow.starts, *(("forward_backward", "fwd_bwd") if old else ("fwdbwd", "fwdbwd"))))
        thread = int(tid) if isinstance(tid, str) and tid.isdigit() else tid
        return [
            {
                "ph": "s" if starts else "f",
                "id": number,
                "pid": pid,
                "tid": thread,
                "ts": self.time(event.start_ns),
                "cat": cat,
                "name": name,
            }
            | ({} if starts else {"bp": "e"})
            for number, starts, cat, name in ends
        ]

    def args(self, position: int) -> dict[str, Any]:
        event = self.events[position]
        return _ARGS[event.cat](self, position, event) | {
            key: value for key, value in event.args.items() if key not in ("direction", "memory")
        }

    def external_args(self, position: int, event: Event) -> dict[str, Any]:
        key = "external id" if self.form.generation == "2021" else "External id"
        if self.form.generation == "2022":
            return {} if event.correlation is None else {key: event.correlation}
        return {key: self.external[position]} if position in self.external else {}

    def op_args(self, position: int, event: Event) -> dict[str, Any]:
        number = self.external[position]
        if self.form.generation == "2021":
            known = {
                "Device": HOST_PID,
                "External id": number,
                "Trace name": "PyTorch Profiler",
                "Trace iteration": 0,
            }
            return known | ({"Call stack": self.stacks[position]} if position in self.stacks else {})
        recorded = {} if self.form.generation == "2022" else {"Record function id": 0}
        return {"External id": number, **recorded, "Ev Idx": number - 1}

    def frame_args(self, position: int, event: Event) -> dict[str, Any]:
        if event.name == "Python GC":
            return {"Ev Idx": position}
        parent = self.frames.get(position)
        return {
            "Python parent id": None if parent is None else parent + 1,
            "Python id": position + 1,
            "Ev Idx": position,
        }

    def call_args(self, position: int, event: Event) -> dict[str, Any]:
        external = self.external_args(position, event)
        number = {} if event.correlation is None else {"correlation": event.correlation}
        if self.form.vendor == "amd":
            return external | {"cid": _CBID.get(event.name, 0)} | number
        known = {"cbid": _CBID.get(event.name, 0)} | number
        return known | external if self.form.generation == "2021" else external | known

    def work_args(self, position: int, event: Event) -> dict[str, Any]:
        assert isinstance(event.track, Stream)
        external, amd = self.external_args(position, event), self.form.vendor == "amd"
        place = {"device": event.track.device} | ({} if amd else {"context": 1}) | {"stream": event.track.stream}
        number = {} if event.correlation is None else {"correlation": event.correlation}
        known = place | number | (_amd_work(event) if amd else _nvidia_work(event))
        if event.cat == "kernel" and not amd:
            known = {"queued": 0} | known
        return known | external if self.form.generation == "2021" else external | known

    def wait_args(self, position: int, event: Event) -> dict[str, Any]:
        assert isinstance(event.track, Stream)
        number = {} if event.correlation is None else {"correlation": event.correlation}
        return (
            self.external_args(position, event)
            | {"cuda_sync_kind": event.name, "stream": event.track.stream}
            | number
            | {"device": event.track.device, "context": 1}
        )

    def no_args(self, position: int, event: Event) -> dict[str, Any]:
        return {}

    def metadata(self) -> list[dict[str, Any]]:
        """The names of processes and threads."""
        zero, made = self.time(0), []
        devices = sorted({event.track.device for event in self.events if isinstance(event.track, Stream)})
        for pid, label in [(HOST_PID, "CPU"), *((device, f"GPU {device}") for device in devices)]:
            made.append(_named("process_name", zero, (pid, 0), {"name": "python3"}))
            made.append(_named("process_labels", zero, (pid, 0), {"labels": label}))
            made.append(_named("process_sort_index", zero, (pid, 0), {"sort_index": pid}))
        for track in sorted({event.track for event in self.events}, key=str):
            pid, tid = self.place(track)
            if isinstance(track, Stream):
                name = f"stream {track.stream} "
            else:
                name = f"thread {tid} ({'python3' if track.name == 'main' else track.name})"
            made.append(_named("thread_name", zero, (pid, tid), {"name": name}))
            made.append(_named("thread_sort_index", zero, (pid, tid), {"sort_index": tid}))
        # The oldest generation did not sort.
        return [one for one in made if not (self.form.generation == "2021" and one["name"].endswith("sort_index"))]

    def marks(self) -> list[dict[str, Any]]:
        """The profiler's own span, and the instants at its ends."""
        end = max((event.end_ns for event in self.events), default=0)
        who, pid = "PyTorch Profiler", "Traces" if self.form.generation == "2021" else "Spans"
        return [
            {
                "ph": "X",
                "cat": "Trace",
                "ts": self.time(0),
                "dur": self.duration(end),
                "pid": pid,
                "tid": who,
                "name": f"{who} (0)",
                "args": {"Op count": 0},
            },
            {
                "name": f"Iteration Start: {who}",
                "ph": "i",
                "s": "g",
                "pid": "Traces",
                "tid": f"Trace {who}",
                "ts": self.time(0),
            },
            {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": self.time(end)},
        ]


_ARGS: dict[str, Callable[[_Speller, int, Event], dict[str, Any]]] = {
    "cpu_op": _Speller.op_args,
    "user_annotation": _Speller.op_args,
    "python_function": _Speller.frame_args,
    "cuda_runtime": _Speller.call_args,
    "cuda_driver": _Speller.call_args,
    "kernel": _Speller.work_args,
    "gpu_memcpy": _Speller.work_args,
    "gpu_memset": _Speller.work_args,
    "cuda_sync": _Speller.wait_args,
    "overhead": _Speller.no_args,
    "memory": _Speller.no_args,
    "gpu_user_annotation": _Speller.no_args,
}


def _named(what: str, time: Number, place: tuple[int, int | str], args: dict[str, Any]) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": time, "pid": place[0], "tid": place[1], "args": args}


def _nvidia_work(event: Event) -> dict[str, Any]:
    if event.cat == "kernel":
        return {
            "registers per thread": 32,
            "shared memory": 0,
            "blocks per SM": Number("1.5"),
            "warps per SM": Number("6.0"),
            "grid": [160, 1, 1],
            "block": [128, 1, 1],
            "est. achieved occupancy %": 50,
        }
    size = event.args.get("bytes")
    if size is None or not event.dur_ns:
        return {}
    return {"bytes": size, "memory bandwidth (GB/s)": Number(f"{size / event.dur_ns:.6f}")}


def _amd_work(event: Event) -> dict[str, Any]:
    if event.cat == "kernel":
        return {"kind": "Dispatch Kernel", "grid": [160, 1, 1], "block": [128, 1, 1]}
    return {"kind": event.args.get("direction", "Device")}


def _call_name(event: Event, form: Form) -> str:
    if form.vendor == "nvidia" or event.cat not in CALLS:
        return event.name
    return _HIP_CALLS.get(event.name, event.name.replace("cuda", "hip", 1))


def _copy_name(event: Event, form: Form) -> str:
    direction = event.args["direction"]
    host = "Host" if form.vendor == "amd" else event.args.get("memory", "Pageable")
    ends = {"H": host, "D": "Device", "P": "Device"}
    return f"Memcpy {direction} ({ends[direction[0]]} -> {ends[direction[-1]]})"


def _thread_ids(events: Sequence[Event]) -> dict[Track, int]:
    names = dict.fromkeys(event.track for event in events if isinstance(event.track, Thread))
    others = [track for track in names if track != Thread("main") and track != Thread("overhead")]
    return {Thread("main"): HOST_PID, **{track: HOST_PID + 1 + i for i, track in enumerate(others)}}


def _external_ids(events: Sequence[Event]) -> dict[int, int]:
    """Number the host ops; a call belongs to the innermost op around it, and device work to the call's op."""
    numbers = {
        position: count + 1
        for count, position in enumerate(
            i for i, event in enumerate(events) if event.cat in ("cpu_op", "user_annotation")
        )
    }
    parents = enclosing(events, ("cpu_op",))
    of_call: dict[int, int] = {}
    for position, event in enumerate(events):
        if event.cat in CALLS and position in parents:
            numbers[position] = numbers[parents[position]]
            if event.correlation is not None:
                of_call[event.correlation] = numbers[position]
    for position, event in enumerate(events):
        if isinstance(event.track, Stream) and event.correlation in of_call:
            numbers[position] = of_call[event.correlation]
    return numbers


def _call_stacks(recorded: Sequence[Event], events: Sequence[Event]) -> dict[int, str]:
    """The Python frames around each op, innermost first."""
    positions = {id(event): position for position, event in enumerate(events)}
    parents, stacks = enclosing(recorded, ("python_function",)), {}
    for position, event in enumerate(recorded):
        frames, parent = [], parents.get(position)
        while parent is not None:
            if "(" in recorded[parent].name:
                frames.append(recorded[parent].name)
            parent = parents.get(parent)
        if frames and id(event) in positions:
            stacks[positions[id(event)]] = ";".join(frames)
    return stacks
