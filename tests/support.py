"""From the kit's events, or a file, to facts: what most tests of analyses and rules start with.

What many tests read (real traces, planted cases) is read once in a process: traces and facts cannot be changed.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import stepscope
from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.formats.chrome.kineto import fill
from stepscope.formats.chrome.samples import with_samples
from stepscope.formats.chrome.scan import read_events
from stepscope.inputs.source import Source
from stepscope.trace.tables import Kind, StepMarks
from stepscope.trace.trace import Trace
from tests.kit.drawing import draw
from tests.kit.events import Event
from tests.kit.kineto_writer import write_kineto
from tests.kit.planted import CASES, Planted
from tests.kit.several import SEVERAL
from tests.kit.traces import real_trace


def trace_of_bytes(data: bytes, *, road: str = "auto") -> Trace:
    """Read a profile from memory, the way a file is read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile"
        path.write_bytes(data)
        source = Source(str(path))
        return fill(with_samples(read_events(source, road=road), source))()


def trace_of(events: Sequence[Event]) -> Trace:
    return trace_of_bytes(write_kineto(events))


def facts_of(events: Sequence[Event]) -> Facts:
    return analyse(trace_of(events))


def facts_of_drawing(text: str) -> Facts:
    return facts_of(draw(text))


def read_trace(path: Path) -> Trace:
    source = Source(str(path))
    return fill(with_samples(read_events(source), source))()


@cache
def real_profile(name: str) -> stepscope.Profile:
    """A real trace by its name (``kineto/h100_bert_small.json.gz``); skips the test where it is absent."""
    profile = stepscope.open(real_trace(name))
    assert isinstance(profile, stepscope.Profile)
    return profile


def real_facts(name: str) -> Facts:
    return real_profile(name).facts


@cache
def planted_case(name: str) -> Planted:
    """A planted case, simulated once."""
    return (CASES | SEVERAL)[name]()


@cache
def planted_file(name: str) -> bytes:
    """The profile of a planted case, as PyTorch writes it."""
    return write_kineto(planted_case(name).events)


@cache
def planted_facts(name: str) -> Facts:
    return analyse(trace_of_bytes(planted_file(name)))


def unmarked(trace: Trace) -> Trace:
    """The profile as it were without its step markers."""
    kind = trace.slices.kind.copy()
    kind[kind == Kind.STEP] = Kind.ANNOTATION
    slices = dataclasses.replace(trace.slices, kind=kind)
    return dataclasses.replace(trace, slices=slices, step_marks=StepMarks.empty())
