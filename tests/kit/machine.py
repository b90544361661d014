"""A simulated host and its devices: threads that take turns, streams in order, waits that block.

The machine knows why everything happened: each nanosecond of host time carries the cause it was spent on, and
each piece of device work knows the call that launched it and whether it waited for another stream. ``truth``
turns that into the accounting, and the events are what a profiler would have recorded of it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.kit.events import US, Category, Event, FlowEnd, Stream, Thread, in_time_order


@dataclass(frozen=True, slots=True)
class Costs:
    """What the machine charges, in ns.

    Latencies are constant: their own 95th percentile is then never exceeded.
    """

    call_ns: int = 5 * US
    """Duration of a call that launches, records or waits."""
    latency_ns: int = 3 * US
    """End of a launch call to the start of its work on an idle stream."""
    between_ns: int = 1 * US
    """Between two pieces of work on one stream when the second was already queued."""
    sync_return_ns: int = 5 * US
    """From the moment awaited work ends until the waiting call returns."""
    queue_depth: int = 1024
    """Launches a device accepts ahead; the next launch call blocks until one piece of work has finished."""


@dataclass(frozen=True, slots=True)
class HostSpan:
    """Host time spent on one cause by one thread."""

    start: int
    end: int
    cause: str
    thread: str


@dataclass(frozen=True, slots=True)
class DeviceOp:
    """Device work and how it came about.

    ``call_start`` is None where the launch came before the recording.
    """

    category: str
    """Of the accounting: compute, collective, copy_h2d …, memset."""
    device: int
    stream: int
    start: int
    end: int
    call_start: int | None
    call_end: int | None
    thread: str
    step: int | None
    awaited: bool
    """The op started when another stream's event fired, not when its own stream was free."""
    behind_wait: bool = False
    """The stream was told to wait for an event just before, which may have fired long ago."""


@dataclass(frozen=True, slots=True)
class Work:
    """Device work to be launched."""

    name: str
    dur_ns: int
    cat: Category = "kernel"
    category: str = "compute"
    stream: Stream = field(default_factory=Stream)
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """A device event: when it fires, the stream and the call that recorded it."""

    fires: int
    stream: Stream
    correlation: int


