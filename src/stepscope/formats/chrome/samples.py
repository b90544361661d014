"""What counter events say: the numbers in their ``args``, read again from the file because any key may hold one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from stepscope.formats.chrome.events import RawEvents, Samples
from stepscope.formats.chrome.pairs import id_text, id_values, ranks
from stepscope.formats.chrome.scan import parse_arguments
from stepscope.inputs.source import Source, fill
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.codes import marked, without

_BLOCK = 1 << 20
_LONGEST = 1 << 16
"""Bytes of one counter event that are looked at."""
_AT_ONCE = 4096


def with_samples(events: RawEvents, source: Source) -> RawEvents:
    """The events with the values of those that are counters. Raises InputError where the file cannot be read again."""
    rows = np.flatnonzero(events.phase == ord("C"))
    if rows.size == 0:
        return events
    # Events lie in file order, so one ends before the next begins.
    ends = np.append(events.offset[1:], events.total_bytes)[rows]
    numbers: list[tuple[int, str, float]] = []
    spans = list(zip(events.offset[rows].tolist(), ends.tolist(), strict=True))
    texts = _texts(source, spans)
    for low in range(0, rows.size, _AT_ONCE):
        block = [text for _, text in zip(range(_AT_ONCE), texts, strict=False)]
        for row, args in zip(rows[low : low + _AT_ONCE].tolist(), _arguments(block), strict=False):
            numbers += [(row, key, value) for key, given in args.items() if (value := _number(given)) is not None]
    names = {key: code for code, key in enumerate(dict.fromkeys(key for _, key, _ in numbers))}
    samples = Samples(
        np.array([row for row, _, _ in numbers], np.int32),
        np.array([names[key] for _, key, _ in numbers], np.int32),
        np.array([value for _, _, value in numbers], np.float64),
        list(names),
    )
    return dataclasses.replace(events, samples=samples)


def series_names(events: RawEvents, rows: t.Rows, builder: TraceBuilder) -> tuple[t.Rows, t.I32, t.F64]:
    """Per series of the counter events ``rows``: event, name (dictionary code) and value; NaN where there is none.

    A counter is called by its name (and ``id``); where it has several series, by that and the series.
    """
    samples = events.samples
    wanted = marked(rows, len(events))
    kept = np.flatnonzero(wanted[samples.rows])
    silent = without(rows, samples.rows)
    event = np.concatenate((samples.rows[kept], silent))
    order = np.argsort(event, kind="stable")
    series = np.concatenate((samples.series[kept], np.full(silent.size, -1, np.int32)))[order]
    value = np.concatenate((samples.values[kept], np.full(silent.size, np.nan)))[order]
    event = event[order]
    ids = id_values(events, event)
    counter = ranks(ids, events.name[event])
    key, first = np.unique(ranks(series, counter), return_index=True)
    several = np.bincount(counter[first][series[first] >= 0], minlength=int(counter.max(initial=0)) + 1) > 1
    codes = [
        builder.text(_called(events, int(event[at]), samples.names[series[at]] if several[counter[at]] else None))
        for at in first.tolist()
    ]
    return event.astype(np.intp), np.array(codes, np.int32)[ranks(series, counter)] if len(key) else key, value


def _called(events: RawEvents, row: int, series: str | None) -> str:
    instance = id_text(events, row)
    name = events.strings[events.name[row]] + (f"[{instance}]" if instance else "")
    return name if series is None else f"{name}: {series}"


class _Counter(msgspec.Struct):
    args: Any = None


_decode = msgspec.json.Decoder(list[_Counter]).decode


def _arguments(texts: list[bytes]) -> Iterator[dict[str, Any]]:
    """The arguments of each event: all at once, or one by one where damage lies among them."""
    try:
        for event in _decode(b"[" + b",".join(text.rstrip(b" \t\r\n,") for text in texts) + b"]"):
            yield event.args if isinstance(event.args, dict) else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        yield from map(parse_arguments, texts)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _texts(source: Source, spans: list[tuple[int, int]]) -> Iterator[bytes]:
    """The bytes of each span (rising, apart), each cut at ``_LONGEST``."""
    with source.stream() as stream:
        held, base, ended = bytearray(), 0, False
        for start, end in spans:
            end = min(end, start + _LONGEST)
            while base + len(held) < end and not ended:
                if base + len(held) <= start:
                    base += len(held)
                    held.clear()
                block = bytearray(_BLOCK)
                got = fill(stream, memoryview(block))
                ended = got < len(block)
                held += memoryview(block)[:got]
            del held[: max(start - base, 0)]
            base = max(start, base)
            yield bytes(held[: end - start])
