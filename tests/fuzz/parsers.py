"""What reads bytes of others and makes no profile of them: programs, messages, datagrams, names.

Each of these functions is given a folder of its own, an input and its number, and says what became of it.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from stepscope import names as names_package
from stepscope.analysis.hlo.costs import ProgramCosts
from stepscope.analysis.hlo.text import neighbourhood, text_of
from stepscope.hlo.buffers import read_buffers
from stepscope.hlo.instructions import read_hlo
from stepscope.hlo.program import read_program
from stepscope.remote import injection, kineto_daemon
from stepscope.remote.handed import Handed
from stepscope.remote.ipc_fabric import Fabric
from stepscope.remote.messages import KINETO, XPLANE, ProfileRequest, ProfileResponse, monitor_text, terminated_session
from stepscope.remote.processes import checked
from stepscope.wire import field, fields
from tests.fuzz import messages as trees
from tests.fuzz import planes
from tests.fuzz.mutations import NUMBERS, anyhow
from tests.fuzz.oracle import depth_of, examine, words
from tests.hlo import test_hlo_buffers as buffers
from tests.kit.hlo import Module, dot_numbers, op

# --- compiled programs ------------------------------------------------------------------------------------------------


def programs() -> list[bytes]:
    """One as an XPlane carries it; a loop, a fusion, a product, a call of a library; one whose memory is laid out."""
    body = [op("p", "parameter", "f32[8,8]"), op("tanh.1", "tanh", "f32[8,8]", "p", scope="jit(f)/tanh")]
    main = [
        op("a", "parameter", "f32[8,8]"),
        op("dot.2", "dot", "f32[8,8]", "a", "a", more=(dot_numbers((1,), (0,)),)),
        op("fusion.3", "fusion", "f32[8,8]", "dot.2", calls=("fused",)),
        op("custom-call.4", "custom-call", "(f32[8,8], u8[64]S(5))", "fusion.3", more=_GEMM),
        op("while.5", "while", "f32[8,8]", "fusion.3", calls=("fused",), more=((43, _TRIPS),)),
    ]
    values = [buffers.value(id, 1 << 20, id) for id in range(4)]
    places = [buffers.allocation(0, 1 << 20, 0, parameter=1), buffers.allocation(1, 3 << 20, 1, 2, 3)]
    heap = buffers.heap((0, 1), (0, 2), (1, 1), (2, 3, 2), (1, 3), (1, 2))
    assigned = buffers.program(values, places, [heap])
    return [planes.hlo(), Module({"main": main, "fused": body}).proto(), assigned]


_GEMM = ((28, "__cublas$gemm"), (43, "{}"))
_TRIPS = '{"known_trip_count": {"n": "7"}}'


def program(folder: Path, data: bytes, number: int) -> str:
    """An ``HloProto`` read in all three ways; now and then as part of an XPlane, which is then diagnosed."""
    module = read_hlo(np.frombuffer(data, np.uint8), 0, len(data))
    read = read_program(data)
    named = {one.name for one in read.instructions if one.name}
    assert named == module.ops.keys(), "one way of reading finds other instructions than another"
    costs = ProgramCosts(read)
    for one in read.instructions:
        cost = costs.of(one.row)
        assert min(cost.flops or 0, cost.bytes or 0) >= 0, cost
        text_of(read, one)
    if read.instructions:
        neighbourhood(read, len(read.instructions) // 2)
    memory = read_buffers(data)
    if depth_of(number) > 1:
        path = folder / "programs.xplane.pb"
        path.write_bytes(planes.xspace(data))
        return examine(path, depth=2)
    said = ("ops", module.ops), ("parameters", module.parameters), ("buffers", memory)
    return "read: " + " ".join(name for name, value in said if value)


# --- messages of profiler servers -------------------------------------------------------------------------------------


def grpc_seeds() -> list[bytes]:
    """Requests, responses and the small ones."""
    asked = ProfileRequest(2000, 5, True, True, True, "/logs", "2026_01_01", "host:9012", 1 << 60, (XPLANE, KINETO))
    return [
        asked.encode(),
        field(6, field(1, KINETO) + field(2, b"data")) + field(7, 1),
        field(8, b"a whole XSpace"),
        field(1, "stepscope: PyTorch 2.9, 12 steps"),
    ]


def grpc_message(folder: Path, data: bytes, number: int) -> str:
    """Every message of the service; what was asked for is what is asked for again, and no field is read otherwise."""
    request = ProfileRequest.decode(data)
    assert ProfileRequest.decode(request.encode()) == request
    response = ProfileResponse.decode(data)
    assert response.form in ("", XPLANE, KINETO)
    said = monitor_text(data), terminated_session(data)
    tree = trees.parse(data, depth=trees.DEPTH)
    if tree is not None:
        assert [number for number, _ in fields(data)] == [one.number for one in tree]
    parts = ("tools", request.tools), ("steps", request.steps), ("form", response.form), ("text", said[0])
    state = "partial" if tree is None else "read"
    return f"{state}: " + " ".join(name for name, value in parts if value)


# --- datagrams of PyTorch ---------------------------------------------------------------------------------------------

_DATAGRAM = struct.Struct("=Q32siiq")
_FIRST = 1
"""The process that is to be recorded: one that is there."""


def datagrams() -> list[bytes]:
    """A request of a process of which an ancestor is wanted, one that records already, a registration."""
    asked = struct.pack("=iii", 4_000_000, _FIRST, 77)
    return [
        _DATAGRAM.pack(16 + len(asked), b"req", 3, 3, 9) + asked,
        _DATAGRAM.pack(16, b"req", 1, 0, 9),
        _DATAGRAM.pack(16, b"ctxt", 0, _FIRST, 9),
    ]


def datagram_fields(random: Random, data: bytes, other: bytes) -> bytes:
    """Kind, counts and numbers of processes changed."""
    if len(data) < _DATAGRAM.size:
        return anyhow(random, data, other)
    values: list[Any] = list(_DATAGRAM.unpack_from(data))
    pids = data[_DATAGRAM.size :]
    match random.randrange(6):
        case 0:
            values[1] = random.choice((b"req", b"ctxt", b"", b"x" * 32, b"req\0\0x"))
        case 1:
            pids = pids[: random.randrange(len(pids) + 1)]
        case 2:
            pids = random.choice((pids, struct.pack("=i", _FIRST), random.randbytes(4))) * random.choice((1, 3, 5000))
            pids = pids[:20_000]
        case _:
            at, bits = random.choice(((0, 64), (2, 32), (3, 32), (4, 64)))
            wrapped = random.choice(NUMBERS) % (1 << bits)
            values[at] = wrapped if at == 0 else wrapped - ((wrapped >> (bits - 1)) << bits)
    return _DATAGRAM.pack(*values) + pids


def datagram(folder: Path, data: bytes, number: int) -> str:
    """A datagram sent to the daemon by a job, and what the job is told."""
    asked = kineto_daemon._Capture({_FIRST: checked(_FIRST)}, kineto_daemon.Request(), 0)
    # Not the given folder: the name of a socket is short.
    with (
        tempfile.TemporaryDirectory() as place,
        Fabric(place) as fabric,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as job,
    ):
        job.bind("")
        job.sendto(data[: 1 << 17], f"{place}/dynolog")
        try:
            kineto_daemon._answer(fabric, asked)
            told = job.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return "refused: no answer"
        finally:
            kineto_daemon._clean_up(asked)
    size, kind = struct.unpack_from("=Q32s", told)
    body = told[40:]
    assert size == len(body)
    assert kind.rstrip(b"\0") in (b"req", b"ctxt")
    lines = body.decode().splitlines() if kind.startswith(b"req") else []
    assert all(re.fullmatch(r"[A-Z_]+=[^\n]+", line) for line in lines), lines
    return f"read: {kind.rstrip(bytes(1)).decode()} {'told' if lines else ''}"


# --- what a process answers that gdb asked ----------------------------------------------------------------------------


def answers() -> list[bytes]:
    """A profile, and a reason for none."""
    return [b'{"path": "handed/node7.77.pt.trace.json"}', b'{"declined": "a profiler is at work in it already"}']


def answer(folder: Path, data: bytes, number: int) -> str:
    """An answer leads to a file in the folder that was handed over, or is told in a line."""
    name, reason = injection._told(data)
    assert bool(name) != bool(reason) or not reason
    assert len(reason) <= injection._LONGEST_REASON
    assert "\n" not in reason
    if not name:
        return f"{'refused' if reason == injection.NONSENSE else 'read'}: {words(reason)[:80]}"
    assert "/" not in name
    handed = Handed(str(folder), "handed-")
    try:
        handed.open(name).close()
    except OSError:
        return "partial: no such file"
    finally:
        handed.remove()
    return "read: a file"


# --- names ------------------------------------------------------------------------------------------------------------

_MOST_S = 5.0
_LONGEST_NAME = 70_000


@cache
def _of_names() -> tuple[tuple[str, Callable[[str], object]], ...]:
    """Every public function of ``stepscope.names`` that a text is enough for."""
    found = []
    for info in pkgutil.iter_modules(names_package.__path__):
        module = importlib.import_module(f"{names_package.__name__}.{info.name}")
        for name, value in vars(module).items():
            if callable(value) and not inspect.isclass(value) and getattr(value, "__module__", "") == module.__name__:
                wanted = [p for p in inspect.signature(value).parameters.values() if p.default is p.empty]
                if not name.startswith("_") and [p.annotation for p in wanted] == ["str"]:
                    found.append((f"{info.name}.{name}", value))
    return tuple(found)


def names() -> list[bytes]:
    """The examples that these functions have in their own words, and long ones."""
    examples = dict.fromkeys(
        text for _, function in _of_names() for text in re.findall(r'\("([^"\n]+)"', inspect.getdoc(function) or "")
    )
    return [text.encode() for text in examples]


_BITS = (
    "::", "<", ">", "<<", "(", ")", "[", "]", "{", "}", "/", ".", ":", "_", " ", "#", "$", "->", "void ", "aten::",
    "jit(", "nn.Module: ", "<built-in ", ".py(7): ", "ncclDevKernel_", "/job:x/device:GPU:0", "[Iterator] ", "=", ",",
    "%fusion.1 = f32[8]{0} ", "gradients/", "_1", "0" * 20, "²", "\ud800", "é", "\0", "\n", "{{0,1},{2,3}}", "<=[2,2]",
)  # fmt: skip


def name_parts(random: Random, data: bytes, other: bytes) -> bytes:
    """Parts of a name repeated, replaced and nested: what expressions that look for them stumble over."""
    text = data.decode("utf-8", "surrogatepass") if _is_text(data) else data.decode("latin-1")
    at, to = sorted(random.randrange(len(text) + 1) for _ in range(2))
    bit, times = random.choice(_BITS), random.choice((1, 1, 2, 9, 300, 5000))
    match random.randrange(4):
        case 0:
            text = text[:at] + bit * times + text[at:]
        case 1:
            text = text[:at] + text[at:to] * min(times, 1 + _LONGEST_NAME // (to - at + 1)) + text[to:]
        case 2:
            text = text[:at] + bit + text[to:]
        case _:
            text = text[:at] + other.decode("utf-8", "replace") + text[to:]
    return text[:_LONGEST_NAME].encode("utf-8", "surrogatepass")


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def name(folder: Path, data: bytes, number: int) -> str:
    """A name given to everything that reads names, which takes its time by the length and not by its square."""
    text = data[:_LONGEST_NAME].decode("utf-8", "replace")
    return "read: " + " ".join(sorted({said.partition(".")[0] for said in _saying(text)}))


def _saying(text: str) -> Iterator[str]:
    """Which functions make something of a name."""
    for called, function in _of_names():
        began = time.process_time()
        made = function(text)
        took = time.process_time() - began
        assert took < _MOST_S, f"{called} takes {took:.1f} s for {len(text)} characters"
        if hasattr(function, "cache_clear"):
            function.cache_clear()
        if made:
            yield called
