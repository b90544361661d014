"""The counters of PyTorch/XLA that are kept beside a profile: what its report says, and what becomes of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from stepscope import pipeline
from stepscope.formats import saved
from stepscope.formats.beside.lazy_metrics import MetricReading, parsed
from stepscope.trace.trace import Trace
from tests.analysis.test_xla import lazy_loop
from tests.kit.lazy_reports import AFTER, BEFORE, STEPS
from tests.kit.xla import build


def test_a_true_report_is_read() -> None:
    found = parsed(AFTER)
    assert found["CompileTime"] == MetricReading(11, 2_739_832_684.0, "ns")
    assert found["OutboundData"] == MetricReading(43, 142.79 * 1024, "bytes")
    assert found["InputOutputAliasCount"] == MetricReading(11, 2.0, None)
    assert found["aten::nonzero"].times == 6
    assert math.isnan(found["aten::nonzero"].total)
    assert len(found) == AFTER.count("Metric:") + AFTER.count("Counter:")


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        ("006.378us", 6_378),
        ("226ms137.620us", 226_137_620),
        ("31s573ms487.494us", 31_573_487_494),
        ("01m02s003ms004.005us", 62_003_004_005),
        ("02h00m00s000ms000.000us", 7_200_000_000_000),
        ("01d00h00m00s000ms000.001us", 86_400_000_000_001),
    ],
)  # fmt: skip
def test_times_of_every_length(written: str, ns: int) -> None:
    assert parsed(f"Metric: A\n  TotalSamples: 2\n  Accumulator: {written}")["A"] == MetricReading(2, ns, "ns")


def test_what_is_no_report_holds_nothing() -> None:
    assert parsed("") == parsed("Value: 3\nMetric:\n  TotalSamples: many") == {}
    assert parsed("Metric: A\n  TotalSamples: -1\n  Accumulator: soon")["A"].times == 0


def job(folder: Path, **entry: object) -> Path:
    """A profile with its manifest."""
    folder.mkdir(exist_ok=True)
    saved.write(build(lazy_loop()), folder / "one.stepscope")
    files = [{"path": "other.stepscope", "metrics": {"before": "", "after": "Counter: no\n  Value: 1"}}]
    document = {"schema": "stepscope.capture/1", "files": [*files, {"path": "one.stepscope", "bytes": 1, **entry}]}
    (folder / "job.stepscope.json").write_text(json.dumps(document))
    return folder / "one.stepscope"


def trace_of(path: Path) -> Trace:
    return pipeline.open_profile(path).trace


def test_the_counters_of_the_file_s_own_window_are_a_table(tmp_path: Path) -> None:
    path = job(tmp_path, steps=STEPS, metrics={"before": BEFORE, "after": AFTER})
    table = pipeline.open_profile(path).table("metrics")
    (row,) = table.filter(name="CompileTime").to_dicts()
    assert row == {
        "name": "CompileTime", "count_before": 8, "count_after": 11, "unit": "ns", "steps": STEPS,
        "total_before": pytest.approx(parsed(BEFORE)["CompileTime"].total), "total_after": 2_739_832_684.0,
    }  # fmt: skip
    assert "no" not in table["name"].cast(str).to_list()
    # A saved form keeps them, and needs no manifest.
    saved.write(trace_of(path), tmp_path / "kept.stepscope")
    assert trace_of(tmp_path / "kept.stepscope").table("metrics").equals(trace_of(path).table("metrics"))


def test_what_was_not_counted_before_the_window_began_at_nothing(tmp_path: Path) -> None:
    path = job(tmp_path, steps=STEPS, metrics={"before": "", "after": AFTER})
    (row,) = trace_of(path).table("metrics").filter(name="CompileTime").to_dicts()
    assert (row["count_before"], row["total_before"]) == (0, 0.0)


@pytest.mark.parametrize("entry", [{}, {"metrics": None}, {"metrics": {}}, {"metrics": {"after": 3}, "steps": "many"}])
def test_without_a_report_there_are_none(tmp_path: Path, entry: dict[str, object]) -> None:
    assert len(trace_of(job(tmp_path, **entry)).metrics) == 0
