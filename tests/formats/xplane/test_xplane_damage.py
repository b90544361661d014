"""Damaged and hostile XPlane files: whole events are kept, what is lost is counted, nothing crashes."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepscope.errors import InputError
from stepscope.formats.readers import READERS
from stepscope.formats.xplane import read as xplane
from stepscope.inputs.source import Source
from stepscope.trace.trace import Trace
from tests.formats.xplane.xplane_files import US, nvidia, processor, read, rows, tpu
from tests.kit.some import some
from tests.kit.traces import real_trace
from tests.kit.wire import message, read_varint, varint
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

SMALL = space(
    Plane("/host:CPU", (
        line("python", Ev("train", 0, 9 * US, {"step_num": 1, "_r": 1}), Ev("$a.py:1 f", US, US), id=1),
        line("pool", Ev("ThreadpoolListener::Record", US, 0, {"_pt": 1, "_p": 2}), Ev("x::y", US, US, {"k": "v"}),
             id=2),
    ), {"n": 1}),
    Plane("/device:GPU:0", (line("Stream #1(Kernel)", Ev("k", US, US, {"correlation_id": Unsigned(3)}), id=1),)),
    hosts=("vm",),
)  # fmt: skip


def tags(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of every field of a sound message."""
    at = start
    while at < end:
        key, at = read_varint(data, at)
        value, at = read_varint(data, at) if key & 7 in (0, 2) else (8, at)
        begin = at
        at += value if key & 7 else 0
        yield key >> 3, begin, at


def events_of(data: bytes) -> list[tuple[int, int]]:
    """Where the events of a sound file lie."""
    found = []
    for plane, start, end in tags(data, 0, len(data)):
        for field, begin, stop in tags(data, start, end) if plane == 1 else ():
            if field == 3:
                found += [(a, b) for number, a, b in tags(data, begin, stop) if number == 4]
    return found


def assert_accounted(trace: Trace) -> None:
    """Every event is in a table or lost."""
    lost = sum(loss.lost_events for loss in trace.completeness.losses)
    assert sum(trace.completeness.rows.values()) + lost == trace.completeness.events
    held = (trace.slices, trace.instants, trace.memory, trace.counters)
    assert sum(map(len, held)) == sum(trace.completeness.rows.values())


@pytest.mark.parametrize("stride", some([5, 1], 1))
def test_a_file_cut_anywhere_keeps_every_whole_event(stride: int) -> None:
    whole = read(SMALL)
    events = events_of(SMALL)
    assert sorted(whole.slices.offset.tolist() + whole.instants.offset.tolist()) == [start for start, _ in events]
    for cut in range(1, len(SMALL), stride):
        kept = [start for start, end in events if end <= cut]
        begun = any(start < cut < end for start, end in events)
        if not kept:
            with pytest.raises(InputError):
                read(SMALL[:cut])
            continue
        trace = read(SMALL[:cut])
        assert_accounted(trace)
        assert sorted(trace.slices.offset.tolist() + trace.instants.offset.tolist()) == kept, cut
        lost = sum(loss.lost_events for loss in trace.completeness.losses)
        assert lost == begun or (lost == 1 and not begun), cut  # cut in the length of an event
        at_the_end_of_a_field = any(cut == end for _, _, end in tags(SMALL, 0, len(SMALL)))
        assert trace.completeness.complete == at_the_end_of_a_field, cut


def test_events_whose_names_are_behind_the_cut_are_called_by_their_number() -> None:
    cut = events_of(SMALL)[-1][1]
    trace = read(SMALL[:cut])
    names = [trace.strings[code] for code in trace.slices.name]
    assert "event 1 (name lost)" in names
    (loss,) = (loss for loss in trace.completeness.losses if loss.code == "names_lost")
    assert (loss.count, loss.lost_events, loss.damaged, loss.first_offset) == (1, 0, True, events_of(SMALL)[-1][0])
    assert rows(trace, "device", table="device_ops") == [(0,)]


@pytest.mark.parametrize(("event", "code", "damaged"), [
    (message((1, 1), (2, 5), (3, -7)), "duration_negative", False),
    (message((1, 1), (2, (1 << 63) - 5), (3, 99_000)), "time_out_of_range", False),
    (message((1, 1), (5, 12), (3, 99_000)), "event_aggregated", False),
    (message((1, 1), (2, 99_000)) + b"\x1f", "event_damaged", True),
    (message((1, 1), (2, 99_000), (3, 5)) + varint(4 << 3 | 2) + b"\x7f", "event_damaged", True),
    (message((1, 1), (2, 10**17), (3, 5)), "time_out_of_range", False),
    (message((1, 1), (2, 99), (3, 86_400 * 10**12)), "time_out_of_range", False),
])  # fmt: skip
def test_events_that_cannot_become_rows_are_counted(event: bytes, code: str, damaged: bool) -> None:
    good = message((1, 1), (2, 3_000), (3, 2_000))
    names = message((1, 1), (2, message((1, 1), (2, "a"))))
    lines = message((1, 7), (2, "python"), (4, good), (4, event), (4, good))
    trace = read(message((1, message((2, "/host:CPU"), (3, lines), (4, names)))))
    assert_accounted(trace)
    assert len(trace.slices) == 2
    (loss,) = trace.completeness.losses
    assert (loss.code, loss.count, loss.lost_events, loss.damaged) == (code, 1, 1, damaged)


