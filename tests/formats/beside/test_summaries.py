"""How full queues were, from event files beside a profile."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

import stepscope
from stepscope.formats.beside.summaries import Fill, queue_fill, with_queue_fill
from stepscope.report import input_sections
from tests.kit.step_stats import CPU, EPOCH_US, device, message, node, number, text
from tests.kit.step_stats import step_stats as stats
from tests.support import facts_of_drawing

TAG = "batch/fraction_of_32_full"
EVENTS = "events.out.tfevents.1500000000.host"


def crc32c(data: bytes) -> int:
    """RFC 3720, appendix B.4, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if (crc ^ (byte >> bit)) & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(event: bytes) -> bytes:
    size = struct.pack("<Q", len(event))
    return size + masked(size) + event + masked(event)


def simple(value: float) -> bytes:
    return b"\x15" + struct.pack("<f", value)


def float_tensor(value: float) -> bytes:
    return message(8, number(1, 1), message(2), message(5, struct.pack("<f", value)))


def double_content(value: float) -> bytes:
    return message(8, number(1, 2), message(4, struct.pack("<d", value)))


def event(wall_time: float, *values: tuple[str, bytes]) -> bytes:
    summary = message(5, *(message(1, text(1, tag), value) for tag, value in values))
    return record(b"\x09" + struct.pack("<d", wall_time) + number(2, 7) + summary)


VERSION = record(b"\x09" + struct.pack("<d", 1.0) + text(3, "brain.Event:2"))


def test_the_checksum_is_the_published_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_tags_of_queues_in_every_form(tmp_path: Path) -> None:
    others = [("loss", simple(0.5)), ("batch/fraction_of_32_fuller", simple(0.5)), ("a_full", simple(1))]
    (tmp_path / EVENTS).write_bytes(
        VERSION
        + event(12.5, (TAG, simple(0.25)), *others)
        + event(11.5, ("queue/q/fraction_of_8_full", float_tensor(0.5)))
        + event(13.5, ("shuffle_batch/fraction_over_100_of_900_full_1", double_content(0.75)))
    )
    assert queue_fill(tmp_path / "run.pb") == [
        Fill("queue/q/fraction_of_8_full", 11.5, 0.5),
        Fill(TAG, 12.5, 0.25),
        Fill("shuffle_batch/fraction_over_100_of_900_full_1", 13.5, 0.75),
    ]


def test_values_that_are_no_number_are_left_out(tmp_path: Path) -> None:
    odd = [simple(float("nan")), b"", message(8, number(1, 1)), message(8, number(1, 7), message(5, b"abcd"))]
    (tmp_path / EVENTS).write_bytes(event(1.0, *((TAG, value) for value in odd)))
    assert queue_fill(tmp_path / "run.pb") == []


@pytest.mark.parametrize("below", ["", "plugins/profile/2020_01_01"])
def test_the_nearest_folder_with_event_files_counts(tmp_path: Path, below: str) -> None:
    logdir = tmp_path / "logs"
    (logdir / below).mkdir(parents=True)
    (logdir / EVENTS).write_bytes(event(5.0, (TAG, simple(0.5))))
    (tmp_path / EVENTS).write_bytes(event(6.0, (TAG, simple(0.9))))
    assert [fill.value for fill in queue_fill(logdir / below / "host.xplane.pb")] == [0.5]
    assert [fill.value for fill in queue_fill(logdir / below)] == [0.5]


def test_folders_further_away_do_not_count(tmp_path: Path) -> None:
    deep = tmp_path / "a/b/c/d"
    deep.mkdir(parents=True)
    (tmp_path / EVENTS).write_bytes(event(5.0, (TAG, simple(0.5))))
    assert queue_fill(deep / "run.pb") == []
    assert queue_fill(tmp_path / "nowhere/run.pb") != []


