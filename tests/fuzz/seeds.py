"""Small sound files of every format, with as many of its features in a few kB as there is room for: what is mutated.

Every list is made anew when asked for; the same files come out each time.
"""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepscope.readers import registry
from stepscope.readers.source import Source
from stepscope.trace import saved as saved_form
from stepscope.trace.trace import Trace
from stepscope.writers import registry as writers
from tests.fuzz import records
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.kineto_writer import Form, write_kineto
from tests.kit.nsys_writer import Export, write_nsys
from tests.kit.wire import message, packed

EPOCH_US = 1_700_000_000_000_000
Json = dict[str, Any]


def read(data: bytes) -> Trace:
    """The trace in a sound file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "seed")
        path.write_bytes(data)
        source = Source(path)
        return registry.recognise(source).read(source, None)


# --- PyTorch, Nsight Systems ------------------------------------------------------------------------------------------


def _drawing(steps: int = 3) -> TraceDrawing:
    """Steps with an input, an op, its launch, kernels on two streams, copies, a wait and a collective."""
    drawing = TraceDrawing()
    for step in range(steps):
        at = 1000 * step
        drawing.step(step, at, 1000)
        drawing.input_wait(at + 10, 200)
        forward = drawing.host("aten::linear", at + 230, 100)
        drawing.kernel(drawing.launch(at + 240), "sgemm_128x128", at + 260, 200)
        drawing.copy(drawing.call("cudaMemcpyAsync", at + 350, 20), "HtoD", at + 470, 40, memory="Pageable")
        drawing.backward_of(forward, drawing.host("AddmmBackward0", at + 380, 50, thread="autograd"))
        drawing.collective(drawing.launch(at + 390, thread="autograd"), at + 500, 90)
        drawing.stream_wait(at + 450, Stream(), Stream(0, 20), drawing.call("cudaEventRecord", at + 440, 3))
        drawing.memset(drawing.call("cudaMemsetAsync", at + 460, 5), at + 520, 4)
        drawing.sync(at + 700, 150, stream=Stream())
        drawing.python("train.py(12): main", at, 990)
    return drawing


def kineto() -> list[bytes]:
    """Kineto JSON of four generations, two vendors and several layouts, and as stepscope exports other formats."""
    events = _drawing(2).events()
    rich = _drawing(1)
    rich.memory(100, 4096)
    rich.overhead(700, 30)
    header = {
        "distributedInfo": {"rank": 1, "world_size": 2, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]},
        "record_shapes": 1, "profile_memory": 1, "with_stack": 1, "INFO": ["a log line"],
    }  # fmt: skip
    forms = (Form("2021"), Form("2022", style="line"), Form("2023", "amd", "indent2"), Form(root="list"), Form(style="head"))
    return [
        write_kineto(rich.events(), Form(), header),
        *[write_kineto(events, form) for form in forms],
        _converted(_stats(), "chrome"),
        _converted(_xspace(), "chrome"),
    ]


def nsys() -> list[bytes]:
    """Exports of every generation, in pages small enough for trees of several levels."""
    events = _drawing(2).events()
    exports = (Export("2021", 512), Export("2026", 512), Export("2026", 4096, graphs=True))
    return [write_nsys(events, export) for export in exports]


# --- other Chrome traces ----------------------------------------------------------------------------------------------


def _named(kind: str, pid: int, name: str, tid: int | None = None) -> Json:
    return {"ph": "M", "name": kind, "pid": pid, **({} if tid is None else {"tid": tid}), "args": {"name": name}}


def _x(name: str, ts: float, dur: float, tid: int = 1, pid: int = 1, **args: Any) -> Json:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def chrome() -> list[bytes]:
    """Generic Chrome traces: every phase, and VizTracer's functions."""
    at = {"pid": 1, "tid": 1}
    everything: list[Json] = [
        _named("process_name", 1, "server"), _named("thread_name", 1, "main", 1), _named("thread_name", 1, "pool", 2),
        _x("outer", 0, 90.5), _x("inner", 10.25, 20), _x("later", "31.125", "4", tid=2),
        {"ph": "B", "name": "begun", "ts": 40, **at}, {"ph": "B", "name": "twice", "ts": 41, **at}, {"ph": "E", "ts": 42, **at},
        {"ph": "E", "name": "begun", "ts": 50.5, **at},
        {"ph": "b", "cat": "net", "name": "request", "id": "0x1f", "ts": 5, **at}, {"ph": "n", "cat": "net", "name": "sent", "id": "0x1f", "ts": 6, **at},
        {"ph": "e", "cat": "net", "name": "request", "id": "0x1f", "ts": 25, **at},
        {"ph": "b", "cat": "net", "name": "local", "id2": {"local": 7}, "ts": 8, **at}, {"ph": "e", "cat": "net", "name": "local", "id2": {"local": 7}, "ts": 9, **at},
        {"ph": "S", "cat": "old", "name": "async", "id": 3, "ts": 1, **at}, {"ph": "T", "cat": "old", "name": "async", "id": 3, "ts": 2, "args": {"step": "half"}, **at},
        {"ph": "F", "cat": "old", "name": "async", "id": 3, "ts": 3, **at},
        {"ph": "s", "cat": "flow", "name": "arrow", "id": 9, "ts": 12, **at}, {"ph": "t", "cat": "flow", "name": "arrow", "id": 9, "ts": 32, "pid": 1, "tid": 2},
        {"ph": "f", "bp": "e", "cat": "flow", "name": "arrow", "id": 9, "ts": 45, **at},
        {"ph": "C", "name": "queue", "ts": 20, "args": {"depth": 3, "wait": 0.5}, **at}, {"ph": "C", "name": "queue", "ts": 30, "args": {"depth": 5}, **at},
        {"ph": "i", "name": "mark", "ts": 60, "s": "g", **at}, {"ph": "I", "name": "old mark", "ts": 61, **at}, {"ph": "R", "name": "nav", "ts": 62, **at},
        {"ph": "P", "name": "sample", "ts": 63, **at}, {},
    ]  # fmt: skip
    viztracer = [_x(f"f{k} (/app/train.py:{k})", 2 * k, 40 - 3 * k) | {"cat": "FEE"} for k in range(9)]
    return [
        json.dumps({"traceEvents": everything, "displayTimeUnit": "ns", "otherData": {"version": "1"}}).encode(),
        json.dumps(everything, indent=1).encode(),
        json.dumps({"traceEvents": viztracer, "viztracer_metadata": {"version": "0.16"}}).encode(),
    ]