def test_wrong_wire_types_are_passed_over() -> None:
    event = message((1, 1), (1, "name"), (2, 1.5), (2, 3_000), (3, b"x"), (3, 2_000), (4, 9), (5, b""), (99, "new"))
    plane = message((2, 5), (2, "/host:CPU"), (1, "id"), (3, message((1, "id"), (2, "python"), (3, 1.0), (4, event))))
    trace = read(message((1, plane)))
    assert rows(trace, "name", "dur_ns") == [("event 1 (name lost)", 2)]


def test_texts_that_are_no_utf_8_and_very_long_names() -> None:
    long = "n" * 10**6
    names = [message((1, 1), (2, message((1, 1), (2, b"\xff\xfe")))), message((1, 2), (2, message((1, 2), (2, long))))]
    events = [message((1, id), (2, id * 10_000), (3, 2_000)) for id in (1, 2)]
    lines = message((2, "python"), *((4, event) for event in events))
    trace = read(message((1, message((2, "/host:CPU"), (3, lines), *((4, name) for name in names)))))
    assert [name for (name,) in rows(trace, "name")] == ["\ufffd\ufffd", long]


def test_ids_of_any_size() -> None:
    ids = [1 << 62, -5, (1 << 63) - 1, 0]
    names = [message((1, id), (2, message((1, id), (2, f"name {id}")))) for id in ids]
    events = [message((1, id), (2, at * 10_000), (3, 2_000)) for at, id in enumerate(ids)]
    lines = message((1, 1 - (1 << 63)), (2, "python"), *((4, event) for event in events))
    trace = read(message((1, message((2, "/host:CPU"), (3, lines), *((4, name) for name in names)))))
    assert [name for (name,) in rows(trace, "name")] == [f"name {id}" for id in ids]
    assert rows(trace, "thread", table="tracks") == [(str(1 - (1 << 63)),)]


def test_a_compressed_file_that_was_cut_keeps_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb.gz"
    path.write_bytes(gzip.compress(SMALL)[:-30])
    trace = xplane.read(Source(path))
    assert not trace.completeness.complete
    assert any(loss.code == "gzip_truncated" for loss in trace.completeness.losses)


def assert_read_or_refused(data: bytes) -> None:
    try:
        trace = read(data)
    except InputError:
        return
    assert_accounted(trace)


@given(st.binary(min_size=1, max_size=300))
def test_any_bytes(data: bytes) -> None:
    assert_read_or_refused(data)
    xplane.recognise(data)


@given(data=st.data(), file=st.sampled_from([SMALL, nvidia(), tpu(), processor()]))
def test_changed_bytes(data: st.DataObject, file: bytes) -> None:
    changed = bytearray(file)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        kind = data.draw(st.sampled_from(["set", "delete", "insert"]))
        piece = data.draw(st.binary(min_size=1, max_size=4))
        changed[at : at + (len(piece) if kind == "set" else kind == "delete")] = b"" if kind == "delete" else piece
    assert_read_or_refused(bytes(changed))
    xplane.recognise(bytes(changed))


NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(st.tuples(NUMBERS, st.integers(0, (1 << 63) - 1)), min_size=1, max_size=6), NUMBERS)
@example([(0, (1 << 62) - 1), ((1 << 62) - 1, 5)], 0)
def test_any_times(events: list[tuple[int, int]], time_ns: int) -> None:
    drawn = line("t", *(Ev("a", *event) for event in events), time_ns=time_ns)
    assert_read_or_refused(space(Plane("/host:CPU", (drawn,))))


@pytest.mark.parametrize("data", [SMALL, nvidia(), tpu(), processor(), space(Plane("Task Environment"))])
def test_it_is_recognised_by_its_content_alone(data: bytes) -> None:
    recognising = [reader.name for reader in READERS if reader.recognise(data[:65_536])]
    assert recognising[0] == "XPlane"
    for cut in range(40, min(len(data), 300)):
        assert xplane.recognise(data[:cut])


NODE = message((1, "node"), (2, 5))
STEP_STATS = message((1, message((1, "/job:localhost/replica:0/task:0/device:CPU:0"), (2, NODE))))


@pytest.mark.parametrize("data", [
    b"", b"\n", b'{"traceEvents": []}', b'\n{"traceEvents": [{"ph": "X", "name": "a"}]}', b"\n\n[1]", b"\n" * 8,
    b"SQLite format 3\x00", b"\x1f\x8b\x08\x00", b"\n\x10hello world, text", STEP_STATS, message((1, STEP_STATS)),
    message((1, message((1, 5), (2, 3)))), message((1, message((1, "graph"), (2, "node")))), bytes(range(256)),
    b"\x0a\x00",
])  # fmt: skip
def test_other_content_is_not_taken_for_it(data: bytes) -> None:
    assert not xplane.recognise(data)


@pytest.mark.real
@pytest.mark.parametrize("name", ["timeline/tf1_run_metadata.pb", "profiler_service/xprof_ProfileRequest.bin"])
def test_messages_of_tensorflow_are_not_taken_for_it(name: str) -> None:
    assert not xplane.recognise(real_trace(name).read_bytes()[:65_536])


def test_files_made_to_fill_the_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = importlib.import_module("stepscope.formats.xplane.read")
    monkeypatch.setattr(reading, "MOST_LINES", 100)
    monkeypatch.setattr(reading, "MANY_EVENTS", 100)
    path = tmp_path / "dust.pb"
    for dust in (b"\x0a\x03\x12\x01a" * 200, message((1, message((2, "/host:CPU"), (3, b"\x22\x00" * 200))))):
        path.write_bytes(dust)
        with pytest.raises(InputError, match="as no profile does"):
            xplane.read(Source(path))
