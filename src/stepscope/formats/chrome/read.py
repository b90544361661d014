"""The reader of Chrome-trace JSON: scan once, ask the dialects in order what the events are, let the first convert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from stepscope.formats import foreign
from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.chrome.samples import with_samples
from stepscope.formats.chrome.scan import read_arguments as arguments
from stepscope.formats.chrome.scan import read_events
from stepscope.inputs.source import Source
from stepscope.trace.trace import ANY_EVENTS, Trace


@dataclass(frozen=True, slots=True)
class Dialect:
    """One producer's way to write Chrome-trace JSON, told by what the events hold."""

    name: str
    """What ``Info.format`` says."""
    home: str
    """The module among the readers that has ``recognise`` and ``to_trace``; imported when it is asked."""

    def recognise(self, events: RawEvents) -> bool:
        """Whether the events are this producer's."""
        return bool(self._home.recognise(events))

    def to_trace(self, events: RawEvents) -> Trace:
        """The trace of this producer's events."""
        trace: Trace = self._home.to_trace(events)
        return trace

    @property
    def _home(self) -> Any:
        return import_module(f"stepscope.formats.{self.home}")


DIALECTS: tuple[Dialect, ...] = (
    Dialect("Kineto JSON", "chrome.kineto"),
    Dialect("TensorFlow Timeline", "tf1.timeline"),
    Dialect("XLA trace JSON", "chrome.xla"),
    Dialect(ANY_EVENTS, "chrome.generic"),
)
"""Asked in this order; the last takes everything."""


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
    return next(dialect for dialect in DIALECTS if dialect.recognise(events)).to_trace(events)


__all__ = ["DIALECTS", "Dialect", "arguments", "convert", "read"]
