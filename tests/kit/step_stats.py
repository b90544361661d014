"""StepStats and RunMetadata written message by message, in microseconds, without TensorFlow.

Field numbers are those of tensorflow/core/framework/step_stats.proto and its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EPOCH_US = 1_500_000_000_000_000
"""Added to every start."""
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def varint(value: int) -> bytes:
    """An unsigned or two's complement 64-bit number."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int | None) -> bytes:
    """A number field; zeros are not written, as in proto3."""
    return b"" if not value else varint(field << 3) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    """A field that holds bytes."""
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field: int, value: str | None) -> bytes:
    """A text field."""
    return b"" if value is None else message(field, value.encode())


def node(
    name: str,
    start: int,
    dur: int,
    label: str | None = None,
    *,
    scheduled: int | None = None,
    thread: int | None = None,
    nanos: tuple[int, int] | None = None,
    parts: Sequence[bytes] = (),
) -> bytes:
    """A ``NodeExecStats``; ``nanos`` are start and duration in ns, in place of those in microseconds."""
    exact = b""
    if nanos is not None:
        exact = number(13, EPOCH_US * 1000 + nanos[0]) + number(15, nanos[1]) + number(16, nanos[1])
    return b"".join(
        (
            text(1, name),
            number(2, EPOCH_US + start),
            number(4, dur),
            number(5, dur),
            *parts,
            text(8, label),
            number(9, None if scheduled is None else EPOCH_US + scheduled),
            number(10, thread),
            exact,
        )
    )


def output(slot: int, dtype: int, dims: Sequence[int] | None, requested: int, allocator: str = "cpu") -> bytes:
    """A field of a node: one tensor it puts out."""
    shape = b"" if dims is None else message(2, *(message(2, number(1, dim)) for dim in dims))
    described = message(4, number(1, requested), text(3, allocator))
    return message(7, number(1, slot), message(3, number(1, dtype), shape, described))


def memory(allocator: str, records: Sequence[tuple[int, int]] = (), *, live: int = 0, in_use: int = 0) -> bytes:
    """A field of a node: what it allocated (positive) and freed, by time in microseconds."""
    entries = (message(6, number(1, EPOCH_US + at), number(2, size)) for at, size in records)
    return message(6, text(1, allocator), number(4, live), number(5, in_use), *entries)


def device(name: str, *nodes: bytes, threads: Mapping[int, str] | None = None) -> bytes:
    """A ``DeviceStepStats``, as a field of StepStats."""
    named = (message(3, number(1, number_), text(2, called)) for number_, called in (threads or {}).items())
    return message(1, text(1, name), *(message(2, each) for each in nodes), *named)


def step_stats(*devices: bytes) -> bytes:
    """A file that holds StepStats."""
    return b"".join(devices)


def run_metadata(*devices: bytes, graphs: Sequence[bytes] = ()) -> bytes:
    """A file that holds RunMetadata; ``graphs`` are its partition graphs."""
    return message(1, *devices) + b"".join(message(3, graph) for graph in graphs)