def test_damage_ends_a_file_and_costs_no_other(tmp_path: Path) -> None:
    good, later = event(5.0, (TAG, simple(0.5))), event(6.0, (TAG, simple(0.6)))
    (tmp_path / EVENTS).write_bytes(good + b"\0" + later)
    (tmp_path / (EVENTS + ".v2")).write_bytes(event(7.0, (TAG, simple(0.7))))
    assert [fill.value for fill in queue_fill(tmp_path / "x")] == pytest.approx([0.5, 0.7])
    for end in range(len(good)):
        (tmp_path / EVENTS).write_bytes(later + good[:end])
        assert len(queue_fill(tmp_path / "x")) in (2, 3)


def test_unreadable_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / EVENTS).mkdir()
    os.symlink(tmp_path / "nowhere", tmp_path / (EVENTS + ".link"))
    assert queue_fill(tmp_path / "x") == []


WAITS = stats(
    device(CPU, node("a", 0, 5, "a = NoOp()"), node("batch", 10, 90_000, "batch = QueueDequeueManyV2(queue, n)"))
)
BEGAN = EPOCH_US / 1e6


def write_run(folder: Path, *fills: tuple[float, str, float]) -> Path:
    (folder / "run.pb").write_bytes(WAITS)
    if fills:
        events = (event(BEGAN + at, (tag, simple(value))) for at, tag, value in fills)
        (folder / EVENTS).write_bytes(b"".join(events))
    return folder / "run.pb"


def test_the_fill_becomes_counters_of_the_trace(tmp_path: Path) -> None:
    trace = stepscope.open(write_run(tmp_path, (-1.0, TAG, 0.5), (0.5, TAG, 0.0), (9_000.0, TAG, 1.0))).trace
    found = trace.table("counters").select("time_ns", "name", "value").rows()
    assert [(round(ns / 1e6), name, value) for ns, name, value in found] == [(-1000, TAG, 0.5), (500, TAG, 0.0)]
    assert trace.table("tracks").row(-1, named=True)["process"] == "summaries"
    assert len(trace.strings) == len(set(trace.strings))
    assert with_queue_fill(trace, tmp_path / "run.pb") is trace


def test_the_finding_says_how_full_the_queue_was(tmp_path: Path) -> None:
    fills = ((-2.0, TAG, 0.5), (-1.0, "batch/fraction_of_8_full", 0.25), (-0.5, "other/fraction_of_8_full", 1.0))
    (finding,) = stepscope.open(write_run(tmp_path, *fills)).findings
    assert "`batch/fraction_of_8_full` was 25.0 % in the nearest summary, 1.00 s apart." in finding.why


def test_the_report_says_how_full_queues_were(tmp_path: Path) -> None:
    fills = ((-2.0, TAG, 0.5), (-1.0, TAG, 0.25), (-0.5, "other/fraction_of_8_full", 1.0), (-0.4, TAG, 7.0))
    document = stepscope.open(write_run(tmp_path, *fills)).document()
    assert document["analyses"]["input"]["queues"] == [
        {"name": TAG, "readings": 2, "mean": 0.375, "least": 0.25},
        {"name": "other/fraction_of_8_full", "readings": 1, "mean": 1.0, "least": 1.0},
    ]
    note = input_sections.stages(document["analyses"]["input"]).note
    assert f"{TAG} was 37.5 % full on average, 25.0 % at the least" in note


def test_the_finding_says_how_to_record_it_where_it_was_not(tmp_path: Path) -> None:
    (finding,) = stepscope.open(write_run(tmp_path)).findings
    assert "How full the queue was is not recorded" in finding.why
    assert "tf.summary.merge_all()" in finding.why


def test_only_traces_of_tensorflow_are_given_any(tmp_path: Path) -> None:
    write_run(tmp_path, (0.0, TAG, 0.5))
    trace = facts_of_drawing("main  | [a]").trace
    assert with_queue_fill(trace, tmp_path / "run.pb") is trace