def xla_json() -> list[bytes]:
    """What ``jax.profiler`` writes beside an XPlane, of CPUs, a GPU and a TPU."""
    host: list[Json] = [_named("process_name", 7, "/host:CPU"), _named("thread_name", 7, "python", 11), _named("thread_name", 7, "tf_XLAEigen/-10524", 12)]
    device: list[Json] = [
        _named("process_name", 1, "/device:GPU:0"), _named("thread_name", 1, "Stream #7(Compute)", 7), _named("thread_name", 1, "XLA Ops", 9),
        _named("process_name", 2, "/device:TPU:0"), _named("thread_name", 2, "Steps", 1), _named("thread_name", 2, "XLA Modules", 2), _named("thread_name", 2, "XLA Ops", 3),
    ]  # fmt: skip
    for step in range(3):
        at = 500 * step
        host += [
            _x("train", at, 480, 11, 7, step_num=str(step)), _x("$train.py:7 main", at + 1, 478, 11, 7), _x("PjitFunction(step)", at + 10, 50, 11, 7),
            _x("dot.1", at + 60, 100, 12, 7, hlo_op="dot.1", hlo_module="jit_step", device_ordinal=str(step % 2), run_id=str(step)),
        ]  # fmt: skip
        device += [
            _x("loop_fusion", at + 70, 60, 7, 1, correlation_id=str(40 + step), hlo_op="fusion.1", hlo_module="jit_step(3)"),
            _x("MemcpyH2D", at + 140, 9, 7, 1, correlation_id=str(90 + step), memcpy_details="kind_src:pageable kind_dst:device size:4096 dest:0 async:1"),
            _x(str(step), at, 490, 1, 2), _x("jit_step(3)", at + 5, 480, 2, 2, run_id=str(step)),
            _x("all-reduce.1", at + 100, 90, 3, 2, long_name="%all-reduce.1 = f32[] all-reduce(f32[] %x)", hlo_category="all-reduce"), _x("fusion.2", at + 10, 80, 3, 2, tf_op="jit(step)/mul"),
        ]  # fmt: skip
    launch = [_x("cuLaunchKernel", 62 + 500 * step, 4, 11, 7, correlation_id=str(40 + step)) for step in range(3)]
    return [
        json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*host, {}]}).encode(),
        json.dumps({"traceEvents": [*host, *launch, *device, {}]}).encode(),
    ]


