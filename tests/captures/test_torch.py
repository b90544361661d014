"""PyTorch on the CPU: a loader that sleeps, and a sleep elsewhere."""

from __future__ import annotations

import polars as pl
import pytest

from tests.captures.checks import at_least, at_most, numbered, opened, parts_by_step
from tests.captures.jobs import Capture, Captures

pytestmark = pytest.mark.slow


@pytest.fixture
def capture(captures: Captures) -> Capture:
    return captures["torch"]


def test_steps_as_the_schedule_asked(capture: Capture) -> None:
    profile = opened(capture.file("trace.json.gz"))
    truth = numbered(capture.truth["steps"])
    steps = profile.document()["steps"]
    assert [step["number"] for step in steps] == list(truth)
    assert all(step["complete"] and not step["inferred"] and step["basis"] == "host" for step in steps)
    assert profile.document()["summary"]["step_source"] == "ProfilerStep"
    for step in steps:
        planted, _ = truth[step["number"]]["input_ns"]
        assert step["dur_ns"] >= at_least(planted)


def test_the_loader_is_the_input(capture: Capture) -> None:
    profile = opened(capture.file("trace.json.gz"))
    parts = parts_by_step(profile.document(), None)
    for number, truth in numbered(capture.truth["steps"]).items():
        planted, measured = truth["input_ns"]
        assert at_least(planted) <= parts[number]["input"] <= at_most(measured)
    (finding,) = [finding for finding in profile.findings if finding.rule == "input_bound"]
    assert finding.cost_ns_per_step >= at_least(planted)


def test_the_other_sleep_is_not(capture: Capture) -> None:
    parts = parts_by_step(opened(capture.file("trace.json.gz")).document(), None)
    prepared = capture.truth["prepared"]
    assert parts[prepared["step"]]["python"] >= at_least(prepared["ns"])


def test_the_ops_of_a_training_step(capture: Capture) -> None:
    profile = opened(capture.file("trace.json.gz"))
    slices = profile.trace.table("slices")
    count = len(capture.truth["steps"])
    names = slices.filter(pl.col("kind").cast(pl.String) == "host_op")["name"].cast(pl.String).value_counts()
    counts = dict(names.rows())
    for name, per_step in (("aten::linear", 2), ("aten::relu", 1), ("aten::mse_loss", 1), ("aten::item", 1)):
        assert counts[name] >= per_step * count, name
    assert counts["aten::linear"] == 2 * count
    shapes = profile.trace.table("host_ops")["input_dims"].cast(pl.String)
    assert shapes.str.contains(r"\[4, 16\], \[64, 16\], \[64\]").sum() >= count
    flows = profile.trace.table("flows")
    assert (flows["kind"].cast(pl.String) == "forward_backward").sum() >= 2 * count
