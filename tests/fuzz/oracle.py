"""What must hold whatever a file holds: it is read, or refused in one sentence; a trace keeps every promise."""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from stepscope import pipeline
from stepscope.errors import InputError, OutputError, StepscopeError, UsageError
from stepscope.formats.writers import WRITERS
from stepscope.report import markdown, terminal
from stepscope.trace import saved
from stepscope.trace.check import fault_of
from stepscope.trace.tables import NULL, TABLES
from stepscope.trace.trace import Trace

Patches = Mapping[str, object]
"""Settings, by where they are found."""

_LONGEST_SENTENCE = 600


def depth_of(number: int) -> int:
    """How deep input ``number`` is examined: every fourth is diagnosed, every sixteenth also exported."""
    return (number % 4 == 0) + (number % 16 == 0)


@contextmanager
def patched(patches: Patches) -> Iterator[None]:
    """Settings in force."""
    with ExitStack() as stack:
        for name, value in patches.items():
            stack.enter_context(mock.patch(name, value))
        yield


def examine(path: Path, variants: tuple[Patches, ...] = ({},), *, depth: int = 2) -> str:
    """Read a file under every variant, which must not matter; what became of it, in words without numbers.

    From ``depth`` 1 on the diagnosis is made, arguments are read again and the trace is saved; at 2 reports are
    rendered and the trace is cut and exported, too. Anything but an InputError that is raised (a failed assertion, an
    exception, a warning turned into one) is a defect.
    """
    outcomes = []
    for variant in variants:
        with patched(variant):
            outcomes.append(_opened(path))
    first = outcomes[0]
    for other in outcomes[1:]:
        assert type(first) is type(other), f"one way of reading gives {first}, another {other}"
        if isinstance(first, list):
            for one, two in zip(first, other, strict=True):
                assert_alike(two.trace, one.trace)
        else:
            assert first == other
    if isinstance(first, str):
        return f"refused: {words(first.partition(': ')[2])}"
    for profile in first:
        check_trace(profile.trace)
        if depth > 0:
            _check_profile(profile)
        if depth > 1:
            _check_outputs(profile)
    return " + ".join(_shape(profile.trace) for profile in first)


def _opened(path: Path) -> list[pipeline.Profile] | str:
    """The profiles a path leads to, or the sentence that refuses it."""
    try:
        return list(pipeline.open_all(str(path)))
    except InputError as error:
        sentence = error.sentence
        assert sentence.startswith(str(path)), f"does not begin with the path: {sentence}"
        assert_sentence(error, beside=len(str(path)))
        return sentence


def assert_sentence(error: StepscopeError, beside: int = 0) -> None:
    """What a user is told is one line, and not too long beside so many characters that are the user's own."""
    assert "\n" not in error.sentence, f"more than a line: {error.sentence}"
    assert len(error.sentence) <= _LONGEST_SENTENCE + beside, f"too long: {error.sentence}"


def check_trace(trace: Trace) -> None:
    fault = fault_of(trace)
    assert not fault, fault
    completeness = trace.completeness
    assert sum(completeness.rows.values()) <= completeness.events, completeness
    for loss in completeness.losses:
        assert loss.count >= 0, loss
        assert loss.lost_events >= 0, loss
        assert loss.lost_bytes >= 0, loss
        assert loss.first_offset is None or loss.first_offset >= 0, loss


def _check_profile(profile: pipeline.Profile) -> None:
    document = profile.document()
    json.dumps(document)
    for row in document["accounting"]:
        assert sum(row["parts"].values()) == row["dur_ns"], row
    trace = profile.trace
    offsets = trace.slices.offset
    try:
        found = profile.arguments(range(min(len(offsets), 5)))
        assert all(isinstance(arguments, dict) for arguments in found)
    except InputError:
        assert trace.info.source is not None  # its original is somewhere else, or says no more than the tables
    data = np.frombuffer(b"".join(saved.pack(trace)), np.uint8)
    assert_same(saved.unpack(data), trace)


def _check_outputs(profile: pipeline.Profile) -> None:
    """Reports and pages are rendered, a part is cut out, and what is exported can be read."""
    document = profile.document()
    for verbose in (False, True):
        terminal.render(document, verbose=verbose)
        markdown.render(document, verbose=verbose)
    assert profile.html().startswith("<!doctype html>")
    trace = profile.trace
    with tempfile.TemporaryDirectory() as folder:
        for writer in WRITERS:
            out = Path(folder, f"out{writer.suffixes[0]}")
            try:
                writer.write(trace, out)
            except OutputError:
                continue
            if out.is_file():
                check_trace(pipeline.open(out).trace)
    try:
        part = profile.slice(time_ns=(0, 1000), min_dur_ns=5)
    except UsageError:
        return
    check_trace(part.trace)


def assert_alike(one: Trace, other: Trace) -> None:
    """Two traces say the same, though texts may be numbered, and damaged places grouped, differently."""
    left, right = (repr(trace.info) for trace in (one, other))  # NaN is not equal to itself
    assert left == right, f"{left} is not {right}"
    assert one.completeness.rows == other.completeness.rows
    for name, kind in TABLES.items():
        for declared in dataclasses.fields(kind):
            left, right = (_values(trace, name, declared) for trace in (one, other))
            assert left == right, f"{name}.{declared.name}"


def assert_same(one: Trace, other: Trace) -> None:
    """The same, and the texts have the same numbers."""
    assert one.strings == other.strings
    assert_alike(one, other)


def _values(trace: Trace, table: str, declared: dataclasses.Field[Any]) -> Any:
    """A column for comparing, bit for bit."""
    values = getattr(getattr(trace, table), declared.name)
    if not declared.metadata["text"]:
        return values.tobytes()
    return [trace.strings[code] if code >= 0 else None for code in values.tolist()]


def _shape(trace: Trace) -> str:
    """Which kinds of rows and losses a trace has: two inputs that differ here took different ways."""
    tables = [name for name in TABLES if len(getattr(trace, name))]
    linked = [
        name
        for name, column in (("parents", trace.slices.parent), ("ids", trace.slices.correlation))
        if ((column >= 0) & (column != NULL)).any()
    ]
    losses = sorted({loss.code for loss in trace.completeness.losses})
    state = "read" if trace.completeness.complete else "partial"
    return f"{state}: {trace.info.format}: {' '.join(tables + linked)}; {' '.join(losses)}"


def words(sentence: str) -> str:
    """A sentence without what varies from file to file."""
    return re.sub(r"'[^']*'|[0-9][0-9,.]*|[^ -~]+", "_", sentence)
