"""TensorFlow jobs on GPUs, simulated, and the XPlane files that its profilers write of them.

The host is one chain of work that the runtime hands from thread to thread; streams run in order. A job simulated with
and without a cause says what the cause costs. Names of threads, events and statistics are the exporters' own
(tensorflow/core/common_runtime, tensorflow/core/kernels/data, xla/backends/profiler/gpu); times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.kit.xplanes import Ev, Line, Plane, Stats, Unsigned, space

PS = 1_000_000
"""Picoseconds in a microsecond."""
PYTHON = "python"
EXECUTORS = ("tf_Compute/-1490979301873952049", "tf_Compute/-3771210643985288446")
"""Threads of the inter-op pool; a GPU has some of its own with TF_GPU_THREAD_MODE (``tf_gpu_private_0/…``)."""
GET_NEXT = "tf_data_iterator_get_next/-1491977066735984762"
LATENCY, CALL = 3, 4
V100: Stats = {
    "clock_rate": 1_530_000, "core_count": 80, "memory_bandwidth": Unsigned(898_048_000_000),
    "memory_size": Unsigned(16_945_512_448), "compute_cap_major": 7, "compute_cap_minor": 0,
    "device_vendor": "Nvidia",
}  # fmt: skip
_FUNCTION = ("TFE_Py_ExecuteCancelable", "EagerExecute", "EagerLocalExecute: __inference_multi_step_on_iterator_1018",
             "EagerKernelExecute", "KernelAndDeviceFunc::Run")  # fmt: skip
EXECUTOR_CONTEXT = 2
"""Context type ``kTfExecutor`` (tsl/profiler/lib/context_types.h)."""


@dataclass(frozen=True)
class _Written:
    start: int
    dur: int
    name: str
    stats: dict[str, Any]


class TfGpuJob:
    """Writes a job in the order in which it happens: ``now`` is the host's time."""

    def __init__(self, device: Stats = V100, devices: int = 1) -> None:
        """A job on some GPUs that have these properties."""
        self.now, self.thread = 0, PYTHON
        self._device, self._devices = device, devices
        self._hosts: dict[str, list[_Written]] = {}
        self._streams: dict[tuple[int, int], list[_Written]] = {}
        self._free: dict[tuple[int, int], int] = {}
        self._correlation = 100
        self._function = 0

    # The host

    def spend(self, us: int) -> None:
        """Host time in which nothing is recorded but what is around it."""
        self.now += us

    @contextmanager
    def on(self, thread: str, after: int = 0) -> Iterator[None]:
        """Another thread goes on, so long after this one handed it the work."""
        self.now += after
        before, self.thread = self.thread, thread
        yield
        self.thread = before

    @contextmanager
    def beside(self, thread: str, start: int) -> Iterator[None]:
        """Another thread at a time of its own: this one goes on as if nothing had happened."""
        before = self.now, self.thread
        self.now, self.thread = start, thread
        yield
        self.now, self.thread = before

    @contextmanager
    def range(self, name: str, /, **stats: Any) -> Iterator[None]:
        """An event of the current thread around the block."""
        start, written = self.now, self._hosts.setdefault(self.thread, [])
        at = len(written)
        yield
        written.insert(at, _Written(start, self.now - start, name, stats))

    def host(self, name: str, us: int, /, **stats: Any) -> None:
        """An event that takes so long."""
        with self.range(name, **stats):
            self.spend(us)

    @contextmanager
    def step(self, number: int, name: str = "Profiled batch", **stats: Any) -> Iterator[None]:
        """A step marker of Keras' TensorBoard callback."""
        with self.range(name, step_num=number, **stats):
            yield

    @contextmanager
    def function(self, names: tuple[str, ...] = _FUNCTION) -> Iterator[None]:
        """A call of a ``tf.function``: its thread waits in ``KernelAndDeviceFunc::Run`` for what the block does on
        threads of executors (:meth:`executing`)."""
        self._function += 1
        with ExitStack() as ranges:
            ranges.enter_context(self.range("multi_step_on_iterator", tf_function_call="notTraced-nonXla"))
            self.spend(20)
            for name in names:
                ranges.enter_context(self.range(name))
                self.spend(2)
            self.host("FunctionRun", 10, _r=1, _pt=EXECUTOR_CONTEXT, _p=self._function)
            yield
            self.spend(15)

    @contextmanager
    def executing(self, thread: str = EXECUTORS[0], after: int = 10) -> Iterator[None]:
        """A task of an executor, on one of its threads."""
        with (
            self.on(thread, after),
            self.range("ExecutorState::Process", iter_num=0, _ct=EXECUTOR_CONTEXT, _c=self._function),
        ):
            self.spend(2)
            yield
            self.spend(2)

    def get_next(self, us: int, thread: str = GET_NEXT, op: str = "IteratorGetNextOp") -> None:
        """A graph takes its batch on a thread of its own; the next task of the executor follows."""
        with self.on(thread, 15), self.range(f"{op}::DoCompute"):
            self.spend(5)
            with self.range("Iterator::Root"), self.range("Iterator::Root::Prefetch", buffer_limit=2):
                self.spend(us)
            self.host("ExecutorState::ProcessAsync::Done", 5)

    # Devices

    def op(self, op: str, kernel: str | None, us: int, host: int = 12, device: int = 0, stream: int = 20) -> None:
        """An op of the graph (``dense/MatMul:MatMul``) and the kernel it launches; without one the host computes."""
        with self.range(op):
            self.spend(host - CALL if kernel else us)
            if kernel:
                details = "regs:32 static_shared:0 dynamic_shared:0 grid:160,1,1 block:256,1,1 occ_pct:50"
                self.launch(kernel, us, {"kernel_details": details, "tf_op": op}, device, stream)

    def copy(self, kind: str, us: int, size: int, memory: str = "pageable", op: str | None = None,
             device: int = 0, stream: int = 20, *, blocks: bool = False) -> None:  # fmt: skip
        """A copy (``MemcpyH2D``, ``MemcpyD2H``); one that ``blocks`` returns when it is done."""
        ends = (memory, "device") if kind == "MemcpyH2D" else ("device", memory)
        details = f"kind_src:{ends[0]} kind_dst:{ends[1]} size:{size} dest:{device} async:{int(not blocks)}"
        self.launch(kind, us, {"memcpy_details": details, **({"tf_op": op} if op else {})}, device, stream, blocks)

    def launch(self, name: str, us: int, stats: dict[str, Any], device: int = 0, stream: int = 20, blocks: bool = False,
               behind: int | None = None) -> None:  # fmt: skip
        """A call that launches work of a stream, which begins ``behind`` what another stream has to do."""
        self._correlation += 1
        number = {"correlation_id": Unsigned(self._correlation)}
        place, free = (device, stream), self._free.get((device, stream if behind is None else behind), 0)
        with self.range(name, **number):
            self.spend(CALL)
            begin = max(self.now + LATENCY, self._free.get(place, 0) + 1, free + 1)
            self._free[place] = begin + us
            if blocks:
                self.now = begin + us + 2
        self._streams.setdefault(place, []).append(_Written(begin, us, name, {**number, **stats}))

    def reduce(self, us: int, op: str = "CollectiveReduceV2:CollectiveReduceV2", device: int = 0, stream: int = 30,
               behind: int = 20) -> None:  # fmt: skip
        """A collective of the gradients, which NCCL's thread launches on a stream of its own."""
        stats = {"kernel_details": "regs:96 static_shared:0 dynamic_shared:0 grid:2,1,1 block:512,1,1", "tf_op": op}
        with self.on("nccl_kernel_launch", 5):
            self.launch("ncclKernel_AllReduce_RING_LL_Sum_float()", us, stats, device, stream, behind=behind)

    def synchronize(self, device: int = 0, stream: int = 20, call: str = "cuStreamSynchronize") -> None:
        """The host waits until a stream has nothing left to do."""
        self._correlation += 1
        with self.range(call, correlation_id=Unsigned(self._correlation)):
            self.now = max(self.now, self._free.get((device, stream), 0)) + 2

    def wait_for_event(self, device: int = 0, stream: int = 20) -> None:
        """Between two tasks: the graph goes on when a stream is done, which a thread that asks the device finds out;
        no call shows it."""
        self.now = max(self.now, self._free.get((device, stream), 0)) + 5

    # The file

    def data(self) -> bytes:
        """The bytes of the XSpace."""
        host = Plane("/host:CPU", tuple(
            _line(name, events, number) for number, (name, events) in enumerate(self._hosts.items(), 1)
        ))  # fmt: skip
        gpus = [
            Plane(
                f"/device:GPU:{device}",
                tuple(
                    _line(f"Stream #{stream}({_kinds(events)})", events, stream)
                    for (on, stream), events in self._streams.items()
                    if on == device
                ),
                self._device,
            )
            for device in range(self._devices)
        ]
        return space(host, *gpus, hosts=("trainer",))


def _line(name: str, events: list[_Written], number: int) -> Line:
    return Line(name, tuple(Ev(e.name, e.start * PS, e.dur * PS, e.stats) for e in events), id=number)


def _kinds(events: list[_Written]) -> str:
    names = ("MemcpyH2D", "MemcpyD2H", "MemcpyD2D", "Memset")
    return ",".join(dict.fromkeys(next((name for name in names if name == e.name), "Kernel") for e in events))