class Machine:
    """Runs a script of host actions; afterwards ``events``, ``spans`` and ``ops`` say what happened."""

    def __init__(self, costs: Costs | None = None, seed: int = 0, jitter: float = 0.0) -> None:
        self.costs, self.seed, self.jitter = costs or Costs(), seed, jitter
        self.now = 0
        self.thread = "main"
        self.step: int | None = None
        self.recording = True
        self._recorded: list[tuple[int, Event]] = []
        self._opened = 0
        self.spans: list[HostSpan] = []
        self.ops: list[DeviceOp] = []
        self._free: dict[Stream, int] = {}
        self._fires: dict[Stream, int] = {}
        self._told: set[Stream] = set()
        self._queue: dict[int, list[int]] = {}
        self._causes: list[str] = []
        self._correlation = 1000
        self._draws: dict[tuple[int | None, str], int] = {}

    def events(self) -> list[Event]:
        """What a profiler recorded, in time order; of ranges with the same ends the outer one comes first."""
        return in_time_order(event for _, event in sorted(self._recorded, key=lambda pair: pair[0]))

    # Time

    def vary(self, ns: int, what: str) -> int:
        """The duration with jitter, in whole microseconds.

        The draw depends on seed, step, what is drawn and how often: a plan without the cause draws the same
        numbers.
        """
        if not self.jitter or not ns:
            return ns
        count = self._draws[self.step, what] = self._draws.get((self.step, what), 0) + 1
        share = random.Random(f"{self.seed}/{self.step}/{what}/{count}").uniform(-self.jitter, self.jitter)
        return max(1, round(ns * (1 + share) / US)) * US

    def spend(self, ns: int, cause: str = "launch") -> None:
        """Let host time pass; inside :meth:`doing` the time belongs to the outermost cause."""
        self._until(self.now + ns, cause)

    def _until(self, when: int, cause: str) -> None:
        if when > self.now:
            name = self._causes[0] if self._causes else cause
            self.spans.append(HostSpan(self.now, when, name, self.thread))
            self.now = when

    @contextmanager
    def doing(self, cause: str) -> Iterator[None]:
        """Book all host time inside to one cause."""
        self._causes.append(cause)
        yield
        self._causes.pop()

    @contextmanager
    def on(self, thread: str) -> Iterator[None]:
        """Run on another host thread while this one waits for it."""
        before, self.thread = self.thread, thread
        yield
        self.thread = before

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """The profiler is off: time passes and devices work, but nothing is recorded."""
        self.recording = False
        yield
        self.recording = True

    # Host

    @contextmanager
    def range(
        self, cat: Category, name: str, flows: tuple[FlowEnd, ...] = (), args: Mapping[str, Any] | None = None
    ) -> Iterator[None]:
        """A range of the current thread, from here to the end of the block."""
        start, thread, opened = self.now, Thread(self.thread), self._opened
        self._opened += 1
        yield
        self._record(Event(cat, name, thread, start, self.now - start, flows=flows, args=args or {}), opened)

    def call(self, name: str, ns: int | None = None, cause: str = "launch", cat: Category = "cuda_runtime") -> int:
        """A call into the device runtime that launches nothing; returns its correlation."""
        start = self.now
        self.spend(self.costs.call_ns if ns is None else ns, cause)
        self._correlation += 1
        self._record(Event(cat, name, Thread(self.thread), start, self.now - start, self._correlation))
        return self._correlation

    def overhead(self, name: str, ns: int, call: str) -> None:
        """Profiler overhead inside a call that launches nothing, drawn on the profiler's own lane too."""
        start = self.now
        with self.doing("profiler"):
            self.call(call, ns)
        self._record(Event("overhead", name, Thread("overhead"), start, ns))

    # Devices

    def launch(self, *works: Work, call: str = "cudaLaunchKernel") -> None:
        """Launch work; several pieces are a graph, which one call launches into their streams in order."""
        start = self.now
        self.spend(self.costs.call_ns)
        device = works[0].stream.device
        room = self._room(device, len(works))
        self._until(max(self.now, room), "launch")
        self._record_call(call, start)
        for work in works:
            self._run(work, self.now + self.costs.latency_ns, start, self.now)

    def blocking_copy(self, work: Work, staging_ns: int) -> None:
        """A copy from pageable memory.

        The host stages it, waits for the stream, and returns when it is done.
        """
        start = self.now
        self.spend(staging_ns, "copy_staging")
        begin = self._begin(work.stream, self.now)[0]
        self._until(begin + work.dur_ns, "copy_wait")
        self._record_call("cudaMemcpyAsync", start)
        self._run(work, start + staging_ns, start, self.now)

    def synchronize(self, name: str = "cudaStreamSynchronize", stream: Stream | None = None) -> None:
        """Block until a stream (or, without one, every stream) has nothing left to do."""
        busy = [end for key, end in self._free.items() if stream is None or key == stream]
        start = self.now
        done = max([start, *busy])
        self._until(done + self.costs.sync_return_ns, "sync")
        self._record_call(name, start)
        self._record_sync("Context Sync" if stream is None else "Stream Sync", stream or Stream(0, -1), start)

    def record_event(self, stream: Stream) -> DeviceEvent:
        """Record an event behind what the stream was given so far."""
        return DeviceEvent(self._free.get(stream, 0), stream, self.call("cudaEventRecord"))

    def wait_event(self, stream: Stream, event: DeviceEvent) -> None:
        """Hold a stream back until an event fired.

        The row that says so lies where the call was made, not where the stream waited: that is what CUPTI
        records. Work behind the wait starts the instant the event fires, so that no part of such a gap could
        be called latency.
        """
        start = self.now
        self.call("cudaStreamWaitEvent")
        self._fires[stream] = max(event.fires, self._fires.get(stream, 0))
        self._told.add(stream)
        self._record_sync(
            "Stream Wait Event",
            stream,
            start,
            wait_on_stream=event.stream.stream,
            wait_on_cuda_event_record_corr_id=event.correlation,
            wait_on_cuda_event_id=1,
        )

    def earlier_work(self, work: Work) -> None:
        """Work that was launched before the recording began: it runs from now on and has no launch."""
        begin = max(self._free.get(work.stream, 0), self.now)
        self._place(work, begin, None, None, False)

    def drained_ns(self) -> int:
        """When the devices have done all that was launched."""
        return max(self._free.values(), default=0)

    def _room(self, device: int, count: int) -> int:
        """The moment the device's queue has room for so many more launches."""
        queue = self._queue.setdefault(device, [])
        room = 0
        while queue and (queue[0] <= self.now or len(queue) + count > self.costs.queue_depth):
            room = heapq.heappop(queue)
        return room

    def _begin(self, stream: Stream, ready: int) -> tuple[int, bool]:
        """When work that is ready starts on a stream, and whether an event is what it waited for."""
        free = self._free.get(stream)
        own = max(ready, 0 if free is None else free + self.costs.between_ns)
        fires = self._fires.get(stream, 0)
        return max(own, fires), fires > own

    def _run(self, work: Work, ready: int, call_start: int, call_end: int) -> None:
        begin, awaited = self._begin(work.stream, ready)
        self._place(work, begin, call_start, call_end, awaited)
        self.ops[-1] = replace(self.ops[-1], behind_wait=work.stream in self._told)
        self._told.discard(work.stream)
        heapq.heappush(self._queue.setdefault(work.stream.device, []), begin + work.dur_ns)

    def _place(self, work: Work, begin: int, call_start: int | None, call_end: int | None, awaited: bool) -> None:
        self._free[work.stream] = begin + work.dur_ns
        correlation = self._correlation
        if call_start is None:
            self._correlation += 1
            correlation = self._correlation
        self._record(Event(work.cat, work.name, work.stream, begin, work.dur_ns, correlation, args=work.args))
        self.ops.append(
            DeviceOp(
                work.category,
                work.stream.device,
                work.stream.stream,
                begin,
                begin + work.dur_ns,
                call_start,
                call_end,
                self.thread,
                self.step,
                awaited,
            )
        )

    def _record_call(self, name: str, start: int) -> None:
        self._correlation += 1
        self._record(Event("cuda_runtime", name, Thread(self.thread), start, self.now - start, self._correlation))

    def _record_sync(self, kind: str, place: Stream, start: int, **args: int) -> None:
        """CUPTI's row of a wait: on the stream, at the time of the call, a little shorter than it."""
        edge = min(US, (self.now - start) // 2)
        self._record(
            Event(
                "cuda_sync",
                kind,
                place,
                start + edge,
                self.now - start - 2 * edge,
                self._correlation,
                args=args,
            )
        )

    def _record(self, event: Event, opened: int | None = None) -> None:
        if self.recording:
            self._recorded.append((self._opened if opened is None else opened, event))
