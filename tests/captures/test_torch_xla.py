"""PyTorch/XLA on the CPU: lazy graphs, a loader that sleeps, one recompilation."""

from __future__ import annotations

import pytest

from tests.captures.checks import Document, at_least, at_most, marks, numbered, opened, parts_by_step
from tests.captures.jobs import Capture, Captures

pytestmark = pytest.mark.slow


@pytest.fixture
def capture(captures: Captures) -> Capture:
    return captures["torch_xla"]


def test_steps(capture: Capture) -> None:
    profile, truth = opened(capture.file("*.xplane.pb")), numbered(capture.truth["steps"])
    document, found = profile.document(), marks(profile)
    assert [step["number"] for step in document["steps"]] == list(truth) == found["number"].to_list()
    assert document["summary"]["step_source"] == "train"
    assert {(step["basis"], step["inferred"]) for step in document["steps"]} == {("device", False)}
    for number, dur in found.select("number", "dur_ns").rows():
        inside, around = truth[number]["step_ns"]
        assert at_least(inside) <= dur <= at_most(around)


def executed(document: Document) -> dict[int, dict[str, int]]:
    """Parts of the steps of which something ran before the profile ended: the last is only handed over by then where
    the machine is busy."""
    return {number: parts for number, parts in parts_by_step(document, 0).items() if parts}


def test_the_loader_is_the_input(capture: Capture) -> None:
    profile, truth = opened(capture.file("*.xplane.pb")), numbered(capture.truth["steps"])
    parts = executed(profile.document())
    assert len(parts) >= len(truth) - 1
    for number, of_step in parts.items():
        planted, measured = truth[number]["load_ns"]
        assert at_least(planted) <= of_step["input"] <= at_most(measured)
    assert "input_bound" in {finding.rule for finding in profile.findings}


def test_graphs_are_built_in_every_step(capture: Capture) -> None:
    document = opened(capture.file("*.xplane.pb")).document()
    assert all(parts["graph_build"] > 0 for parts in executed(document).values())
    building = document["analyses"]["xla"]["graph_building"]
    assert building["ns_per_step"] > 0


def test_the_step_that_recompiled(capture: Capture) -> None:
    document, truth = opened(capture.file("*.xplane.pb")).document(), capture.truth
    (compiled,) = document["analyses"]["xla"]["compilations"]
    assert document["steps"][compiled["step"]]["number"] == truth["recompiled"]
    parts = parts_by_step(document, 0)
    assert [number for number, of_step in parts.items() if "compile" in of_step] == [truth["recompiled"]]
    assert compiled["again"] is True
    usual, other = truth["batch"]["usual"], truth["batch"]["other"]
    assert usual in compiled["previous_parameters"]
    assert other in compiled["parameters"]
    assert f"{usual} → {other}" in compiled["changed"]
    assert "recompiled" in {notice["code"] for notice in document["profile"]["notices"]}
