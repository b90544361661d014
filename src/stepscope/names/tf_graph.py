"""What TensorFlow calls things in StepStats and Timelines: device rows, labels of nodes, kernels and copies.

Sources of the forms: TensorFlow's ``step_stats_collector.cc`` (labels of nodes), ``device_tracer.cc`` of 2016 to 2020,
``host_tracer.cc`` and ``xplane_to_step_stats.cc`` (rows and labels of devices), ``timeline.py`` (the JSON).
"""

from __future__ import annotations

import re
from enum import Enum, auto

from stepscope.record import record
from stepscope.regex import regex

QUEUE_TAG = regex(r"(?:^|/)fraction_(?:of|over_\d+_of)_\d+_full(?:_\d+)?$")
"""Tags in summaries of queues that are filled by queue runners: tensorflow/python/training/input.py."""


class RowKind(Enum):
    """What the entries of a device row of StepStats are."""

    HOST = auto()
    """Nodes placed on a CPU: their execution."""
    LAUNCH = auto()
    """Nodes placed on an accelerator: the host's work of launching them, not the accelerator's time."""
    STREAM = auto()
    """Kernels and copies of one stream."""
    ALL = auto()
    """The kernels of all streams once more."""
    COPIES = auto()
    """The copies of all streams once more."""
    SYNC = auto()
    """Calls in which a host thread waits for the device."""
    THREADS = auto()
    """Ranges of host threads."""
    UNKNOWN = auto()


@record
class DeviceRow:
    """What the name of a row says."""

    kind: RowKind
    task: str | None = None
    """``/job:worker/replica:0/task:1``, where the name begins with a task."""
    number: int = 0
    """Number of the device within its task."""
    stream: int | None = None
    about: str | None = None
    """What a stream's row is limited to (``MemcpyH2D``)."""


_ROW = regex(
    r"(?P<task>/job:[^/]+(?:/replica:\d+)?(?:/task:\d+)?)?/(?:device:)?(?P<type>\w+):(?P<number>\d+)"
    r"(?P<rest>/.*)?",
    re.ASCII,
)
_STREAM = regex(r"/(?:context#\d+/)?stream[:#](?P<stream>\d{0,18})(?:<(?P<about>[^<>]*)>|:(?P<kind>\w+))?", re.ASCII)
_WHOLE = {"/stream:all": RowKind.ALL, "/memcpy": RowKind.COPIES, "/memcpy:all": RowKind.COPIES, "/sync": RowKind.SYNC}
_ON_HOST = ("cpu", "xla_cpu", "tpu_system")


def parse_row(name: str) -> DeviceRow:
    """What a row's name says.

    >>> parse_row("/gpu:0/stream:12").stream, parse_row("/job:ps/replica:0/task:0/device:GPU:1").kind.name
    (12, 'LAUNCH')
    """
    if name.startswith("/host:"):
        return DeviceRow(RowKind.THREADS)
    match = _ROW.fullmatch(name)
    if match is None or len(match["number"]) > 4:
        return DeviceRow(RowKind.UNKNOWN)
    task, number, rest = match["task"], int(match["number"]), match["rest"]
    if rest is None:
        on_host = match["type"].lower() in _ON_HOST
        return DeviceRow(RowKind.HOST if on_host else RowKind.LAUNCH, task, number)
    if rest in _WHOLE:
        return DeviceRow(_WHOLE[rest], task, number)
    stream = _STREAM.fullmatch(rest)
    if stream is None:
        return DeviceRow(RowKind.UNKNOWN)
    about = stream["about"] or stream["kind"]
    return DeviceRow(RowKind.STREAM, task, number, int(stream["stream"]) if stream["stream"] else None, about)


_ANNOTATION = regex(r"(?P<node>[A-Za-z0-9.][\w.\\/>-]*):(?P<op>\w+)(?::\w+)?(?:#.*)?", re.DOTALL | re.ASCII)


def parse_label(label: str) -> tuple[str | None, str | None]:
    """Op and inputs (comma-separated) from a node's label.

    >>> parse_label("c = MatMul(a, b:1)")
    ('MatMul', 'a, b:1')
    """
    node, _, rest = label.rpartition(" = ")
    op, _, inputs = rest.partition("(")
    if not node or not op or " " in op or not inputs.endswith(")"):
        return None, None
    return op, inputs[:-1] or None


def parse_annotation(name: str, label: str) -> tuple[str | None, str | None]:
    """Node and op that a kernel or copy belongs to: from ``@@node:Op#`` of its label, else from its own name.

    >>> parse_annotation("", "sgemm regs:32@@dense/MatMul:MatMul#id=5#")
    ('dense/MatMul', 'MatMul')
    """
    for text in (label.partition("@@")[2].lstrip(":"), name):
        match = _ANNOTATION.fullmatch(text)
        if match and match["node"] != "unknown":
            return match["node"], match["op"]
    return None, None


