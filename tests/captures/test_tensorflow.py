"""TensorFlow 2: a loop with its own markers, and Keras's, both starved by an input that sleeps."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.captures.checks import at_least, at_most, marks, numbered, opened, parts_by_step
from tests.captures.jobs import Captures
from tests.kit.tf_kernels import with_kernels

pytestmark = pytest.mark.slow


def test_steps_of_a_loop(captures: Captures) -> None:
    capture = captures["tf_loop"]
    profile, truth = opened(capture.file("*.xplane.pb")), numbered(capture.truth["steps"])
    document, found = profile.document(), marks(profile)
    assert [step["number"] for step in document["steps"]] == list(truth) == found["number"].to_list()
    assert document["summary"]["step_source"] == "train"
    assert {(step["basis"], step["inferred"]) for step in document["steps"]} == {("host", False)}
    for number, dur in found.select("number", "dur_ns").rows():
        inside, around = truth[number]["step_ns"]
        assert at_least(inside) <= dur <= at_most(around)


def test_the_input_of_a_loop(captures: Captures) -> None:
    capture = captures["tf_loop"]
    profile = opened(capture.file("*.xplane.pb"))
    parts = parts_by_step(profile.document(), None)
    for number, step in numbered(capture.truth["steps"]).items():
        slept, waited = step["input_ns"]
        assert at_least(slept) <= parts[number]["input"] <= at_most(waited)
    assert "input_bound" in {finding.rule for finding in profile.findings}


def test_a_call_of_a_function_per_step(captures: Captures) -> None:
    capture = captures["tf_loop"]
    slices = opened(capture.file("*.xplane.pb")).trace.table("slices").with_columns(pl.col("name").cast(pl.String))
    assert len(slices.filter(name="train_step")) == len(capture.truth["steps"])
    assert len(slices.filter(name="EagerExecute")) >= 2 * len(capture.truth["steps"])


def test_steps_of_keras(captures: Captures) -> None:
    capture = captures["keras"]
    profile = opened(capture.file("*.xplane.pb"))
    document, found = profile.document(), marks(profile)
    # Keras counts batches from 1 where it is told which to profile, and from 0 where it names them.
    expected = list(range(capture.truth["first"] - 1, capture.truth["last"]))
    assert [step["number"] for step in document["steps"]] == expected == found["number"].to_list()
    assert document["summary"]["step_source"] == "Profiled batch"
    assert found["source"].cast(pl.String).unique().to_list() == ["step_num"]


def test_the_input_of_keras(captures: Captures) -> None:
    capture = captures["keras"]
    profile = opened(capture.file("*.xplane.pb"))
    parts, steps = parts_by_step(profile.document(), None), profile.steps
    waited = [parts[number]["input"] for number in steps["number"].to_list()]
    # On a busy machine a batch is now and then begun while the step before still computes: together they are all there.
    assert at_least(capture.truth["input_ns"]) * (len(waited) - 1) <= sum(waited)
    assert all(ns <= dur for ns, dur in zip(waited, steps["dur_ns"].to_list(), strict=True))
    assert "input_bound" in {finding.rule for finding in profile.findings}


def test_the_input_of_keras_is_what_a_device_waits_for(captures: Captures, tmp_path: Path) -> None:
    """Keras takes its batch on a thread of tf.data, and launches on those of the executors."""
    path = tmp_path / "gpu.xplane.pb"
    path.write_bytes(with_kernels(captures["keras"].file("*.xplane.pb").read_bytes(), us=50))
    profile = opened(path)
    document = profile.document()
    waited = document["analyses"]["input"]["wait_ns_per_step"]
    booked = [row["parts"]["input"] for row in document["accounting"] if row["phase"] == "step"]
    assert waited >= at_least(captures["keras"].truth["input_ns"])
    assert 0.5 * waited < sum(booked) / len(booked) <= 1.5 * waited, "the section and the breakdown agree"
    (finding,) = (finding for finding in profile.findings if finding.rule == "input_bound")
    assert finding.saving_ns_per_step > 0.5 * waited
    shares = document["summary"]["device_ops_share"]
    assert shares["by_count"] > 0.9
