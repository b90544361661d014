"""The reader of Chrome-trace JSON: scan once, ask the dialects in order what the events are, let the first convert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.readers import foreign, kineto, timeline
from stepscope.readers.chrome import generic, xla
from stepscope.readers.chrome.samples import with_samples
from stepscope.readers.events import RawEvents
from stepscope.readers.scan import read_events
from stepscope.readers.source import Source
from stepscope.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Dialect:
    """One producer's way to write Chrome-trace JSON, told by what the events hold."""

    name: str
    """What ``Info.format`` says."""
    recognise: Callable[[RawEvents], bool]
    convert: Callable[[RawEvents], Trace]


DIALECTS: tuple[Dialect, ...] = (
    Dialect("Kineto JSON", kineto.recognise, kineto.to_trace),
    Dialect(timeline.FORMAT, timeline.recognise, timeline.convert),
    Dialect(xla.FORMAT, xla.recognise, xla.to_trace),
    Dialect(generic.FORMAT, lambda events: True, generic.to_trace),
)
"""Asked in this order; the last takes everything."""


def recognise(head: bytes) -> bool:
    """Whether a file begins like Chrome-trace JSON: an object or a list, after blanks or a byte-order mark."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read a Chrome trace of any dialect.

    Raises InputError where the content is no trace JSON at all, or holds no usable event.
    """
    trace = convert(with_samples(read_events(source, progress), source))
    if len(trace.slices) == 0:
        raise foreign.empty(source.path, trace.completeness.losses)
    return trace


def convert(events: RawEvents) -> Trace:
    """The trace of raw events, by the first dialect that knows them."""
    return next(dialect for dialect in DIALECTS if dialect.recognise(events)).convert(events)
