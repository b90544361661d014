"""Small sound files of every format, with as many of its features in a few kB as there is room for: what is mutated.

Every list is made anew when asked for; the same files come out each time.
"""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.formats import readers, writers
from stepscope.inputs.source import Source
from stepscope.trace import saved as saved_form
from stepscope.trace.trace import Trace
from tests.fuzz import planes, records
from tests.fuzz.planes import EPOCH_US
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.kineto_writer import Form, write_kineto
from tests.kit.nsys_writer import Export, write_nsys
from tests.kit.wire import message

Json = dict[str, Any]


def read(data: bytes) -> Trace:
    """The trace in a sound file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "seed")
        path.write_bytes(data)
        source = Source(path)
        return readers.recognise(source).read(source, None)


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
        "record_shapes": 1,
        "profile_memory": 1,
        "with_stack": 1,
        "INFO": ["a log line"],
    }
    forms = (
        Form("2021"),
        Form("2022", style="line"),
        Form("2023", "amd", "indent2"),
        Form(root="list"),
        Form(style="head"),
    )
    return [
        write_kineto(rich.events(), Form(), header),
        *[write_kineto(events, form) for form in forms],
        _converted(_stats(), "chrome"),
        _converted(planes.xspace(), "chrome"),
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
        _named("process_name", 1, "server"),
        _named("thread_name", 1, "main", 1),
        _named("thread_name", 1, "pool", 2),
        _x("outer", 0, 90.5),
        _x("inner", 10.25, 20),
        _x("later", "31.125", "4", tid=2),
        {"ph": "B", "name": "begun", "ts": 40, **at},
        {"ph": "B", "name": "twice", "ts": 41, **at},
        {"ph": "E", "ts": 42, **at},
        {"ph": "E", "name": "begun", "ts": 50.5, **at},
        {"ph": "b", "cat": "net", "name": "request", "id": "0x1f", "ts": 5, **at},
        {"ph": "n", "cat": "net", "name": "sent", "id": "0x1f", "ts": 6, **at},
        {"ph": "e", "cat": "net", "name": "request", "id": "0x1f", "ts": 25, **at},
        {"ph": "b", "cat": "net", "name": "local", "id2": {"local": 7}, "ts": 8, **at},
        {"ph": "e", "cat": "net", "name": "local", "id2": {"local": 7}, "ts": 9, **at},
        {"ph": "S", "cat": "old", "name": "async", "id": 3, "ts": 1, **at},
        {"ph": "T", "cat": "old", "name": "async", "id": 3, "ts": 2, "args": {"step": "half"}, **at},
        {"ph": "F", "cat": "old", "name": "async", "id": 3, "ts": 3, **at},
        {"ph": "s", "cat": "flow", "name": "arrow", "id": 9, "ts": 12, **at},
        {"ph": "t", "cat": "flow", "name": "arrow", "id": 9, "ts": 32, "pid": 1, "tid": 2},
        {"ph": "f", "bp": "e", "cat": "flow", "name": "arrow", "id": 9, "ts": 45, **at},
        {"ph": "C", "name": "queue", "ts": 20, "args": {"depth": 3, "wait": 0.5}, **at},
        {"ph": "C", "name": "queue", "ts": 30, "args": {"depth": 5}, **at},
        {"ph": "i", "name": "mark", "ts": 60, "s": "g", **at},
        {"ph": "I", "name": "old mark", "ts": 61, **at},
        {"ph": "R", "name": "nav", "ts": 62, **at},
        {"ph": "P", "name": "sample", "ts": 63, **at},
        {},
    ]
    viztracer = [_x(f"f{k} (/app/train.py:{k})", 2 * k, 40 - 3 * k) | {"cat": "FEE"} for k in range(9)]
    return [
        json.dumps({"traceEvents": everything, "displayTimeUnit": "ns", "otherData": {"version": "1"}}).encode(),
        json.dumps(everything, indent=1).encode(),
        json.dumps({"traceEvents": viztracer, "viztracer_metadata": {"version": "0.16"}}).encode(),
    ]


def xla_json() -> list[bytes]:
    """What ``jax.profiler`` writes beside an XPlane, of CPUs, a GPU and a TPU."""
    host: list[Json] = [
        _named("process_name", 7, "/host:CPU"),
        _named("thread_name", 7, "python", 11),
        _named("thread_name", 7, "tf_XLAEigen/-10524", 12),
    ]
    device: list[Json] = [
        _named("process_name", 1, "/device:GPU:0"),
        _named("thread_name", 1, "Stream #7(Compute)", 7),
        _named("thread_name", 1, "XLA Ops", 9),
        _named("process_name", 2, "/device:TPU:0"),
        _named("thread_name", 2, "Steps", 1),
        _named("thread_name", 2, "XLA Modules", 2),
        _named("thread_name", 2, "XLA Ops", 3),
    ]
    for step in range(3):
        at = 500 * step
        host += [
            _x("train", at, 480, 11, 7, step_num=str(step)),
            _x("$train.py:7 main", at + 1, 478, 11, 7),
            _x("PjitFunction(step)", at + 10, 50, 11, 7),
            _x(
                "dot.1",
                at + 60,
                100,
                12,
                7,
                hlo_op="dot.1",
                hlo_module="jit_step",
                device_ordinal=str(step % 2),
                run_id=str(step),
            ),
        ]
        device += [
            _x(
                "loop_fusion",
                at + 70,
                60,
                7,
                1,
                correlation_id=str(40 + step),
                hlo_op="fusion.1",
                hlo_module="jit_step(3)",
            ),
            _x(
                "MemcpyH2D",
                at + 140,
                9,
                7,
                1,
                correlation_id=str(90 + step),
                memcpy_details="kind_src:pageable kind_dst:device size:4096 dest:0 async:1",
            ),
            _x(str(step), at, 490, 1, 2),
            _x("jit_step(3)", at + 5, 480, 2, 2, run_id=str(step)),
            _x(
                "all-reduce.1",
                at + 100,
                90,
                3,
                2,
                long_name="%all-reduce.1 = f32[] all-reduce(f32[] %x)",
                hlo_category="all-reduce",
            ),
            _x("fusion.2", at + 10, 80, 3, 2, tf_op="jit(step)/mul"),
        ]
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


# --- XPlane, TensorFlow 1 ---------------------------------------------------------------------------------------------


def xplane() -> list[bytes]:
    """XPlane files: hand-made, and stepscope's own of three other formats."""
    host = message(
        (
            1,
            planes.Plane("/host:CPU")
            .line(1, "python", [("train", k * 10, 9, {"step_num": k}) for k in range(4)])
            .bytes(),
        )
    )
    return [planes.xspace(), host, _converted(kineto()[0], "xplane"), _converted(_stats(), "xplane")]


