"""The saved form gives back what was saved, to the bit; anything else in the file is refused in a sentence."""

from __future__ import annotations

import contextlib
import json
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.trace import saved
from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.check import fault_of
from stepscope.trace.trace import Completeness, Info, Trace
from tests.trace.traces import assert_same, traces

PREFIX = struct.Struct("<14sHQQ")


def packed(trace: Trace) -> bytes:
    return b"".join(saved.pack(trace))


def unpacked(data: bytes) -> Trace:
    return saved.unpack(np.frombuffer(data, np.uint8))


def small() -> Trace:
    builder = TraceBuilder(["op", "f\0o", "op", "…"])
    track = builder.track(t.TrackKind.HOST_THREAD, "1", "2")
    builder.slices(
        track=np.full(3, track, np.int32),
        start_ns=np.array([0, 1, 5]),
        dur_ns=np.array([4, 2, 1]),
        name=np.array([0, 1, 2], np.int32),
        kind=np.full(3, t.Kind.HOST_OP, np.uint8),
    )
    builder.table(t.StepMarks(np.array([0], np.int32), np.array([1], np.uint8), np.array([t.NULL])))
    return builder.build(Info("test"), Completeness(3, {"slices": 3}))


def changed(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A saved file with another header, its columns as they were."""
    magic, version, size, columns = PREFIX.unpack_from(data)
    header = json.loads(data[PREFIX.size : PREFIX.size + size])
    change(header)
    text = json.dumps(header).encode()
    prefix = PREFIX.pack(magic, version, len(text), columns)
    return prefix + text + bytes(-(len(prefix) + len(text)) % 64) + data[len(data) - columns :]


def refusal(data: bytes) -> str:
    with pytest.raises(saved.SavedError) as error:
        unpacked(data)
    assert re.fullmatch("is [^\n]+; [^\n;]+", str(error.value))
    return str(error.value)


@given(traces())
def test_a_trace_comes_back_to_the_bit(trace):
    assert_same(unpacked(packed(trace)), trace)


def test_columns_are_views_of_the_file_and_cannot_be_written():
    data = np.frombuffer(packed(small()), np.uint8)
    trace = saved.unpack(data)
    for values in (trace.slices.start_ns, trace.slices.kind, trace.step_marks.number):
        assert np.shares_memory(values, data)
        assert not values.flags.writeable


def test_texts_may_be_twice_there():
    trace = unpacked(packed(small()))
    assert trace.strings[:3] == ("op", "f\0o", "op")
    assert trace.table("slices")["name"].to_list() == ["op", "f\0o", "op"]


def test_an_empty_trace_comes_back():
    trace = TraceBuilder().build(Info("test"), Completeness(0, {}))
    assert_same(unpacked(packed(trace)), trace)


def test_a_file_cut_anywhere_is_refused():
    data = packed(small())
    for size in {0, 1, 33, *range(40, len(data), 97), len(data) - 1}:
        assert "is cut short" in refusal(data[:size])
    assert "lie behind its end" in refusal(data + b"\0")


def test_another_version_is_refused():
    data = bytearray(packed(small()))
    data[14] += 1
    assert refusal(bytes(data)).startswith("is of version 2 of the saved form, this stepscope reads version 1")
    assert refusal(b"x" * 99).startswith("is not a saved trace")


@given(st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_file_with_wrong_bytes_gives_a_valid_trace_or_a_sentence(wrong):
    data = bytearray(packed(small()))
    for place, byte in wrong:
        data[place % len(data)] = byte
    with contextlib.suppress(saved.SavedError):
        assert fault_of(unpacked(bytes(data))) == ""


def column(table: str, name: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda header: header["tables"][table]["columns"][name].update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (column("slices", "start_ns", at=1 << 40), "slices.start_ns lies outside of the file"),
        (column("slices", "start_ns", at=-64), "slices.start_ns lies outside of the file"),
        (column("slices", "start_ns", at=1), "slices.start_ns lies outside of the file"),
        (column("slices", "start_ns", type="<f8"), "slices.start_ns has type <f8"),
        (column("slices", "start_ns", type="O"), "slices.start_ns has type O"),
        (lambda header: header["tables"]["slices"].update(rows=1 << 60), "lies outside of the file"),
        (lambda header: header["tables"]["slices"].update(rows=-1), "lies outside of the file"),
        (lambda header: header["tables"]["tracks"].update(rows=0), "slices.track is out of range"),
        (lambda header: header["strings"].update(rows=1), "the lengths of its texts do not add up"),
        (lambda header: header["strings"]["columns"].pop("text"), "its texts cannot be read"),
        (lambda header: header["tables"]["slices"]["columns"].pop("name"), "column slices.name is missing"),
        (lambda header: header["tables"].update(new={"rows": 0, "columns": {}}), "with the table new"),
        (
            lambda header: header["tables"]["slices"]["columns"].update(new={"at": 0, "type": "<i4"}),
            "with the column slices.new",
        ),
        (lambda header: header["tables"]["slices"]["columns"]["kind"]["labels"].reverse(), "other values of slices"),
        (lambda header: header["info"].update(rank="one"), "its header cannot be read"),
        (lambda header: header.pop("info"), "its header cannot be read"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(change, words):
    assert words in refusal(changed(packed(small()), change))


def test_what_an_older_version_did_not_know_is_empty_or_absent():
    def older(header: dict[str, Any]) -> None:
        del header["tables"]["step_marks"]
        del header["tables"]["slices"]["columns"]["correlation"]
        del header["info"]["host"]
        header["tables"]["slices"]["columns"]["kind"]["labels"].pop()

    trace = unpacked(changed(packed(small()), older))
    assert len(trace.step_marks) == 0
    assert trace.slices.correlation.tolist() == [t.NULL] * 3
    assert fault_of(trace) == ""


def test_absent_columns_cannot_be_longer_than_the_file():
    def bomb(header: dict[str, Any]) -> None:
        header["tables"]["programs"] = {"rows": 1 << 50, "columns": {}}

    assert "column programs.module is missing" in refusal(changed(packed(small()), bomb))


def test_a_header_of_any_length_but_a_sane_one_is_refused_unread():
    data = packed(small())
    magic, version, _, columns = PREFIX.unpack_from(data)
    assert "its header would have" in refusal(PREFIX.pack(magic, version, 1 << 60, columns) + data[PREFIX.size :])


def test_a_header_nested_too_deeply_is_refused():
    text = b"[" * 100_000
    data = PREFIX.pack(saved.MAGIC, saved.VERSION, len(text), 0) + text
    assert "its header cannot be read" in refusal(data + bytes(-len(data) % 64))


def with_programs(*hlo: bytes) -> Trace:
    builder = TraceBuilder(["jit_f"])
    absent = np.full(2, -1, np.int32)
    builder.table(t.Programs(np.array([7, 8]), np.zeros(2, np.int32), absent))
    builder.hlo(hlo)
    return builder.build(Info("test"), Completeness(0, {}))


def test_compiled_programs_come_back_to_the_bit() -> None:
    assert unpacked(packed(with_programs(b"\0\xffprogram", b""))).hlo == (b"\0\xffprogram", b"")
    assert unpacked(packed(with_programs(b"", b""))).hlo == ()


@pytest.mark.parametrize("bend", [
    lambda header: header["hlo"].update(rows=1),
    lambda header: header["hlo"].update(rows=3),
    lambda header: header["hlo"]["columns"].pop("lengths"),
    lambda header: header["hlo"]["columns"]["data"].update(at=1 << 40),
])  # fmt: skip
def test_programs_that_do_not_add_up_are_refused(bend: Callable[[dict[str, Any]], None]) -> None:
    assert "is damaged" in refusal(changed(packed(with_programs(b"one", b"another")), bend))
