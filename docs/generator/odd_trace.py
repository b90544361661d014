"""A small whole profile, and ways to damage it."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]

START_US = 4_500_000_000_000
"""What files with a ``baseTimeNanoseconds`` of their own hold: microseconds since then, here 52 days."""
STEPS, OPS = 8, 2
HOST, DEVICE = {"pid": 100, "tid": 100}, {"pid": 0, "tid": 7}


def events() -> list[Event]:
    """A small profile: steps of two ops, each of which launches a kernel."""
    made: list[Event] = [{"ph": "M", "name": "process_name", "pid": 100, "args": {"name": "python"}}]
    for step in range(STEPS):
        begin = START_US + 1000 * step
        made.append(
            slice_("user_annotation", f"ProfilerStep#{step + 3}", HOST, begin, 990.5, {"External id": 50 + step})
        )
        for op in range(OPS):
            number, start = OPS * step + op + 1, begin + 100 + 300 * op
            both = {"correlation": number, "External id": number}
            made += [
                slice_("cpu_op", "aten::mm", HOST, start, 40.25, {"External id": number}),
                slice_("cuda_runtime", "cudaLaunchKernel", HOST, start + 10, 8.125, both),
                slice_("kernel", "sgemm_128x64", DEVICE, start + 25, 280.75, {"device": 0, "stream": 7, **both}),
            ]
    return made


def slice_(category: str, name: str, lane: Event, start: float, length: float, args: Event) -> Event:
    """An event with a duration."""
    return {"ph": "X", "cat": category, "name": name, **lane, "ts": start, "dur": length, "args": args}


def trace(made: list[Event] | None = None, **more: Any) -> bytes:
    """A whole file."""
    device = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0}
    document = {"schemaVersion": 1, "deviceProperties": [device]}
    document |= {"traceEvents": events() if made is None else made, "traceName": "trace.json"}
    return json.dumps(document | more, indent=1).encode()


TRACE = trace()
OP = '"aten::mm"'


def swap(old: str, new: str | bytes, count: int = 1) -> bytes:
    """The file with a piece of its text replaced where it first occurs."""
    assert old.encode() in TRACE, old
    return TRACE.replace(old.encode(), new if isinstance(new, bytes) else new.encode(), count)


def cut(before: str, keep: int = 0) -> bytes:
    """The file up to the seventh step, cut there at a text, ``keep`` bytes into it."""
    return TRACE[: TRACE.index(before.encode(), TRACE.index(b'"ProfilerStep#9"')) + keep]


def zeroed(start: str, size: int) -> bytes:
    """The file with zero bytes from a text on."""
    at = TRACE.index(start.encode())
    return TRACE[:at] + bytes(size) + TRACE[at + size :]


def changed(which: Callable[[Event], bool], change: Callable[[Event], Event], most: int = 1) -> bytes:
    """The file with the first events of a sort changed."""
    made, left = [], most
    for event in events():
        chosen = left > 0 and which(event)
        left -= chosen
        made.append(change(event) if chosen else event)
    return trace(made)


def without(*keys: str) -> bytes:
    """The file with keys missing from its first op."""
    return changed(is_op, lambda event: {key: value for key, value in event.items() if key not in keys})


def is_op(event: Event) -> bool:
    """Whether an event is a host op."""
    return event.get("cat") == "cpu_op"


def is_timed(event: Event) -> bool:
    """Whether an event has a time."""
    return "ts" in event


def is_kernel(event: Event) -> bool:
    """Whether an event is a kernel."""
    return event.get("cat") == "kernel"


def shifted(by_us: float) -> Callable[[Event], Event]:
    """Moves an event in time."""
    return lambda event: event | {"ts": event["ts"] + by_us}


def renumbered(event: Event) -> Event:
    """An event whose external id says nothing about its launch."""
    args = event.get("args", {})
    return event | {"args": args | {"External id": 9000 - args["External id"]}} if "External id" in args else event


def as_text(event: Event) -> Event:
    """An event whose numbers are texts."""
    return {key: str(value) if key in ("ts", "dur", "pid", "tid") else value for key, value in event.items()}


def worded(event: Event) -> Event:
    """An event whose process and thread are words."""
    words = {"pid": "GPU functions", "tid": "stream 7"} if is_kernel(event) else {"pid": "CPU functions"}
    return event | words


def stored_gzip(text: bytes, end: bytes = b"") -> bytes:
    """A gzip file whose first block holds the text uncompressed; without an end it is cut off there."""
    packer = zlib.compressobj(0, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH) + end


def stored_zip(text: bytes, end: bytes = b"") -> bytes:
    """As ``stored_gzip``, but the first member of a zip archive without the directory."""
    packer = zlib.compressobj(0, zlib.DEFLATED, -zlib.MAX_WBITS)
    header = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 8, 8, 0, 0, 0, 0, 0, 1, 0)
    return header + b"a" + packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH) + end


def zipped(files: dict[str, bytes], *, encrypted: bool = False, repeated: int = 1) -> bytes:
    """A zip archive; its directory may call the members encrypted, or list them several times."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        for name, data in files.items():
            writer.writestr(name, data)
        directory = writer.filelist
        for member in directory:
            member.flag_bits |= encrypted
        writer.filelist = directory * repeated
    return archive.getvalue()
