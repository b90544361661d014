"""Written Timelines are those that TensorFlow writes of the same run, and are read back as that run."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepscope
from stepscope.cli import main
from stepscope.errors import Exit, OutputError
from stepscope.formats.chrome import read as chrome
from stepscope.formats.tf1 import step_stats
from stepscope.formats.tf1 import writing as timeline
from stepscope.inputs.source import Source
from stepscope.trace.trace import Trace
from tests.kit import gpu_runs
from tests.kit.step_stats import CPU, EPOCH_US, device, node, output
from tests.kit.step_stats import step_stats as stats
from tests.kit.timelines import as_set, said
from tests.kit.traces import real_trace
from tests.support import facts_of_drawing

Event = dict[str, Any]
RUN = "timeline/tf1_run_metadata.pb"
SECOND_CPU = "/job:localhost/replica:0/task:0/device:CPU:1"


def trace_of(tmp_path: Path, content: bytes) -> Trace:
    (tmp_path / "run.pb").write_bytes(content)
    return step_stats.read(Source(tmp_path / "run.pb"))


def written(tmp_path: Path, content: bytes) -> list[Event]:
    timeline.write(trace_of(tmp_path, content), tmp_path / "out.timeline.json")
    events: list[Event] = json.loads((tmp_path / "out.timeline.json").read_text())["traceEvents"]
    return events


def of_phase(events: list[Event], phases: str) -> list[Event]:
    return [event for event in events if event["ph"] in phases]


@pytest.mark.real
def test_the_events_are_those_of_tensorflow() -> None:
    trace = step_stats.read(Source(real_trace(RUN)))
    real = json.loads(real_trace("timeline/tf1_timeline_memory.json").read_text())["traceEvents"]
    assert as_set(timeline.events(trace)) == as_set(real)


@pytest.mark.real
@pytest.mark.parametrize("form", ["", "_memory", "_nodataflow"])
def test_a_timeline_read_and_written_is_the_same_timeline(form: str) -> None:
    """Without tensors the file says nothing of what dataflow carries: arrows come from the inputs' names."""
    path = real_trace(f"timeline/tf1_timeline{form}.json")
    real, mine = as_set(json.loads(path.read_text())["traceEvents"]), as_set(timeline.events(chrome.read(Source(path))))
    if form == "_nodataflow":
        mine = Counter({line: count for line, count in mine.items() if "DataFlow" not in line})
    assert mine == real


@pytest.mark.parametrize("content", [gpu_runs.old(), gpu_runs.old(2)], ids=["one GPU", "two GPUs"])
def test_read_back_it_is_the_same_run(tmp_path: Path, content: bytes) -> None:
    trace = trace_of(tmp_path, content)
    timeline.write(trace, tmp_path / "out.timeline.json")
    again = chrome.read(Source(tmp_path / "out.timeline.json"))
    assert said(again) == said(trace)
    assert again.completeness.complete


LOOP = stats(
    device(
        CPU,
        node("a", 0, 5, "a = Const()", parts=[output(0, 1, [2], 8)]),
        node("m", 6, 4, "m = Merge(a, n)", parts=[output(0, 1, [2], 8)]),
        node("n", 8, 6, "n = NextIteration(m)", parts=[output(0, 1, [2], 8), output(1, 3, [], 4)]),
        node("m", 15, 4, "m = Merge(a, n:1)", parts=[output(0, 1, [2], 8)]),
    ),
    device(SECOND_CPU, node("out", 30, 5, "out = Neg(m/_7, ^a)")),
)


def test_executions(tmp_path: Path) -> None:
    events = of_phase(written(tmp_path, LOOP), "X")
    assert events[2] == {
        "ph": "X",
        "cat": "Op",
        "name": "NextIteration",
        "pid": 1,
        "tid": 1,
        "ts": EPOCH_US + 8,
        "dur": 6,
        "args": {"name": "n", "op": "NextIteration", "input0": "m"},
    }
    assert [(event["pid"], event["tid"]) for event in events] == [(1, 0), (1, 0), (1, 1), (1, 0), (3, 0)]


def test_arrows_have_an_id_each_and_join_lanes_only(tmp_path: Path) -> None:
    """From the execution that made the tensor, also in a loop; never back in time."""
    arrows = of_phase(written(tmp_path, LOOP), "st")
    by_id: dict[int, list[Event]] = {}
    for event in arrows:
        by_id.setdefault(event["id"], []).append(event)
    ends = [[(e["ph"], e["name"], e["pid"], e["tid"], e["ts"] - EPOCH_US) for e in pair] for pair in by_id.values()]
    assert ends == [
        [("s", "m", 1, 0, 10), ("t", "m", 1, 1, 8)],
        [("s", "n:1", 1, 1, 14), ("t", "n:1", 1, 0, 15)],
        [("s", "m", 1, 0, 19), ("t", "m", 3, 0, 30)],
    ]


def test_tensors_live_until_their_last_use_and_memory_adds_up(tmp_path: Path) -> None:
    events = written(tmp_path, LOOP)
    born, gone = of_phase(events, "N"), of_phase(events, "D")
    assert [(e["name"], e["ts"] - EPOCH_US) for e in born] == [("a", 0), ("m", 6), ("n", 8), ("n:1", 8), ("m", 15)]
    assert [(e["name"], e["ts"] - EPOCH_US) for e in gone] == [("a", 18), ("m", 13), ("n", 14), ("n:1", 18), ("m", 34)]
    assert [e["id"] for e in born] == [e["id"] for e in gone] == [0, 1, 2, 3, 4]
    counters = [(e["name"], e["ts"] - EPOCH_US, e["args"]["cpu"]) for e in of_phase(events, "C")]
    assert [ts for _, ts, _ in counters] == sorted(ts for _, ts, _ in counters)
    assert max(value for *_, value in counters) == 8 + 8 + 8 + 4
    assert counters[-1] == ("cpu", 34, 0)
    (described,) = {e["args"]["snapshot"]["tensor_description"] for e in of_phase(events, "O") if e["name"] == "n:1"}
    assert described == (
        "dtype: DT_INT32\nshape {\n}\nallocation_description {\n  requested_bytes: 4\n  allocator_name: cpu\n}\n"
    )


def test_a_trace_of_something_else_is_refused(tmp_path: Path) -> None:
    trace = facts_of_drawing("main  | [a]").trace
    with pytest.raises(OutputError, match="no node of a TensorFlow graph"):
        timeline.write(trace, tmp_path / "out.timeline.json")
    assert not (tmp_path / "out.timeline.json").exists()


def test_a_trace_that_lies_on_no_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.pb").write_bytes(LOOP)
    trace = stepscope.open(tmp_path / "run.pb").trace
    nowhere = np.full(len(trace.tracks), -1, np.int32)
    trace = dataclasses.replace(trace, tracks=dataclasses.replace(trace.tracks, process=nowhere))
    with pytest.raises(OutputError, match="lies on a device that TensorFlow names"):
        timeline.write(trace, tmp_path / "out.timeline.json")
    assert not (tmp_path / "out.timeline.json").exists()


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "run.pb").write_bytes(LOOP)
    assert main(["convert", str(tmp_path / "run.pb"), str(tmp_path / "a.timeline.json")]) == Exit.OK
    assert len(chrome.read(Source(tmp_path / "a.timeline.json")).slices) == 5