def timeline() -> list[bytes]:
    """TensorFlow Timelines, with tensors, memory and dataflow, and without."""
    whole = _converted(_stats(), "timeline")
    events = json.loads(whole)["traceEvents"]
    return [whole, json.dumps({"traceEvents": [event for event in events if event["ph"] in "MX"]}, indent=2).encode()]


def _converted(data: bytes, to: str) -> bytes:
    """The trace in a file, written in another format."""
    (writer,) = (writer for writer in writers.WRITERS if writer.name == to)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"trace{writer.suffixes[0]}")
        writer.write(read(data), path)
        return path.read_bytes()


# --- XPlane -----------------------------------------------------------------------------------------------------------

Event = tuple[str, int, int, Mapping[str, Any]]
"""Name, start and duration in us, statistics."""


class _Plane:
    """A plane under construction; names of events and statistics are numbered as they come."""

    def __init__(self, name: str, **stats: Any) -> None:
        self._events: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._shared: dict[str, Mapping[str, Any]] = {}
        self._fields: list[tuple[int, Any]] = [(2, name), *[(6, self._stat(key, value)) for key, value in stats.items()]]

    def line(self, id: int, name: str, events: Sequence[Event], time_ns: int = EPOCH_US * 1000) -> _Plane:
        made = [
            (4, message((1, self._id(name)), (2, start * 10**6), (3, dur * 10**6), *[(4, self._stat(k, v)) for k, v in stats.items()]))
            for name, start, dur, stats in events
        ]
        self._fields.append((3, message((1, id), (2, name), (3, time_ns), *made)))
        return self

    def about(self, event: str, **stats: Any) -> _Plane:
        """Statistics that all events of a name share."""
        self._id(event)
        self._shared[event] = stats
        return self

    def bytes(self) -> bytes:
        names = [
            (4, message((1, id), (2, message((1, id), (2, name), *[(5, self._stat(k, v)) for k, v in self._shared.get(name, {}).items()]))))
            for name, id in self._events.items()
        ]
        return message(*self._fields, *names, *[(5, message((1, id), (2, message((1, id), (2, key))))) for key, id in self._keys.items()])

    def _id(self, event: str) -> int:
        return self._events.setdefault(event, len(self._events) + 1)

    def _stat(self, key: str, value: Any) -> bytes:
        id = self._keys.setdefault(key, len(self._keys) + 1)
        kind = {float: 2, int: 4, str: 5, bytes: 6}[type(value)]
        if key == "hlo_module":  # a text that all share
            kind, value = 7, self._keys.setdefault(value, len(self._keys) + 1)
        return message((1, id), (kind, value))


def _hlo() -> bytes:
    """An ``HloProto`` of two instructions with scope, source, stack frames and replica groups."""
    location = message((1, 1), (2, 1), (3, 12), (4, 1))
    frames = message((1, "train.py"), (2, "step"), (3, location), (4, message((1, 1))))
    scope = message((1, "dot_general"), (2, "jit(step)/dot_general"), (3, "train.py"), (4, 12), (15, 1))
    groups = message((1, packed(0, 1)))
    instructions = [
        message((1, "fusion.1"), (2, "fusion"), (7, scope), (35, 5), (36, packed(6))),
        message((1, "all-reduce.1"), (2, "all-reduce"), (49, groups), (35, 6), (7, message((4, 14)))),
        message((1, "p.1"), (2, "parameter"), (3, message((2, 11), (3, packed(8, 8)))), (35, 7)),
    ]
    computation = message((1, "main"), *[(2, one) for one in instructions], (5, 9))
    return message((1, message((1, "jit_step"), (2, "main"), (3, computation), (5, 3), (6, 9), (25, frames))))


