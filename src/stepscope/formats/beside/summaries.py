"""How full TensorFlow's input queues were, from the summaries that lie beside a profile (``events.out.tfevents.*``).

``tf.train.batch`` and its like write a scalar ``…/fraction_of_<capacity>_full`` with every merged summary. Formats:
TFRecord (tensorflow/core/lib/io/record_writer.h), tensorflow/core/util/event.proto and summary.proto.
"""

from __future__ import annotations

import dataclasses
import math
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np

from stepscope.names.tf_graph import QUEUE_TAG
from stepscope.trace import tables as t
from stepscope.trace.check import check
from stepscope.trace.trace import Trace
from stepscope.wire import fields

PATTERN = "events.out.tfevents.*"
TRACK = "summaries"
"""What the track of these counters is called."""
NEAR_NS = 600_000_000_000
"""Summaries ten minutes away from a profile say nothing of it."""

_LEVELS_UP = 3
"""From ``<logdir>/plugins/profile/<run>`` to the logdir."""
_MOST_FILES, _MOST_BYTES, _LARGEST_RECORD = 64, 1 << 30, 16 << 20
_DT_FLOAT, _DT_DOUBLE = 1, 2


TableT = TypeVar("TableT", bound=t.Table)


class Fill(NamedTuple):
    """How full a queue was."""

    tag: str
    wall_time: float
    """Unix time, in seconds."""
    value: float
    """Share of the queue's capacity, from 0 to 1."""


def queue_fill(path: str | os.PathLike[str]) -> list[Fill]:
    """The fill of input queues in the event files nearest to a profile, in time order; none where nothing was written.

    Looks into the profile's folder and the three above it, and takes the first that holds event files. Files that are
    damaged or cannot be read count as far as they go.
    """
    path = Path(path).absolute()
    start = path if path.is_dir() else path.parent
    for folder in (start, *start.parents[:_LEVELS_UP]):
        files = _event_files(folder)
        if files:
            fills = [fill for file in files[:_MOST_FILES] for fill in _read(file)]
            return sorted(fills, key=lambda fill: fill.wall_time)
    return []


def with_queue_fill(trace: Trace, path: str | os.PathLike[str]) -> Trace:
    """A trace of TensorFlow with the fill of its queues as counters, where that was recorded around its time.

    A trace that has them already (a saved one) stays as it is.
    """
    origin, slices = trace.info.origin_epoch_ns, trace.slices
    told = TRACK in trace.strings and trace.strings.index(TRACK) in trace.tracks.process
    if told or trace.info.framework != "TensorFlow" or origin is None or not len(slices):
        return trace
    last = int((slices.start_ns + slices.dur_ns).max())
    times = [(fill, round(fill.wall_time * 1e9) - origin) for fill in queue_fill(path)]
    near = [(fill, at) for fill, at in times if int(slices.start_ns.min()) - NEAR_NS <= at <= last + NEAR_NS]
    return _with_counters(trace, near) if near else trace


def _with_counters(trace: Trace, readings: list[tuple[Fill, int]]) -> Trace:
    """The trace with further counters, on a track of their own."""
    texts = dict.fromkeys((TRACK, *(fill.tag for fill, _ in readings)))
    strings = (*trace.strings, *(text for text in texts if text not in set(trace.strings)))
    code = {text: strings.index(text) for text in texts}
    size = len(readings)
    tracks = _extended(trace.tracks, ([t.TrackKind.OTHER], [code[TRACK]], [-1], [-1], [-1], [t.NULL]))
    counters = _extended(
        trace.counters,
        (
            [at for _, at in readings],
            [len(trace.tracks)] * size,
            [code[fill.tag] for fill, _ in readings],
            [fill.value for fill, _ in readings],
            [t.NULL] * size,
        ),
    )
    counted = dataclasses.replace(trace, strings=strings, tracks=tracks, counters=counters)
    check(counted)
    return counted


def _extended(table: TableT, columns: Sequence[Sequence[float]]) -> TableT:
    """A table with further rows, read-only."""
    made = []
    for declared, column in zip(dataclasses.fields(table), columns, strict=True):
        values = np.append(getattr(table, declared.name), np.array(column, t.dtype_of(declared)))
        values.setflags(write=False)
        made.append(values)
    return type(table)(*made)


# --- event files --------------------------------------------------------------------------------------------------


def _event_files(folder: Path) -> list[Path]:
    """The event files of a folder, those written last first."""
    try:
        files = [(entry.stat().st_mtime, entry) for entry in folder.glob(PATTERN) if entry.is_file()]
    except OSError:
        return []
    return [entry for _, entry in sorted(files, key=lambda pair: pair[0], reverse=True)]


def _read(path: Path) -> list[Fill]:
    try:
        with path.open("rb") as file:
            return [fill for record in _records(file) for fill in _fills(record)]
    except OSError:
        return []


def _records(file: BinaryIO) -> Iterator[bytes]:
    """The records of a TFRecord file that may speak of a queue, up to where it stops making sense."""
    while len(header := file.read(12)) == 12 and file.tell() < _MOST_BYTES:
        size, checksum = struct.unpack("<QI", header)
        if checksum != _masked_crc(header[:8]):
            return
        if size > _MOST_BYTES:
            return
        if size > _LARGEST_RECORD:
            file.seek(size + 4, os.SEEK_CUR)
            continue
        record = file.read(size)
        if len(record) < size:
            return
        file.seek(4, os.SEEK_CUR)
        if b"_full" in record:
            yield record


def _masked_crc(data: bytes) -> int:
    """TFRecord's checksum: CRC-32C, rotated and shifted so that checksums of checksums differ."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _fills(event: bytes) -> Iterator[Fill]:
    """The fills that an ``Event`` (wall_time=1, summary=5) holds."""
    told = dict(fields(event))
    time, summary = told.get(1), told.get(5)
    if not isinstance(time, bytes) or len(time) != 8 or not isinstance(summary, bytes):
        return
    seconds = struct.unpack("<d", time)[0]
    if not math.isfinite(seconds * 1e9):
        return
    for number, value in fields(summary):
        about = dict(fields(value)) if number == 1 and isinstance(value, bytes) else {}
        tag = about.get(1)
        share = _scalar(about.get(2), about.get(8))
        if isinstance(tag, bytes) and share is not None and QUEUE_TAG.search(name := tag.decode("utf-8", "replace")):
            yield Fill(name, seconds, share)


def _scalar(simple: int | bytes | None, tensor: int | bytes | None) -> float | None:
    """A summary's number: ``simple_value``, or a tensor of one float or double."""
    if isinstance(simple, bytes) and len(simple) == 4:
        return _finite(struct.unpack("<f", simple)[0])
    told = dict(fields(tensor)) if isinstance(tensor, bytes) else {}
    form, size = {_DT_FLOAT: ("<f", 4), _DT_DOUBLE: ("<d", 8)}.get(told.get(1), ("", 0))  # type: ignore[arg-type]
    for number in (4, 5, 6):  # tensor_content, float_val, double_val
        content = told.get(number)
        if form and isinstance(content, bytes) and len(content) == size:
            return _finite(struct.unpack(form, content)[0])
    return None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