@record
class KernelLabel:
    """What the label of a kernel says."""

    name: str | None = None
    registers: int | None = None
    shared_memory: int | None = None
    grid: str | None = None
    block: str | None = None
    occupancy_pct: float | None = None


_DETAILS = regex(r" (?:regs|shm|static_shared|grid):\d")
_DETAIL = regex(r"\b(regs|shm|static_shared|dynamic_shared|grid|block|occ_pct):(\d[\d.,]{0,40})", re.ASCII)


def parse_kernel(label: str) -> KernelLabel:
    """What a kernel's label says: ``name regs:32 shm:0 grid:1,1,1 block:64,1,1``.

    >>> parse_kernel("sgemm regs:32 static_shared:16 dynamic_shared:8 grid:2,1,1 block:64,1,1 occ_pct:50").shared_memory
    24
    """
    begin = _DETAILS.search(label)
    if begin is None:
        return KernelLabel()
    details = dict(_DETAIL.findall(label.partition("@@")[0], begin.start()))
    shared = [_whole(details[key]) for key in ("shm", "static_shared", "dynamic_shared") if key in details]
    occupancy = details.get("occ_pct", "").rstrip(".,")
    return KernelLabel(
        name=label[: begin.start()],
        registers=_whole(details.get("regs")),
        shared_memory=sum(size or 0 for size in shared) if shared else None,
        grid=details.get("grid"),
        block=details.get("block"),
        occupancy_pct=float(occupancy) if re.fullmatch(r"\d+(?:\.\d+)?", occupancy) else None,
    )


def _whole(digits: str | None) -> int | None:
    return int(digits) if digits and digits.isdigit() and len(digits) < 19 else None


_SIZE = regex(r"\b(?:bytes|size):(\d{1,18})\b|\b(\d{1,18}) bytes\b|\[(\d{1,18})B\]", re.ASCII)
_ENDS = regex(r"\((\w+) to (\w+)\)|\bkind_src:(\w+) kind_dst:(\w+)", re.ASCII)
_PLACES = regex(r" from (\S+) to (\S+)$")
_WAY = regex(r"(?:cpy|copy)[ _]?([hdpa])(?:ost|evice|eer|rray)?_?(?:to|2)_?([hdpa])", re.IGNORECASE)
_COPY = regex(r"^memcpy|:memcpy|^copy\w*to|:copy\w*to|^\[\d+B\] ", re.IGNORECASE)
_MEMSET = regex(r"^memset|:memset", re.IGNORECASE)


@record
class CopyLabel:
    """What the texts about a copy say; ``way`` is two of ``hdp`` (host, device, peer; arrays are device memory)."""

    bytes: int | None
    way: str
    source: str
    target: str


def parse_copy(name: str, label: str, about: str | None) -> CopyLabel:
    """Size, way and kinds of memory of a copy.

    >>> parse_copy("unknown:MEMCPYHtoD", "MEMCPYHtoD 4096 bytes (Pageable to Device)", None)
    CopyLabel(bytes=4096, way='hd', source='pageable', target='device')
    """
    size = next((int(digits) for parts in _SIZE.findall(label) for digits in parts if digits), None)
    ends = [end.lower() for parts in _ENDS.findall(label) for end in parts if end] or ["", ""]
    ways = (_WAY.search(text) for text in (about or "", label, name))
    way = next(((parts[1] + parts[2]).lower().replace("a", "d") for parts in ways if parts), "")
    places = _PLACES.search(label)
    if not way and places:
        way = "".join("h" if "cpu:" in place.lower() else "d" for place in places.groups())
    return CopyLabel(size, way, ends[0], ends[1])


def is_copy(name: str, label: str, about: str | None) -> bool:
    """Whether texts of a stream's row speak of a copy."""
    return any(_COPY.search(text) for text in (about or "", label, name))


def is_memset(name: str, label: str, about: str | None) -> bool:
    """Whether texts of a stream's row speak of a memset."""
    return any(_MEMSET.search(text) for text in (about or "", label, name))


_PASSIVE = regex(
    r"_(?:Host)?(?:Recv|Send)|RecvTensor|(?:Stateful)?PartitionedCall|SymbolicGradient|RemoteCall"
    r"|(?:Stateless)?(?:While|If|Case)|QueueEnqueue\w*"
)


def is_passive(op: str) -> bool:
    """Whether a node of this op only waits for others while it lasts: transfers, enqueueing, and calls of functions,
    whose bodies are nodes of their own.

    >>> is_passive("_Recv"), is_passive("MatMul")
    (True, False)
    """
    return _PASSIVE.fullmatch(op) is not None
