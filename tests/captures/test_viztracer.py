"""A script that VizTracer recorded: functions, ranges, counters, threads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import stepscope
from stepscope.formats.chrome.writing import write
from stepscope.trace.trace import Trace
from tests.captures.environments import framework_python
from tests.formats.chrome.perfetto import dropped, load

pytestmark = pytest.mark.slow

SCRIPT = """
import gc, sys, threading, time
from viztracer import VizTracer

def load_batch():
    time.sleep(0.02)
    return sorted(range(50))

def train(batch):
    return sum(x * x for x in batch)

def work():
    time.sleep(0.005)

tracer = VizTracer(output_file=sys.argv[1], verbose=0)
tracer.start()
thread = threading.Thread(target=work)
thread.start()
for step in range(4):
    with tracer.log_event(f"train {step}"):
        train(load_batch())
    tracer.add_counter("loss", {"a": 0.5 * step, "b": step}) if hasattr(tracer, "add_counter") else None
    tracer.add_instant("mark")
gc.collect()
thread.join()
tracer.stop()
tracer.save()
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What VizTracer wrote."""
    folder = tmp_path_factory.mktemp("viztracer")
    (folder / "script.py").write_text(SCRIPT)
    written = folder / "trace.json"
    subprocess.run([framework_python("viztracer"), folder / "script.py", written], check=True, timeout=120)
    return written


@pytest.fixture(scope="module")
def profile(path: Path) -> stepscope.Profile:
    return stepscope.open(path)


def found(trace: Trace, kind: str) -> list[str]:
    table = trace.table("slices")
    return table.filter(table["kind"] == kind)["name"].cast(str).to_list()


def test_functions_are_frames_and_ranges_are_steps(path: Path, profile: stepscope.Profile) -> None:
    trace = profile.trace
    assert trace.info.format == "Chrome trace JSON"
    assert trace.completeness.complete
    assert found(trace, "step") == ["train 0", "train 1", "train 2", "train 3"]
    frames = found(trace, "python_frame")
    script = path.parent / "script.py"
    assert [name.split(": ")[1] for name in frames if name.startswith(f"{script}(")].count("load_batch") == 4
    assert "<built-in function sorted>" in frames
    assert "<built-in function collect>" in frames
    assert not [name for name in frames if name.endswith(")")]


def test_threads_counters_and_time(profile: stepscope.Profile) -> None:
    trace = profile.trace
    labels = trace.table("tracks")["label"].cast(str).to_list()
    assert "MainThread" in labels
    assert any(label and label.startswith("Thread-1") for label in labels)
    assert len(trace.instants) == 4
    values = trace.table("counters").select("name", "value").rows()
    assert values[:4] == [("loss: a", 0.0), ("loss: b", 0.0), ("loss: a", 0.5), ("loss: b", 1.0)]
    assert abs(trace.info.origin_epoch_ns - profile.source.path.stat().st_mtime_ns) < 120 * 10**9


def test_the_diagnosis_is_of_the_host(profile: stepscope.Profile) -> None:
    document = profile.document()
    assert document["profile"]["devices"] == []
    assert len(document["steps"]) == 4
    for row in document["accounting"]:
        assert row["device"] is None
        assert sum(row["parts"].values()) == row["dur_ns"]


def test_it_becomes_a_file_of_which_viewers_drop_nothing(profile: stepscope.Profile, tmp_path: Path) -> None:
    write(profile.trace, tmp_path / "out.json")
    assert dropped(load(tmp_path / "out.json")) == []