def _xspace() -> bytes:
    """Every kind of plane: host threads, a GPU with streams, a TPU with derived lines, modules, the environment."""
    python: list[Event] = []
    pool: list[Event] = []
    stream: list[Event] = []
    steps: list[Event] = []
    modules: list[Event] = []
    ops: list[Event] = []
    for step in range(3):
        at = 1000 * step
        python += [
            ("train", at, 990, {"_r": 1, "step_num": step}), ("$train.py:7 main", at + 1, 980, {}), ("PjitFunction(step)", at + 100, 120, {}),
            ("cuLaunchKernel", at + 150, 8, {"correlation_id": 10 + step}), ("TpuExecute", at + 170, 9, {"run_id": step, "_pt": 5, "_p": 70 + step}),
            ("cuMemcpyHtoDAsync", at + 200, 9, {"correlation_id": 50 + step}),
        ]  # fmt: skip
        pool += [("ThunkExecutor::Execute", at + 180, 300, {"_ct": 5, "_c": 70 + step}), ("dot.1", at + 190, 90, {"hlo_op": "dot.1", "hlo_module": "jit_step", "run_id": step, "device_ordinal": step % 2, "program_id": 3})]
        stream += [
            ("loop_fusion", at + 300, 200, {"correlation_id": 10 + step, "kernel_details": "regs:32 static_shared:64 dynamic_shared:0 grid:8,1,1 block:128,1,1 occ_pct:75.5", "hlo_op": "fusion.1", "hlo_module": "jit_step", "program_id": 3, "theoretical_occupancy_pct": 75.5}),
            ("MemcpyH2D", at + 510, 40, {"correlation_id": 50 + step, "memcpy_details": "kind_src:pageable kind_dst:device size:4096 dest:0 async:1"}),
            ("Memset", at + 560, 4, {"Memset_details": "kind:device size:512 dest:0 async:1"}),
        ]  # fmt: skip
        steps.append((str(step), at, 900, {}))
        modules.append(("jit_step(3)", at + 10, 800, {"run_id": step}))
        ops += [("%fusion.1 = f32[8,8] fusion(%p)", at + 20, 300, {}), ("%all-reduce.1 = f32[8,8] all-reduce(%x)", at + 400, 100, {"bytes_accessed": 4096}), ("infeed.1", at + 600, 60, {"device_offset_ps": at * 10**6, "device_duration_ps": 99})]
    memory: list[Event] = [("MemoryAllocation", 5, 0, {"requested_bytes": 64, "allocation_bytes": 256, "addr": 1 << 40, "bytes_allocated": 999, "allocator_name": "BFC"}), ("MemoryDeallocation", 9, 0, {"addr": 1 << 40, "allocation_bytes": 256})]
    planes = (
        _Plane("/host:CPU").line(1, "python", python).line(2, "tf_XLAEigen/77", pool).line(3, "allocator", memory),
        _Plane("/device:GPU:0", core_count=108, memory_size=1 << 36, compute_cap_major=8, device_vendor="Nvidia")
        .line(7, "Stream #7(Compute,MemcpyH2D)", stream).line(8, "XLA Modules", modules).line(9, "_counters_", [("power", 10, 0, {"power": 250})]),
        _Plane("/device:TPU:0", peak_teraflops_per_second=197.5).line(1, "Steps", steps).line(2, "XLA Modules", modules).line(3, "XLA Ops", ops)
        .about("%fusion.1 = f32[8,8] fusion(%p)", hlo_category="convolution fusion", flops=1 << 20, tf_op="jit(step)/dot", source="train.py:12", program_id=3, bytes_accessed=512),
        _Plane("/host:metadata").about("jit_step(3)", **{"Hlo Proto": _hlo(), "program_id": 3}),
        _Plane("Task Environment", profile_start_time=EPOCH_US * 1000, profile_stop_time=EPOCH_US * 1000 + 3_000_000),
    )  # fmt: skip
    return message(*[(1, plane.bytes()) for plane in planes], (2, "an error"), (3, "a warning"), (4, "host-7"))


def xplane() -> list[bytes]:
    """XPlane files: hand-made, and stepscope's own of three other formats."""
    host = message((1, _Plane("/host:CPU").line(1, "python", [("train", k * 10, 9, {"step_num": k}) for k in range(4)]).bytes()))
    return [_xspace(), host, _converted(kineto()[0], "xplane"), _converted(_stats(), "xplane")]


# --- TensorFlow 1 -----------------------------------------------------------------------------------------------------


def _node(name: str, start: int, dur: int, label: str, *more: tuple[int, Any]) -> bytes:
    return message((1, name), (2, EPOCH_US + start), (3, 1), (4, dur - 1), (5, dur), *more, (8, label), (9, EPOCH_US + start - 3), (10, 4))


