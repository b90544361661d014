"""A TensorFlow 1 Session's run with FULL_TRACE, in each of its forms: it waits for a slow producer."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from stepscope import Profile
from tests.captures.checks import at_least, opened
from tests.captures.jobs import Capture, Captures

pytestmark = pytest.mark.slow

MESSAGES = ("RunMetadata.pb", "StepStats.pb")
TIMELINES = ("plain.json", "memory.json", "no_dataflow.json")
CLOCK_NS = 1_000_000
"""How far TensorFlow's clock and the job's may stand apart: both tell Unix time."""


@pytest.fixture
def capture(captures: Captures) -> Capture:
    return captures["tf_session"]


@pytest.fixture(params=MESSAGES)
def message(request: pytest.FixtureRequest, capture: Capture) -> Profile:
    return opened(capture.file(request.param))


@pytest.fixture(params=TIMELINES)
def timeline(request: pytest.FixtureRequest, capture: Capture) -> Profile:
    return opened(capture.file(request.param))


@pytest.fixture(params=MESSAGES + TIMELINES)
def profile(request: pytest.FixtureRequest, capture: Capture) -> Profile:
    return opened(capture.file(request.param))


def nodes_of(profile: Profile) -> pl.DataFrame:
    slices = profile.trace.table("slices").with_row_index("slice").with_columns(pl.col("slice").cast(pl.Int32))
    joined = profile.trace.table("nodes").join(slices, on="slice")
    return joined.with_columns(pl.col(pl.Enum).cast(pl.String)).sort("start_ns")


def test_every_node_is_there_with_its_time(message: Profile, capture: Capture) -> None:
    origin = message.trace.info.origin_epoch_ns
    assert origin is not None
    nodes = nodes_of(message).select("node", pl.col("start_ns") + origin, "dur_ns")
    expected = [(node["node"], node["start_ns"], node["dur_ns"]) for node in capture.truth["nodes"]]
    assert sorted(nodes.rows()) == sorted(expected)


def test_every_node_of_a_timeline_is_there_to_the_microsecond(timeline: Profile, capture: Capture) -> None:
    found = nodes_of(timeline)
    expected = {node["node"]: node for node in capture.truth["nodes"]}
    assert Counter(found["node"]) == Counter(list(expected))
    first = min(node["start_us"] for node in expected.values())
    earliest = found["start_ns"].min()
    for name, start, dur in found.select("node", "start_ns", "dur_ns").rows():
        assert (start - earliest, dur) == ((expected[name]["start_us"] - first) * 1000, expected[name]["dur_us"] * 1000)


def test_ops_inputs_and_outputs(profile: Profile, capture: Capture) -> None:
    nodes = {row["node"]: row for row in nodes_of(profile).to_dicts()}
    assert nodes["take"]["op"] == "QueueDequeueManyV2"
    assert nodes["take"]["inputs"] is not None
    assert "batches" in nodes["take"]["inputs"]
    assert nodes["matmul"]["op"] == "MatMul"


def test_outputs(message: Profile, capture: Capture) -> None:
    tensors = message.trace.table("tensors")
    assert len(tensors) == sum(node["outputs"] for node in capture.truth["nodes"])
    of = dict(nodes_of(message).select("node", "slice").rows())
    (taken,) = tensors.filter(slice=of["take"]).to_dicts()
    assert (taken["shape"], taken["slot"]) == ("[4,32,64]", 0)
    assert "float" in taken["dtype"].lower()
    assert taken["requested"] == 4 * 32 * 64 * 4


def test_the_wait_for_the_producer_is_the_input(profile: Profile, capture: Capture) -> None:
    truth, (taken,) = capture.truth, nodes_of(profile).filter(node="take").to_dicts()
    (asked,) = (node["start_ns"] for node in truth["nodes"] if node["node"] == "take")
    assert taken["dur_ns"] >= at_least(truth["last_offered"] - asked)
    document = profile.document()
    (row,) = [row for row in document["accounting"] if row["phase"] == "step"]
    assert row["device"] is None
    others = sum(node["dur_ns"] for node in truth["nodes"] if node["node"] != "take")
    assert taken["dur_ns"] - others <= row["parts"]["input"] <= taken["dur_ns"]
    assert "input_bound" in {finding.rule for finding in profile.findings}


def test_the_wait_ends_when_the_producer_has_offered(message: Profile, capture: Capture) -> None:
    origin = message.trace.info.origin_epoch_ns
    assert origin is not None
    (taken,) = nodes_of(message).filter(node="take").to_dicts()
    began, ended = (origin + taken["start_ns"], origin + taken["start_ns"] + taken["dur_ns"])
    assert capture.truth["began"] - CLOCK_NS <= began
    assert capture.truth["last_offered"] - CLOCK_NS <= ended <= capture.truth["ended"] + CLOCK_NS


def test_tensors_flow_from_node_to_node(profile: Profile) -> None:
    """Also where no arrows were drawn: each node names its inputs."""
    flows, nodes = profile.trace.table("flows"), nodes_of(profile)
    name = dict(nodes.select("slice", "node").rows())
    assert set(flows["kind"].cast(pl.String)) == {"dataflow"}
    edges = {(name[source], name[target]) for source, target in flows.select("source", "target").rows()}
    assert len(edges) == len(flows)
    for edge in (("batches", "take"), ("take", "Reshape"), ("Reshape", "matmul"), ("matmul", "Relu")):
        assert edge in edges


def test_memory_where_it_was_recorded(capture: Capture) -> None:
    plain, memory, _ = (opened(capture.file(name)) for name in TIMELINES)
    assert len(memory.trace.counters) + len(memory.trace.memory) > 0
    assert len(plain.trace.counters) + len(plain.trace.memory) == 0
    message = opened(capture.file("StepStats.pb"))
    assert len(message.trace.memory) > 0


def test_both_messages_hold_the_same(capture: Capture) -> None:
    one, other = (nodes_of(opened(capture.file(name))).drop("offset") for name in MESSAGES)
    assert one.equals(other)