def _node(name: str, start: int, dur: int, label: str, *more: tuple[int, Any]) -> bytes:
    return message(
        (1, name),
        (2, EPOCH_US + start),
        (3, 1),
        (4, dur - 1),
        (5, dur),
        *more,
        (8, label),
        (9, EPOCH_US + start - 3),
        (10, 4),
    )


def _stats() -> bytes:
    """StepStats of a CPU, a GPU's launches, its streams and what repeats them; outputs and memory."""
    job = "/job:localhost/replica:0/task:0/device:"
    tensor = message(
        (1, 1),
        (2, message((2, message((1, 3))), (2, message((1, 4))))),
        (4, message((1, 48), (2, 256), (3, "cpu"), (5, 1 << 40))),
    )
    output = (7, message((1, 1), (3, tensor)))
    memory = (
        6,
        message(
            (1, "cpu"),
            (2, 256),
            (3, 512),
            (4, 9),
            (5, 77),
            (6, message((1, EPOCH_US + 5), (2, 256))),
            (6, message((1, EPOCH_US + 9), (2, -256 % (1 << 64)))),
        ),
    )
    exact = ((13, (EPOCH_US + 70) * 1000), (14, 900), (15, 4000), (16, 5000), (17, 100))
    cpu = [
        _node("_SOURCE", 0, 2, "NoOp"),
        _node("x/read", 4, 8, "x/read = Identity(x)", output, memory),
        _node("mul", 14, 30, "mul = Mul(x/read, x/read:0, ^_SOURCE)", output),
        _node("queue_DequeueMany", 50, 400, "queue_DequeueMany = QueueDequeueManyV2(queue, n)"),
        _node("edge_1_x", 60, 9, "[MEMCPYHtoD]", *exact),
    ]
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
    return [
        _stats(),
        message((1, _stats()), (3, message((1, message((1, "x"), (2, "Placeholder")))))),
        message((1, _stats()[:0] + _stats())),
    ]


def summaries() -> list[bytes]:
    """Event files that say how full a queue was, in both forms, among other records."""
    tag, other = "input/fraction_of_32_full", "queue/shuffle/fraction_over_10_of_70_full_1"
    at = EPOCH_US / 10**6
    events = [message((1, at), (3, "brain.Event:2"))]
    events += [records.scalar(tag, at + k, k / 4) for k in range(4)] + [
        records.tensor(other, at + 0.5, 0.75),
        records.scalar("loss", at, 3.5),
    ]
    return [b"".join(map(records.record, events)), records.record(events[1])]


# --- stepscope's own, containers --------------------------------------------------------------------------------------


def saved() -> list[bytes]:
    """Saved forms of traces of four kinds."""
    return [b"".join(saved_form.pack(read(data))) for data in (kineto()[0], planes.xspace(), _stats(), chrome()[0])]


def gzipped() -> list[bytes]:
    """Files of several formats as gzip, in one member and in two."""
    inside = (kineto()[1], planes.xspace(), _stats(), chrome()[0], saved()[2])
    half = len(inside[0]) // 2
    two = gzip.compress(inside[0][:half], mtime=0) + gzip.compress(inside[0][half:], mtime=0)
    return [gzip.compress(data, 6, mtime=0) for data in inside] + [two]


def zipped() -> list[bytes]:
    """Zip archives: of one file or several, stored or deflated, with sizes behind the data, with gzip inside."""
    stats, json_ = _stats(), chrome()[0]
    packed_json = gzip.compress(json_, mtime=0)
    return [
        _zip({"t.json": json_}),
        _zip({"rm.pb": stats}, zipfile.ZIP_STORED),
        _zip({"t.json.gz": packed_json}, zipfile.ZIP_STORED),
        _zip({"a/t.json": json_, "a/rm.pb": stats, "notes.txt": b"hello", "a/b.xplane.pb": planes.xspace()}),
        _zip({"t.json": json_}, streamed=True),
    ]


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
