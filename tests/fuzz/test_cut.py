"""A file cut off at any byte gives its whole events, and never fewer than a shorter part of it gave.

Formats whose rows do not say where they lie in the file, or that are refused when cut, have tests of their own beside
their readers' tests, as has the exact set of events that precede a cut of raw text, an XPlane or StepStats.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope import pipeline
from stepscope.errors import InputError
from stepscope.formats.beside.summaries import queue_fill
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Trace
from tests.fuzz import records
from tests.fuzz.targets import TARGETS
from tests.kit.some import some

TEXT = [(name, at) for at in (0, 1) for name in ("kineto", "chrome", "xla_json", "timeline")]
OTHERS = [
    ("nsys", 0),
    ("xplane", 0),
    ("step_stats", 0),
    ("gzip", 0),
    ("zip", 0),
    ("nsys", 1),
    ("gzip", 1),
    ("gzip", 5),
    ("zip", 2),
    ("zip", 4),
]


@pytest.fixture(params=[15, pytest.param(1500, marks=pytest.mark.slow)])
def most(request: pytest.FixtureRequest) -> int:
    """Cuts of one file: smaller ones are cut at every byte where there is time."""
    return int(request.param)


def cuts(data: bytes, most: int) -> list[int]:
    stride = len(data) // most + 1
    return [*range(1 + len(data) % stride, len(data), stride)]


def offsets(trace: Trace) -> set[int]:
    """Where the events stand that became slices, instants or counters."""
    found = {*trace.slices.offset.tolist(), *trace.instants.offset.tolist(), *trace.counters.offset.tolist()}
    return found - {NULL}


def opened(path: Path, data: bytes) -> Trace | None:
    path.write_bytes(data)
    try:
        return pipeline.open(path).trace
    except InputError:
        return None


@pytest.mark.parametrize(("name", "seed"), some(TEXT, 4, several=True))
def test_every_event_before_the_cut_is_there(tmp_path: Path, most: int, name: str, seed: int) -> None:
    data = TARGETS[name].seeds()[seed]
    whole = opened(tmp_path / "trace", data)
    assert whole is not None
    text, decoder = data.decode("latin-1"), json.JSONDecoder(strict=False)
    ends = {begin: decoder.raw_decode(text, begin)[1] for begin in offsets(whole)}
    for cut in cuts(data.rstrip(), most):
        trace = opened(tmp_path / "trace", data[:cut])
        expected = {begin for begin, end in ends.items() if end <= cut}
        if trace is None:
            assert not expected, cut
            continue
        assert offsets(trace) >= expected, cut
        assert len(offsets(trace) - expected) <= 1, cut  # a timeline's duplicate whose original is gone
        assert not trace.completeness.complete, cut


@pytest.mark.parametrize(("name", "seed"), some(OTHERS, 5, several=True))
def test_a_longer_part_never_gives_less(tmp_path: Path, most: int, name: str, seed: int) -> None:
    data = TARGETS[name].seeds()[seed]
    before = 0
    for cut in [*cuts(data, most), len(data)]:
        trace = opened(tmp_path / "trace", data[:cut])
        found = sum(trace.completeness.rows.values()) if trace is not None else 0
        assert found >= before, cut
        before = found
    assert before > 5


def test_summaries_up_to_the_cut(tmp_path: Path) -> None:
    events = [records.record(records.scalar("input/fraction_of_32_full", 100.0 + k, k / 4)) for k in range(4)]
    data = b"".join(events)
    for cut in range(len(data) + 1):
        (tmp_path / "events.out.tfevents.1").write_bytes(data[:cut])
        expected = [
            k / 4 for k in range(4) if sum(map(len, events[: k + 1])) - 4 <= cut
        ]  # the last checksum is not needed
        assert [fill.value for fill in queue_fill(tmp_path)] == expected, cut
