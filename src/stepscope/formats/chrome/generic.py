"""Chrome-trace JSON of any other producer: ranges on threads, counters, instants and arrows, as they are drawn.

Supported: events of phases X, B/E, b/n/e, S/T/F, C, i/I/R, s/t/f and M. Python functions recorded by VizTracer
(category ``FEE``) become Python frames. Nothing here is known to run on a device. Objects (N, O, D), samples (P) and
memory dumps (v, V) are counted, not read.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from stepscope.formats.chrome.conversion import Conversion
from stepscope.formats.chrome.events import Filled, RawEvents
from stepscope.formats.chrome.kineto_schema import describe_run, whole
from stepscope.formats.chrome.threads import host_track, labels_of, process_names, tracks_of_lanes
from stepscope.names.hosts import step_marker
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.codes import mapped
from stepscope.trace.trace import ANY_EVENTS, Info

PYTHON_CATEGORY = "FEE"
"""VizTracer's "function entry and exit"."""

_FUNCTION = regex(r"(?P<name>[^\s(]+) \((?P<file>.*):(?P<line>\d+)\)$", re.DOTALL)
_RANGE = regex(r"(?P<name>.*) \(.*:\d+\)$", re.DOTALL)
"""A range that the user named, which may hold blanks, and its place."""
_BUILT_IN = regex(r"(?:builtins|gc)\.(\w+)$")
_LONGEST = 4_096


def recognise(_events: RawEvents) -> bool:
    """Any events: this dialect is asked last."""
    return True


def fill(events: RawEvents) -> Filled:
    """Make the tables of the raw events; every event ends in one or in the completeness record."""
    return _Conversion(events).filled()


class _Conversion(Conversion):
    """Any producer's events on their way into the tables."""

    def kinds_of_events(self) -> t.U8:
        e = self.events
        kinds = np.full(len(e), t.Kind.ANNOTATION, np.uint8)
        kinds[mapped(e.name, e.strings, _is_step, np.bool_)] = t.Kind.STEP
        python = np.flatnonzero((e.category == self._python_category()) & (e.name >= 0))
        kinds[python] = mapped(e.name[python], e.strings, _python_kind, np.uint8)
        return kinds

    def _python_category(self) -> int:
        strings = self.events.strings
        return strings.index(PYTHON_CATEGORY) if PYTHON_CATEGORY in strings else len(strings)

    def names(self, rows: t.Rows) -> t.I32:
        names = self.events.name[rows]
        python = np.flatnonzero(self.events.category[rows] == self._python_category())
        if python.size == 0:
            return names
        names = names.copy()
        strings = self.events.strings
        names[python] = mapped(names[python], strings, lambda text: self.builder.text(python_name(text)), np.int32)
        return names

    def tracks(self) -> t.I32:
        processes, labels = process_names(self), labels_of(self)
        return tracks_of_lanes(self, lambda lane, held: host_track(self, lane, held, processes, labels))

    def info(self) -> Info:
        header = self.events.header
        viztracer = header.get("viztracer_metadata")
        if isinstance(viztracer, dict) and whole(viztracer.get("baseTimeNanoseconds")) is not None:
            header = {"baseTimeNanoseconds": viztracer["baseTimeNanoseconds"]} | header
        run = describe_run(header, self.origin, self.sorting.resolution_ns)
        return dataclasses.replace(run, format=ANY_EVENTS, framework=None, devices=(), header=self.events.header)


def python_name(text: str) -> str:
    """VizTracer's name of a function as PyTorch writes Python frames; the step of a named range without its place.

    >>> python_name("Net.forward (/srv/net.py:12)"), python_name("builtins.len"), python_name("train 3 (a.py:1)")
    ('/srv/net.py(12): Net.forward', '<built-in function len>', 'train 3')
    """
    if len(text) > _LONGEST:
        return text
    if match := _BUILT_IN.match(text):
        return f"<built-in function {match[1]}>"
    if match := _FUNCTION.match(text):
        return f"{match['file']}({match['line']}): {match['name']}"
    match = _RANGE.match(text)
    return match["name"] if match and step_marker(match["name"]) else text


def _python_kind(text: str) -> t.Kind:
    """Functions have no blank in their names; ranges that the user named may."""
    if _FUNCTION.match(text) or " " not in text:
        return t.Kind.PYTHON_FRAME
    match = _RANGE.match(text[:_LONGEST])
    return t.Kind.STEP if match and _is_step(match["name"]) else t.Kind.ANNOTATION


def _is_step(name: str) -> bool:
    return step_marker(name) is not None
