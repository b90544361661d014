"""The reader of Chrome-trace JSON: scan once, ask the dialects in order what the events are, let the first convert."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.formats import foreign
from stepscope.formats.chrome.dialects import DIALECTS
from stepscope.formats.chrome.events import Filled, RawEvents
from stepscope.formats.chrome.samples import with_samples
from stepscope.formats.chrome.scan import read_arguments as arguments
from stepscope.formats.chrome.scan import read_events
from stepscope.inputs.source import Source
from stepscope.trace.trace import Trace


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read a Chrome trace of any dialect.

    Raises InputError where the content is no trace JSON at all, or holds no usable event.
    """
    filled = _fill(with_samples(read_events(source, progress), source))
    trace = filled()  # by now the events are gone
    if len(trace.slices) == 0:
        raise foreign.empty(source.path, trace.completeness.losses)
    return trace


def _fill(events: RawEvents) -> Filled:
    """The tables of raw events, by the first dialect that knows them."""
    return next(dialect for dialect in DIALECTS if dialect.recognise(events)).fill(events)


__all__ = ["arguments", "read"]
