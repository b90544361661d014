"""Profiles that have very many of one thing: streams, devices, threads, names, steps ... A file of 100 kB can.

Each shape is a function of a size; rows grow in proportion to it, whatever else does. An analysis that asks for every
device what it could ask once takes the square of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from tests.kit.events import Event, FlowEnd, Stream, Thread

_STEPS = 4
_COPY = "Memcpy HtoD (Pageable -> Device)"
_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
_LENGTH = 40_000
"""Nanoseconds from one launch to the next."""


class _Job:
    """Launches one after another on a host's clock, each with an op around it and a kernel behind it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 1_000_000
        self._ids = count(1)

    def step(self, number: int, start: int) -> None:
        """Everything since ``start`` was a step."""
        self.events.append(Event("user_annotation", f"ProfilerStep#{number}", Thread(), start, self.now - start))

    def launch(
        self,
        stream: Stream = Stream(),  # noqa: B008 - frozen
        thread: Thread = Thread(),  # noqa: B008 - frozen
        op: str = "aten::mul",
        kernel: str = "vectorized_elementwise_kernel",
        flow: FlowEnd | None = None,
    ) -> None:
        at, number = self.now, next(self._ids)
        flows = () if flow is None else (flow,)
        self.events += [
            Event("cpu_op", op, thread, at, _LENGTH // 2, flows=flows),
            Event("cuda_runtime", "cudaLaunchKernel", thread, at + 1_000, 8_000, number),
            Event("kernel", kernel, stream, at + 12_000, 20_000, number),
        ]
        self.now += _LENGTH

    def inside(self, cat: str, name: str, thread: Thread = Thread(), dur: int = _LENGTH) -> None:  # noqa: B008 - frozen
        """A slice that launches nothing."""
        self.events.append(Event(cat, name, thread, self.now, dur))  # type: ignore[arg-type]
        self.now += dur


def _steps(size: int, work: Callable[[_Job, int], None], steps: int = _STEPS) -> list[Event]:
    """Steps that share ``size`` pieces of work."""
    job = _Job()
    pieces = iter(range(size))
    for number in range(steps):
        start = job.now
        job.launch()
        for _ in range(max(size // steps, 1)):
            piece = next(pieces, None)
            if piece is not None:
                work(job, piece)
        job.launch()
        job.step(number, start)
    return job.events


def many_streams(size: int) -> list[Event]:
    return _steps(size, lambda job, i: job.launch(Stream(0, 7 + i)))


def many_devices(size: int) -> list[Event]:
    return _steps(size, lambda job, i: job.launch(Stream(i, 7)))


def devices_in_every_step(size: int) -> list[Event]:
    return _steps(size, lambda job, i: job.launch(Stream(i % max(size // _STEPS, 1), 7)))


def devices_that_wait(size: int) -> list[Event]:
    """Devices that each wait for Python of the host."""

    def work(job: _Job, i: int) -> None:
        job.inside("python_function", f"train.py({i % 50}): prepare", dur=400_000)
        job.launch(Stream(i % max(size // _STEPS, 1), 7))

    return _steps(size, work)


def devices_in_named_ranges(size: int) -> list[Event]:
    def work(job: _Job, i: int) -> None:
        job.inside("user_annotation", f"range {i % 50}", dur=400_000)
        job.launch(Stream(i % max(size // _STEPS, 1), 7))

    return _steps(size, work)


def many_threads(size: int) -> list[Event]:
    return _steps(size, lambda job, i: job.launch(thread=Thread(f"worker {i}")))


def threads_with_frames(size: int) -> list[Event]:
    def work(job: _Job, i: int) -> None:
        job.inside("python_function", f"train.py({i % 50}): prepare", Thread(f"worker {i}"))
        job.launch(thread=Thread(f"worker {i}"))

    return _steps(size, work)


def many_names(size: int) -> list[Event]:
    return _steps(size, lambda job, i: job.launch(op=f"custom::op_{i}", kernel=f"kernel_of_shape_{i}"))


def many_python_names(size: int) -> list[Event]:
    def work(job: _Job, i: int) -> None:
        job.inside("python_function", f"module_{i}.py({i}): function_{i}", dur=200_000)
        job.launch()

    return _steps(size, work)


def many_ranges(size: int) -> list[Event]:
    def work(job: _Job, i: int) -> None:
        job.inside("user_annotation", f"request {i}", dur=200_000)
        job.launch()

    return _steps(size, work)


def many_steps(size: int) -> list[Event]:
    return _steps(size, lambda job, i: job.launch(), steps=max(size // 4, 1))


def many_slow_steps(size: int) -> list[Event]:
    """Every tenth step has a cause of its own."""

    def work(job: _Job, i: int) -> None:
        if i % 40 == 0:
            job.inside("python_function", f"train.py({i}): save", dur=5_000_000)
        job.launch()

    return _steps(size, work, steps=max(size // 4, 1))


def deep(size: int) -> list[Event]:
    """Frames within frames, a launch in each."""
    job = _Job()
    for number in range(_STEPS):
        start, depth = job.now, max(size // _STEPS, 1)
        for level in range(depth):
            opened = job.now
            job.now += 1_000
            job.events.append(
                Event("python_function", f"net.py({level}): f", Thread(), opened, (2 * depth - level) * _LENGTH)
            )
        for _ in range(depth // 4 + 1):
            job.launch()
        job.now = start + 2 * depth * _LENGTH + 2 * _LENGTH
        job.step(number, start)
    return job.events


def many_flows(size: int) -> list[Event]:
    """Forward ops that hand their backward to another thread."""

    def work(job: _Job, i: int) -> None:
        job.launch(flow=FlowEnd(i + 1, starts=True))
        job.launch(thread=Thread("autograd"), op="autograd::engine::evaluate_function: Mul", flow=FlowEnd(i + 1, False))

    return _steps(size, work)


def many_on_one_launch(size: int) -> list[Event]:
    """Graphs: all kernels of a step carry the number of one launch."""
    job = _Job()
    for number in range(_STEPS):
        start = job.now
        job.events.append(Event("cuda_runtime", "cudaGraphLaunch", Thread(), job.now, 10_000, number + 1))
        for _ in range(max(size // _STEPS, 1)):
            job.now += 20_000
            job.events.append(Event("kernel", "k", Stream(), job.now, 15_000, number + 1))
        job.now += 50_000
        job.step(number, start)
    return job.events


def many_waits(size: int) -> list[Event]:
    def work(job: _Job, i: int) -> None:
        job.launch()
        job.events.append(Event("cuda_runtime", "cudaStreamSynchronize", Thread(), job.now, 30_000, 1_000_000 + i))
        job.now += 100_000

    return _steps(size, work)


def many_copies(size: int) -> list[Event]:
    def work(job: _Job, i: int) -> None:
        args = {"direction": "HtoD", "memory": "Pageable", "bytes": 1 << 20}
        number = 1_000_000 + i
        job.events += [
            Event("cuda_runtime", "cudaMemcpyAsync", Thread(), job.now, 30_000, number),
            Event("gpu_memcpy", _COPY, Stream(), job.now + 10_000, 20_000, number, args=args),
        ]
        job.now += 60_000
        job.launch()

    return _steps(size, work)


def many_groups(size: int) -> list[Event]:
    """Collectives, each of a group of its own."""

    def work(job: _Job, i: int) -> None:
        args = {
            "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float",
            "Group size": 8, "Process Group Name": str(i), "Process Group Description": f"group {i}",
        }  # fmt: skip
        number = 1_000_000 + i
        job.events += [
            Event("cuda_runtime", "cudaLaunchKernelExC", Thread(), job.now, 8_000, number),
            Event("kernel", _REDUCE, Stream(0, 20), job.now + 10_000, 40_000, number, args=args),
        ]
        job.now += 60_000
        job.launch()

    return _steps(size, work)


def many_allocations(size: int) -> list[Event]:
    """Memory events, each block of another size, half of them never freed."""

    def work(job: _Job, i: int) -> None:
        for sign in (1, -1)[: 1 + i % 2]:
            args = {
                "Total Reserved": 1 << 34, "Total Allocated": (i + 1) << 10, "Bytes": sign * ((i + 1) << 9),
                "Addr": i << 10, "Device Id": 0, "Device Type": 1,
            }  # fmt: skip
            job.events.append(Event("memory", "[memory]", Thread(), job.now, None, args=args))
            job.now += 1_000
        job.launch()

    return _steps(size, work)


def without_device(size: int) -> list[Event]:
    return _steps(
        size, lambda job, i: job.inside("cpu_op", f"aten::op_{i % 100}", Thread("main" if i % 2 else f"worker {i}"))
    )


def without_markers(size: int) -> list[Event]:
    return [event for event in many_steps(size) if event.cat != "user_annotation"]


SHAPES: dict[str, Callable[[int], Sequence[Event]]] = {
    shape.__name__: shape
    for shape in (
        many_streams, many_devices, devices_in_every_step, devices_that_wait, devices_in_named_ranges, many_threads,
        threads_with_frames, many_names, many_python_names, many_ranges, many_steps, many_slow_steps, deep, many_flows,
        many_on_one_launch, many_waits, many_copies, many_groups, many_allocations, without_device, without_markers,
    )
}  # fmt: skip
