"""Damaged inputs: what is recovered, what is counted, where; never a crash."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import InputError
from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.chrome.scan import drive, read_arguments, read_events, window
from stepscope.inputs.source import Source
from tests.kit.some import some

from . import scan_reference as reference

ROADS = ["fast", "tolerant"]


def event(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"aten::op{number}",
        "pid": 7,
        "tid": 7,
        "ts": 1000 + number,
        "dur": 5.25,
        "args": {"External id": number, "Input Dims": [[2, number], []], "Fwd": "a"},
    } | changes


def trace(events: list[dict[str, Any]], indent: int | None = 1) -> bytes:
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "distributedInfo": {"rank": 3},
                "traceEvents": events, "traceName": "a.json", "baseTimeNanoseconds": 17}  # fmt: skip
    return json.dumps(document, indent=indent).encode()


EVENTS = [event(number) for number in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damage")


@pytest.fixture(params=ROADS)
def road(request: pytest.FixtureRequest) -> Any:
    return request.param


def read(folder: Path, text: bytes, road: Any) -> RawEvents:
    path = folder / "trace.json"
    path.write_bytes(text)
    return read_events(Source(path), road=road)


def codes(events: RawEvents) -> dict[str, int]:
    return {damage.code: damage.count for damage in events.damages}


def names(events: RawEvents) -> list[str | None]:
    return [events.strings[code] if code >= 0 else None for code in events.name.tolist()]


def lost(events: RawEvents) -> int:
    return sum(damage.lost_events for damage in events.damages)


def spans(text: bytes) -> list[tuple[int, int]]:
    """Where the events of a valid trace stand."""
    decoder, found = json.JSONDecoder(), []
    content = text.decode("latin-1")
    at = content.index("[", content.index('"traceEvents"')) + 1
    while (start := content.find("{", at)) >= 0 and "]" not in content[at:start]:
        at = decoder.raw_decode(content, start)[1]
        found.append((start, at))
    return found


@pytest.mark.parametrize("indent", some([None, 1], 1))
def test_cut_anywhere_keeps_every_whole_event(folder: Path, road: str, indent: int | None) -> None:
    text = trace(EVENTS[:3], indent)
    where = spans(text)
    rows = reference.rows(text)
    begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
    for cut in range(1, len(text)):
        whole = sum(stop <= cut for _, stop in where)
        if cut < begin:
            with pytest.raises(InputError):
                read(folder, text[:cut], road)
            continue
        events = read(folder, text[:cut], road)
        assert reference.columns(events) == rows[:whole], text[:cut][-60:]
        inside = any(start < cut < stop for start, stop in where)
        assert lost(events) == inside
        assert events.damages, "a cut file is never complete"
        assert events.header.get("schemaVersion") == 1


@given(data=st.data())
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("road", ROADS)
def test_one_damaged_byte_costs_its_event_at_most(
    folder: Path, road: str, indent: int | None, data: st.DataObject
) -> None:
    text = trace(EVENTS, indent)
    where = spans(text)
    position = data.draw(st.integers(0, len(text) - 1), label="position")
    byte = bytes([data.draw(st.one_of(st.sampled_from(b'"\\{}[],: \n0e'), st.integers(0, 255)), label="byte")])
    kind = data.draw(st.sampled_from(["flip", "delete", "insert"]), label="kind")
    damaged = text[:position] + (b"" if kind == "delete" else byte) + text[position + (kind != "insert") :]
    try:
        events = read(folder, damaged, road)
    except InputError:
        assert position < where[0][0]
        return
    rows = reference.rows(text)
    untouched = [row for row, (start, stop) in zip(rows, where, strict=True) if not start <= position < stop]
    found = reference.columns(events)
    assert [row for row in found if row in untouched] == untouched


@given(data=st.data())
@pytest.mark.parametrize("road", ROADS)
def test_heavy_damage_never_crashes(folder: Path, road: str, data: st.DataObject) -> None:
    text = bytearray(trace(EVENTS, data.draw(st.sampled_from([None, 1]))))
    first = len(text)
    for _ in range(data.draw(st.integers(1, 8))):
        position = data.draw(st.integers(0, len(text)))
        first = min(first, position)
        size = data.draw(st.integers(0, 60))
        text[position : position + size] = data.draw(
            st.binary(max_size=20)
            | st.sampled_from([b'"', b"{", b"}", b'{"ph":"X",', b"]", b'"}]}', b'\\"', b'"args":{'])
        )
    intact = trace(EVENTS, None if b"\n" not in text[:20] else 1)
    try:
        events = read(folder, bytes(text), road)
    except InputError:
        return
    whole = [row for row, (_, stop) in zip(reference.rows(intact), spans(intact), strict=True) if stop <= first]
    assert reference.columns(events)[: len(whole)] == whole
    read_arguments(Source(folder / "trace.json"), events.offset.tolist())


def changed(*replacements: tuple[str, str], indent: int | None = None) -> bytes:
    """The trace of six events with pieces of its text replaced, each exactly once."""
    text = trace(EVENTS, indent).decode()
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text.encode("utf-8", "surrogateescape")


ALL_NAMES = [f"aten::op{number}" for number in range(6)]


def test_windows_paths_without_escapes_are_kept_literally(folder: Path, road: str) -> None:
    events = read(folder, changed(('"aten::op2"', r'"C:\Users\new\train.py(12): step"')), road)
    assert names(events)[2] == r"C:\Users\new\train.py(12): step"
    assert codes(events) == {"unescaped_backslash": 1}
    assert events.damages[0].first_offset == events.offset[2]
    assert lost(events) == 0


def test_a_backslash_before_the_closing_quote(folder: Path, road: str) -> None:
    events = read(folder, changed(('"aten::op2"', '"C:\\"')), road)
    assert names(events) == [*ALL_NAMES[:2], "C:\\", *ALL_NAMES[3:]]
    assert lost(events) == 0


def test_raw_control_characters_are_kept(folder: Path, road: str) -> None:
    events = read(folder, changed(('"aten::op1"', '"a\x01b"'), ('"aten::op3"', '"a\x01b"')), road)
    assert names(events)[1] == names(events)[3] == "a\x01b"
    assert codes(events) == {"control_characters": 2}
    assert events.damages[0].first_offset == events.offset[1]


def test_raw_newlines_and_quotes_of_source_text(folder: Path, road: str) -> None:
    name = 'File "train.py", line 3, in <module>\n    print("hello, world")\n'
    events = read(folder, changed(('"aten::op2"', f'"{name}"')), road)
    assert names(events) == [*ALL_NAMES[:2], name, *ALL_NAMES[3:]]
    assert codes(events) == {"unescaped_quote": 1, "control_characters": 1}
    assert lost(events) == 0


def test_unescaped_quotes_in_many_events(folder: Path, road: str) -> None:
    quoted = [event(number, name="NAME") for number in range(40)]
    text = trace(quoted, 1).replace(b'"NAME"', b'"say "hi" to "them""')
    events = read(folder, text, road)
    assert set(names(events)) == {'say "hi" to "them"'}
    assert codes(events) == {"unescaped_quote": 40}
    assert events.argument("External id").ints.tolist() == list(range(40))


@pytest.mark.parametrize("indent", [None, 2])
def test_unescaped_quotes_in_log_lines_of_the_header(folder: Path, road: str, indent: int | None) -> None:
    line = 'INFO: loaded "libkineto.so", flags "" [a], {"b"'
    document = {"WARN": ["LINE", "second"], "schemaVersion": 1, "traceEvents": EVENTS, "INFO": ["first", "LINE"],
                "traceName": "x"}  # fmt: skip
    text = json.dumps(document, indent=indent).replace("LINE", line)
    events = read(folder, text.encode(), road)
    assert names(events) == ALL_NAMES
    assert events.header == {"WARN": [line, "second"], "schemaVersion": 1, "INFO": ["first", line], "traceName": "x"}
    assert codes(events) == {"header_repaired": 2}
    assert lost(events) == 0


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "inf", "-inf", "nan", "N/A", "None", "undefined"])
@pytest.mark.parametrize("key", ['"dur": 5.25', '"External id": 4', '"Fwd": "a"', '"ts": 1004', '"name": "aten::op4"'])
def test_bare_words_count_as_absent(folder: Path, road: str, value: str, key: str) -> None:
    text = trace(EVENTS, None)
    start, stop = spans(text)[4]
    name = key.split(":")[0].encode()
    damaged = text[start:stop].replace(key.encode(), name + b": " + value.encode())
    assert damaged != text[start:stop]
    events = read(folder, text[:start] + damaged + text[stop:], road)
    assert codes(events) == {"not_json_value": 1}
    assert events.damages[0].first_offset == events.offset[4]
    rows = reference.rows(text)
    row = reference.columns(events)[4]
    assert {"ts": row["ts_ns"], "dur": row["dur_ns"], "name": row["name"], "Fwd": None,
            "External id": row["arguments"].get("External id")}[name.strip(b'"').decode()] is None  # fmt: skip
    assert [*reference.columns(events)[:4], *reference.columns(events)[5:]] == [*rows[:4], *rows[5:]]


def test_invalid_utf8_becomes_the_replacement_character(folder: Path, road: str) -> None:
    events = read(folder, trace(EVENTS).replace(b"aten::op2", b"caf\xe9 \xff"), road)
    assert names(events)[2] == "caf\ufffd \ufffd"
    assert codes(events) == {"invalid_utf8": 1}


def test_a_key_without_its_opening_quote(folder: Path, road: str) -> None:
    text = trace(EVENTS, None)
    start, stop = spans(text)[2]
    events = read(folder, text[:start] + text[start:stop].replace(b'"tid": 7', b'tid": 7') + text[stop:], road)
    assert reference.columns(events) == reference.rows(text)
    assert codes(events) == {"missing_key_quote": 1}


def test_two_ranks_interleaved(folder: Path, road: str) -> None:
    text = trace(EVENTS, None)
    where = spans(text)
    other = json.dumps(event(77)).encode()
    middle = where[2][0] + 70
    events = read(folder, text[:middle] + b", " + other + b', {"ph": "X", "na' + text[middle:], road)
    found = names(events)
    assert [name for name in found if name in ALL_NAMES and name != "aten::op2"] == [*ALL_NAMES[:2], *ALL_NAMES[3:]]
    assert "aten::op77" in found
    assert lost(events) >= 1


@pytest.mark.parametrize("extra", ["}", "}}", "]"])
def test_extra_closing_brackets(folder: Path, road: str, extra: str) -> None:
    text = trace(EVENTS, None)
    stop = spans(text)[2][1]
    events = read(folder, text[:stop] + extra.encode() + text[stop:], road)
    assert reference.columns(events) == reference.rows(text)
    assert codes(events) == {"stray_bracket": len(extra)}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("}, {", "}, , {", "stray_comma"),
        ("}, {", "} {", "stray_comma"),
        ('}], "traceName', '},], "traceName', "stray_comma"),
    ],
)
def test_commas_between_events(folder: Path, road: str, old: str, new: str, code: str) -> None:
    text = trace(EVENTS, None)
    place = text.rindex(old.encode())
    events = read(folder, text[:place] + new.encode() + text[place + len(old) :], road)
    assert reference.columns(events) == reference.rows(text)
    assert codes(events) == {code: 1}
    assert events.header["traceName"] == "a.json"


@pytest.mark.parametrize("element", ["7", '"text"', "null", "[1, 2]", "true", '[{"a": 1}]'])
def test_elements_that_are_no_events(folder: Path, road: str, element: str) -> None:
    text = trace(EVENTS, None)
    stop = spans(text)[2][1]
    events = read(folder, text[:stop] + b", " + element.encode() + text[stop:], road)
    assert reference.columns(events) == reference.rows(text)
    assert codes(events) == {"not_an_object": 1}
    assert lost(events) == 1


@pytest.mark.parametrize("end", ["", "\n", "}", "]", "\n}\n"])
def test_a_missing_end_loses_nothing(folder: Path, road: str, end: str) -> None:
    text = trace(EVENTS, 1)
    events = read(folder, text[: spans(text)[-1][1]] + end.encode(), road)
    assert reference.columns(events) == reference.rows(text)
    assert lost(events) == 0
    assert events.damages


def test_a_missing_bracket_before_the_root_keys(folder: Path, road: str) -> None:
    text = trace(EVENTS, None)
    events = read(folder, text.replace(b'}], "traceName"', b'}, "traceName"'), road)
    assert reference.columns(events) == reference.rows(text)
    assert codes(events) == {"missing_end": 1}
    assert events.header == reference.header(text)


def test_a_bracket_in_the_trace_name(folder: Path, road: str) -> None:
    text = trace(EVENTS).replace(b"a.json", b"run]},{[x].json")
    events = read(folder, text, road)
    assert reference.columns(events) == reference.rows(text)
    assert events.header["traceName"] == "run]},{[x].json"
    assert events.damages == []


def test_integers_beyond_int64_stay_text(folder: Path, road: str) -> None:
    text = trace([event(0, args={"External id": 2**64 + 7, "correlation": -(2**63) + 1, "size": -(2**63)})])
    events = read(folder, text, road)
    assert events.raws[events.argument("External id").texts[0]] == str(2**64 + 7)
    assert events.argument("correlation").ints.tolist() == [-(2**63) + 1]
    assert events.raws[events.argument("size").texts[0]] == str(-(2**63))
    assert events.damages == []


def test_trace_events_inside_trace_events(folder: Path, road: str) -> None:
    rows = reference.rows(trace(EVENTS))
    inner = json.dumps({"traceEvents": EVENTS})
    for text in (f'{{"traceEvents": {inner}}}', f'{{"traceEvents": [{inner}]}}'):
        events = read(folder, text.encode(), road)
        assert reference.columns(events) == rows
        assert codes(events).get("nested_trace_events") == 1
        assert lost(events) == 0


def test_large_keys_before_and_behind_the_events(folder: Path, road: str) -> None:
    big = json.dumps([{"stack": f"frame {number} ][}}{{", "n": number} for number in range(20000)])
    text = trace(EVENTS[:2], None)
    text = text.replace(b'"schemaVersion": 1', b'"stackFrames": ' + big.encode() + b', "schemaVersion": 1')
    text = text.replace(b'"traceName"', b'"more": ' + big.encode() + b', "traceName"')
    events = read(folder, text, road)
    assert reference.columns(events) == reference.rows(text)
    assert events.header == reference.header(text)
    assert events.damages == []


@pytest.mark.parametrize("text", ['{"traceEvents": []}', '{"traceEvents": [\n  ],\n "traceName": "x"}'])
def test_an_empty_trace_is_a_trace(folder: Path, road: str, text: str) -> None:
    events = read(folder, text.encode(), road)
    assert len(events) == 0
    assert events.damages == []
    assert events.header == reference.header(text.encode())


@pytest.mark.parametrize(("text", "words"), [
    (b"", "is empty"), (b"  \n ", "nothing but blanks"), (b"<!DOCTYPE html><html></html>", "not JSON"),
    (b"just a log line\n" * 50, "not JSON"), (b'{"nodes": [], "schema": "1.0"}', "JSON without traceEvents"),
    (b"[1, 2, 3]", "not JSON"),
    (b'[{"a": 1}, {"a": 2}]', "not of trace events"), (bytes(range(256)) * 40, "not JSON"), (b'"text"', "not JSON"),
    (b"{", "ends before"), (b'{"schemaVersion": 1, "deviceProp', "ends before"),
    (b"\x00" * 5000, "nothing but blanks"), (b"[]", "empty list of events"),
    ('{"traceEvents": []}'.encode("utf-16"), "not JSON"), (b'{"traceEvents": 5}', "JSON without traceEvents"),
    (b"{not json}", "is no trace"), (b'{"a" 1}', "is no trace"), (b'{"a": }', "is no trace"),
])  # fmt: skip
def test_what_is_no_trace_is_refused_in_one_sentence(folder: Path, road: str, text: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read(folder, text, road)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_byte_order_mark_is_no_damage(folder: Path, road: str) -> None:
    events = read(folder, b"\xef\xbb\xbf" + trace(EVENTS), road)
    assert names(events) == ALL_NAMES
    assert events.damages == []


def test_two_traces_in_one_file(folder: Path, road: str) -> None:
    events = read(folder, trace(EVENTS) + b"\n" + trace(EVENTS[:2]), road)
    assert names(events) == ALL_NAMES
    assert codes(events) == {"trailing_content": 1}
    assert lost(events) == 2


_HEAD = b'{"traceEvents": [' + json.dumps(event(0)).encode() + b", "
_HOSTILE = {
    "quotes": (_HEAD, b'"'), "brackets": (_HEAD, b"["), "braces": (_HEAD, b"{"), "closing braces": (_HEAD, b"}"),
    "commas": (_HEAD, b","), "numbers": (_HEAD, b"1, "), "zero bytes": (_HEAD, b"\0"), "empty events": (_HEAD, b"{}, "),
    "open objects": (_HEAD, b'{"a":'), "open lists": (_HEAD, b'{"ph": "X", "args": {"External id": [1, '),
    "open names": (_HEAD, b'{"ph": "X", "name": "'), "stray quotes": (_HEAD, b'{"ph": "X", "name": "a"b", '),
    "open args": (_HEAD, b'{"args": {"a": "b"c"}, "ph": "X", '), "no phase": (_HEAD, b'{"name":"a","ts":1,"pid":1,'),
    "long name": (_HEAD + b'{"ph": "X", "name": "', b"a"), "backslashes": (_HEAD + b'{"ph": "X", "name": "', b"\\"),
    "digits": (_HEAD + b'{"ph": "X", "ts": ', b"1"), "unreadable values": (_HEAD + b'{"ph": "X", ', b'"k": "x y, '),
    "lists around events": (_HEAD, b'[{"ph": "X", "name": "a"}, '), "header lists": (b'{"a": ', b"["),
    "header quotes": (b'{"a": "', b'x"'), "header keys": (b'{\n"a": "b" c', b',\n"b": 1'),
    "tail": (_HEAD[:-2] + b'], "x": [', b'"a"b", '),
}  # fmt: skip


@pytest.mark.parametrize("kind", some(_HOSTILE, 7))
def test_hostile_input_costs_time_in_proportion_to_its_size(folder: Path, road: str, kind: str) -> None:
    begin, repeated = _HOSTILE[kind]
    size = 300_000
    text = begin + repeated * (size // len(repeated))
    started = time.process_time()
    try:
        events = read(folder, text, road)
    except InputError:
        assert not text.startswith(_HEAD)
    else:
        assert names(events)[0] == "aten::op0"
        assert events.damages
    # Some 10 µs per byte at worst; work that grew with the square would take minutes.
    assert time.process_time() - started < 10


def test_an_event_beyond_the_size_limit_is_skipped_and_counted(
    folder: Path, road: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "EVENT_LIMIT", 4096)
    monkeypatch.setattr(drive, "CHUNK", 2048)
    monkeypatch.setattr(drive, "MARGIN", 512)
    monkeypatch.setattr(drive, "HEAD_BLOCK", 1024)
    huge = [*EVENTS[:3], event(3, name="x" * 200_000), *EVENTS[4:]]
    events = read(folder, trace(huge), road)
    assert names(events) == [*ALL_NAMES[:3], *ALL_NAMES[4:]]
    assert codes(events) == {"oversized_event": 1}
    assert lost(events) == 1
    assert events.damages[0].lost_bytes > 200_000


@pytest.mark.parametrize("container", ["plain", "gzip"])
@pytest.mark.parametrize(("before", "after"), [(b"", b","), (b",", b""), (b"}", b","), (b"", b"]")])
def test_blanks_without_end_are_passed_in_bounded_memory(
    folder: Path, road: Any, container: str, before: bytes, after: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def noted(size: int) -> Any:
        sizes.append(size)
        return empty_buffer(size)

    empty_buffer = window.empty_buffer
    for module in (drive, window):
        monkeypatch.setattr(module, "empty_buffer", noted)
    for name, size in (("CHUNK", 2048), ("MARGIN", 512), ("HEAD_BLOCK", 1024), ("SLACK", 512)):
        monkeypatch.setattr(drive, name, size)
    monkeypatch.setattr(window, "EVENT_LIMIT", 4096)
    first, second = (b",".join(json.dumps(one).encode() for one in half) for half in (EVENTS[:3], EVENTS[3:]))
    blanks = b" " * 300_000
    text = b'{"traceEvents": [' + first + before + blanks + after + (second if after != b"]" else b"") + b"]}"
    events = read(folder, text if container == "plain" else gzip.compress(text), road)
    assert names(events) == ALL_NAMES[: 6 if after != b"]" else 3]
    assert codes(events).keys() <= ({"stray_bracket"} if before == b"}" else {"stray_bracket", "trailing_content"})
    assert max(sizes) < 100_000
    assert codes(read(folder, b'{"traceEvents": [' + blanks + first + b"]}", road)) == {}


def test_arguments_of_damaged_events_are_read_as_far_as_possible(folder: Path, road: str) -> None:
    text = changed(
        ('"External id": 2', '"note": "say "hi"", "External id": 2'), ('"External id": 3', '"bad": @, "x": NaN')
    )
    path = folder / "arguments.json"
    for data in (text, gzip.compress(text)):
        path.write_bytes(data)
        source = Source(path)
        events = read_events(source, road=road)  # type: ignore[arg-type]
        assert names(events) == ALL_NAMES
        found = read_arguments(source, [int(events.offset[row]) for row in (3, 2, 2, 0)])
        assert found[0]["x"] is None
        assert found[0]["Fwd"] == "a"
        assert found[1] == found[2] == {"note": 'say "hi"', "External id": 2, "Input Dims": [[2, 2], []], "Fwd": "a"}
        assert found[3] == EVENTS[0]["args"]


def test_a_cut_gzip_reports_both_cuts(folder: Path, road: str) -> None:
    many = [event(number) for number in range(3000)]
    packed = gzip.compress(trace(many))
    path = folder / "cut.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    events = read_events(Source(path), road=road)  # type: ignore[arg-type]
    assert {"gzip_truncated", "truncated"} <= set(codes(events))
    assert 1000 < len(events) < 2000
    assert names(events) == [f"aten::op{number}" for number in range(len(events))]
    assert lost(events) == 1