def _stats() -> bytes:
    """StepStats of a CPU, a GPU's launches, its streams and what repeats them; outputs and memory."""
    job = "/job:localhost/replica:0/task:0/device:"
    tensor = message((1, 1), (2, message((2, message((1, 3))), (2, message((1, 4))))), (4, message((1, 48), (2, 256), (3, "cpu"), (5, 1 << 40))))
    output = (7, message((1, 1), (3, tensor)))
    memory = (6, message((1, "cpu"), (2, 256), (3, 512), (4, 9), (5, 77), (6, message((1, EPOCH_US + 5), (2, 256))), (6, message((1, EPOCH_US + 9), (2, -256 % (1 << 64))))))
    exact = ((13, (EPOCH_US + 70) * 1000), (14, 900), (15, 4000), (16, 5000), (17, 100))
    cpu = [
        _node("_SOURCE", 0, 2, "NoOp"), _node("x/read", 4, 8, "x/read = Identity(x)", output, memory),
        _node("mul", 14, 30, "mul = Mul(x/read, x/read:0, ^_SOURCE)", output), _node("queue_DequeueMany", 50, 400, "queue_DequeueMany = QueueDequeueManyV2(queue, n)"),
        _node("edge_1_x", 60, 9, "[MEMCPYHtoD]", *exact),
    ]  # fmt: skip
    kernels = [_node("mul", 70, 20, "Mul"), _node("edge_1_x", 95, 9, "MEMCPYHtoD")]
    rows = [
        message((1, f"{job}CPU:0"), *[(2, node) for node in cpu], (3, message((1, 4), (2, "pool-4")))),
        message((1, f"{job}GPU:0"), (2, _node("mul", 60, 5, "mul = Mul(x/read, x/read)"))),
        message((1, f"{job}GPU:0/stream:12"), *[(2, node) for node in kernels]),
        message((1, f"{job}GPU:0/stream:all"), *[(2, node) for node in kernels]),
        message((1, f"{job}GPU:0/memcpy"), (2, kernels[1])),
    ]
    return message(*[(1, row) for row in rows])


def step_stats() -> list[bytes]:
    """StepStats alone, and in RunMetadata with a partition graph."""
    return [_stats(), message((1, _stats()), (3, message((1, message((1, "x"), (2, "Placeholder")))))), message((1, _stats()[:0] + _stats()))]


def summaries() -> list[bytes]:
    """Event files that say how full a queue was, in both forms, among other records."""
    tag, other = "input/fraction_of_32_full", "queue/shuffle/fraction_over_10_of_70_full_1"
    at = EPOCH_US / 10**6
    events = [message((1, at), (3, "brain.Event:2"))]
    events += [records.scalar(tag, at + k, k / 4) for k in range(4)] + [records.tensor(other, at + 0.5, 0.75), records.scalar("loss", at, 3.5)]
    return [b"".join(map(records.record, events)), records.record(events[1])]


# --- stepscope's own, containers --------------------------------------------------------------------------------------


def saved() -> list[bytes]:
    """Saved forms of traces of four kinds."""
    return [b"".join(saved_form.pack(read(data))) for data in (kineto()[0], _xspace(), _stats(), chrome()[0])]


def gzipped() -> list[bytes]:
    """Files of several formats as gzip, in one member and in two."""
    inside = (kineto()[1], _xspace(), _stats(), chrome()[0], saved()[2])
    half = len(inside[0]) // 2
    two = gzip.compress(inside[0][:half], mtime=0) + gzip.compress(inside[0][half:], mtime=0)
    return [gzip.compress(data, 6, mtime=0) for data in inside] + [two]


def zipped() -> list[bytes]:
    """Zip archives: of one file or several, stored or deflated, with sizes behind the data, with gzip inside."""
    stats, json_ = _stats(), chrome()[0]
    packed_json = gzip.compress(json_, mtime=0)
    return [
        _zip({"t.json": json_}), _zip({"rm.pb": stats}, zipfile.ZIP_STORED), _zip({"t.json.gz": packed_json}, zipfile.ZIP_STORED),
        _zip({"a/t.json": json_, "a/rm.pb": stats, "notes.txt": b"hello", "a/b.xplane.pb": _xspace()}), _zip({"t.json": json_}, streamed=True),
    ]  # fmt: skip


class _Unseekable(io.RawIOBase):
    """What zipfile writes to from front to back, with the sizes behind the data."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.data += data
        return len(data)


def _zip(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED, *, streamed: bool = False) -> bytes:
    buffer, stream = io.BytesIO(), _Unseekable()
    with zipfile.ZipFile(stream if streamed else buffer, "w", method) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            archive.writestr(info, content)
    return bytes(stream.data) if streamed else buffer.getvalue()
