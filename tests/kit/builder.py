"""A trace written call by call, in microseconds.

For tests that compute what a drawing would have to spell out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from tests.kit.drawing import LOADER
from tests.kit.events import US, Category, Event, FlowEnd, Stream, Thread, in_time_order

Micros = int | float


class TraceDrawing:
    """Collects neutral events; every method takes start and duration in microseconds.

    ``launch`` and the other calls return a correlation, which the device work they launched is given. Work
    without one has no recorded launch.
    """

    def __init__(self, first_correlation: int = 1) -> None:
        self._events: list[Event] = []
        self._next = first_correlation
        self._flow = 1

    def events(self) -> list[Event]:
        """The events by start, the longer first."""
        return in_time_order(self._events)

    def add(self, event: Event) -> Event:
        """Take an event as it is."""
        self._events.append(event)
        return event

    def host(
        self,
        name: str,
        start: Micros,
        dur: Micros,
        cat: Category = "cpu_op",
        thread: str = "main",
        **args: Any,
    ) -> Event:
        """A range of a host thread."""
        return self.add(Event(cat, name, Thread(thread), _ns(start), _ns(dur), args=args))

    def step(self, number: int, start: Micros, dur: Micros, thread: str = "main") -> Event:
        """A step marker."""
        return self.host(f"ProfilerStep#{number}", start, dur, "user_annotation", thread)

    def annotation(self, name: str, start: Micros, dur: Micros, thread: str = "main") -> Event:
        """A range the user named."""
        return self.host(name, start, dur, "user_annotation", thread)

    def python(self, name: str, start: Micros, dur: Micros, thread: str = "main") -> Event:
        """A Python frame, named like ``train.py(12): main``."""
        return self.host(name, start, dur, "python_function", thread)

    def input_wait(self, start: Micros, dur: Micros, thread: str = "main") -> Event:
        """The loop waits for its next batch."""
        return self.annotation(LOADER, start, dur, thread)

    def call(self, name: str, start: Micros, dur: Micros, thread: str = "main", cat: Category = "cuda_runtime") -> int:
        """A call into the runtime; returns its correlation."""
        number, self._next = self._next, self._next + 1
        self.add(Event(cat, name, Thread(thread), _ns(start), _ns(dur), number))
        return number

    def launch(self, start: Micros, dur: Micros = 5, name: str = "cudaLaunchKernel", thread: str = "main") -> int:
        """A launch; returns the correlation for the work it launched."""
        return self.call(name, start, dur, thread)

    def sync(
        self,
        start: Micros,
        dur: Micros,
        name: str = "cudaStreamSynchronize",
        stream: Stream | None = None,
        thread: str = "main",
    ) -> int:
        """A call that waits for the device; with a stream the profiler's own row of the wait is drawn too."""
        number = self.call(name, start, dur, thread)
        if stream is not None:
            kind = "Stream Sync" if "Stream" in name else "Event Sync" if "Event" in name else "Context Sync"
            self.add(Event("cuda_sync", kind, stream, _ns(start), _ns(dur), number))
        return number

    def kernel(
        self,
        launch: int | None,
        name: str,
        start: Micros,
        dur: Micros,
        stream: Stream | None = None,
        **args: Any,
    ) -> Event:
        """A kernel; ``stream`` is stream 7 of device 0 unless said."""
        return self.add(Event("kernel", name, stream or Stream(), _ns(start), _ns(dur), launch, args=args))

    def collective(
        self,
        launch: int | None,
        start: Micros,
        dur: Micros,
        stream: Stream | None = None,
        kind: str = "allreduce",
    ) -> Event:
        """A collective's kernel, on stream 20 of device 0 unless said."""
        args = {
            "Collective name": kind,
            "In msg nelems": 1024,
            "Out msg nelems": 1024,
            "Group size": 8,
            "dtype": "Float",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
        }
        return self.kernel(
            launch,
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            start,
            dur,
            stream or Stream(0, 20),
            **args,
        )

    def copy(
        self,
        launch: int | None,
        direction: Literal["HtoD", "DtoH", "DtoD", "PtoP"],
        start: Micros,
        dur: Micros,
        size: int = 4096,
        memory: str = "Pinned",
        stream: Stream | None = None,
    ) -> Event:
        """A copy of ``size`` bytes; ``memory`` is the kind of the host's side."""
        args: dict[str, Any] = {"direction": direction, "bytes": size}
        if "H" in direction:
            args["memory"] = memory
        return self.add(Event("gpu_memcpy", "copy", stream or Stream(), _ns(start), _ns(dur), launch, args=args))

    def memset(
        self, launch: int | None, start: Micros, dur: Micros, size: int = 4, stream: Stream | None = None
    ) -> Event:
        """A memset of ``size`` bytes."""
        return self.add(
            Event(
                "gpu_memset",
                "Memset (Device)",
                stream or Stream(),
                _ns(start),
                _ns(dur),
                launch,
                args={"bytes": size},
            )
        )

    def stream_wait(
        self,
        start: Micros,
        stream: Stream,
        recorded_on: Stream,
        record: int,
        dur: Micros = 5,
        thread: str = "main",
    ) -> int:
        """``cudaStreamWaitEvent``: ``stream`` waits for the event that call ``record`` recorded.

        The profiler's row of it lies on the waiting stream at the time of the call.
        """
        number = self.call("cudaStreamWaitEvent", start, dur, thread)
        args = {
            "wait_on_stream": recorded_on.stream,
            "wait_on_cuda_event_record_corr_id": record,
            "wait_on_cuda_event_id": 1,
        }
        self.add(Event("cuda_sync", "Stream Wait Event", stream, _ns(start), _ns(dur), number, args=args))
        return number

    def overhead(self, start: Micros, dur: Micros, name: str = "Activity Buffer Request") -> Event:
        """Profiler overhead, on the profiler's own lane."""
        return self.add(Event("overhead", name, Thread("overhead"), _ns(start), _ns(dur)))

    def memory(
        self, start: Micros, size: int, address: int = 0x7F0000000000, total: int = 0, thread: str = "main"
    ) -> Event:
        """An allocation (or, negative, a free) of device memory."""
        args = {
            "Total Reserved": 2 * total,
            "Total Allocated": total,
            "Bytes": size,
            "Addr": address,
            "Device Id": 0,
            "Device Type": 1,
        }
        return self.add(Event("memory", "[memory]", Thread(thread), _ns(start), None, args=args))

    def backward_of(self, forward: Event, backward: Event) -> None:
        """Draw the arrow from a forward op to its backward op."""
        for event, starts in ((forward, True), (backward, False)):
            at = next(i for i, other in enumerate(self._events) if other is event)
            self._events[at] = replace(event, flows=(*event.flows, FlowEnd(self._flow, starts)))
        self._flow += 1


def _ns(micros: Micros) -> int:
    return round(micros * US)
