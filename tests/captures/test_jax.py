"""JAX on eight forced CPU devices: one server, one profile, eight accountings."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest

import stepscope
from stepscope import Profile
from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.summary import mean_parts
from tests.captures.checks import at_least, at_most, marks, numbered, opened, parts_by_step, slices_named
from tests.captures.jobs import Capture, Captures
from tests.support import unmarked

pytestmark = pytest.mark.slow

NOT_RUN = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")
"""Opcodes that take no time of their own: the profiler draws nothing for them."""

Form = tuple[Profile, Capture]


@pytest.fixture(params=["xplane.pb", "trace.json.gz"])
def ending(request: pytest.FixtureRequest) -> str:
    """Of the files JAX writes."""
    return str(request.param)


@pytest.fixture(params=["jax", "jax_frames"])
def form(request: pytest.FixtureRequest, captures: Captures, ending: str) -> Form:
    """A profile in one of the forms JAX writes, and what was planted."""
    capture = captures[request.param]
    return opened(capture.file(f"*.{ending}")), capture


@pytest.fixture
def with_input(captures: Captures) -> Form:
    """No Python frames; the planted sleep has a loader's name."""
    return opened(captures["jax"].file("*.xplane.pb")), captures["jax"]


@pytest.fixture
def with_frames(captures: Captures) -> Form:
    """Python frames; the planted sleep has no loader's name."""
    return opened(captures["jax_frames"].file("*.xplane.pb")), captures["jax_frames"]


def after_blocking(truth: dict[str, Any]) -> list[int]:
    """The steps that begin with every device idle: whatever sleeps there, they wait for."""
    return [number + 1 for number in truth["blocking"] if number + 1 in numbered(truth["steps"])]


def devices(capture: Capture) -> range:
    return range(capture.truth["devices"])


# --- steps ----------------------------------------------------------------------------------------------------------


def test_steps_have_their_numbers_and_name(form: Form) -> None:
    profile, capture = form
    truth = numbered(capture.truth["steps"])
    document = profile.document()
    assert [step["number"] for step in document["steps"]] == list(truth)
    assert [step["index"] for step in document["steps"]] == list(range(len(truth)))
    assert {(step["basis"], step["inferred"]) for step in document["steps"]} == {("device", False)}
    assert document["summary"]["step_source"] == "train"


def test_steps_last_as_long_as_the_job_measured(form: Form) -> None:
    profile, capture = form
    truth, found = numbered(capture.truth["steps"]), marks(profile)
    assert found["number"].to_list() == list(truth)
    assert set(found["name"].cast(pl.String)) == {"train"}
    for number, dur in found.select("number", "dur_ns").rows():
        inside, around = truth[number]["step_ns"]
        assert at_least(inside) <= dur <= at_most(around)


def test_annotations_last_as_long_as_the_job_measured(form: Form) -> None:
    profile, capture = form
    truth = numbered(capture.truth["steps"])
    name = "load_batch" if len(slices_named(profile, "load_batch")) else "prepare"
    found = slices_named(profile, name)
    assert len(found) == len(truth)
    for step, dur in zip(truth.values(), found["dur_ns"].to_list(), strict=True):
        planted, measured = step["load_ns"]
        assert at_least(planted) <= dur <= at_most(measured)


def test_without_its_markers_every_device_has_the_same_windows(with_input: Form) -> None:
    marked = with_input[0].facts
    found = analyse(unmarked(marked.trace))
    assert found.markers.inferred
    for (_, one), (_, other) in zip(marked.devices, found.devices, strict=True):
        steps = tuple(range(len(marked.markers)))
        ends = [account.rows.bounds[np.array(account.step_rows(steps)) + 1].tolist() for account in (one, other)]
        assert ends[0] == ends[1]


# --- devices and their ops ------------------------------------------------------------------------------------------


def test_every_device_has_its_accounting(form: Form) -> None:
    profile, capture = form
    assert [(device.id, device.kind) for device in profile.trace.info.devices] == [(n, "cpu") for n in devices(capture)]
    document = profile.document()
    assert {row["device"] for row in document["accounting"]} == set(devices(capture))
    for device in devices(capture):
        parts = parts_by_step(document, device)
        assert list(parts) == list(numbered(capture.truth["steps"]))
        assert all(of_step["compute"] > 0 and of_step["collective"] > 0 for of_step in parts.values())


def test_every_device_runs_the_program_once_a_step(form: Form) -> None:
    profile, capture = form
    found, truth = ops_by_device_and_step(profile), numbered(capture.truth["ops"])
    for device in devices(capture):
        for number, program in truth.items():
            ran = [op for op, opcode in program.items() if opcode not in NOT_RUN]
            assert found[device, number] == Counter(ran), (device, number)
    assert sum(map(len, found.values())) == len(profile.trace.device_ops)


def test_a_collective_is_there_once_per_device_and_step(form: Form) -> None:
    profile, capture = form
    found = ops_by_device_and_step(profile, "collective")
    for device in devices(capture):
        for number, program in numbered(capture.truth["ops"]).items():
            collectives = Counter(op for op, opcode in program.items() if opcode.startswith("all-reduce"))
            assert sum(collectives.values()) > 0
            assert found[device, number] == collectives


def ops_by_device_and_step(profile: Profile, kind: str | None = None) -> dict[tuple[int, int], Counter[str]]:
    """(device, number of the step whose marker holds the launch) -> names of ops."""
    slices = profile.trace.table("slices").with_row_index("slice").with_columns(pl.col("slice").cast(pl.Int32))
    named = slices.select("slice", pl.col("name").cast(pl.String), pl.col("kind").cast(pl.String))
    calls = slices.select(pl.col("slice").alias("launch"), pl.col("start_ns").alias("launched_ns"))
    ops = profile.trace.table("device_ops").join(named, on="slice").join(calls, on="launch", how="left")
    assert ops["launched_ns"].null_count() == 0
    steps = marks(profile)
    at = np.searchsorted(steps["start_ns"].to_numpy(), ops["launched_ns"].to_numpy(), "right") - 1
    found: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for device, name, of, step in zip(ops["device"], ops["name"], ops["kind"], at.tolist(), strict=True):
        if kind in (None, of):
            assert step >= 0
            found[device, steps["number"][step]][name] += 1
    return found


def test_ops_know_their_module_scope_and_source_line(with_input: Form) -> None:
    ops = with_input[0].trace.table("xla_ops")
    assert set(ops["module"].cast(pl.String)) == {"jit_train_step"}
    assert ops["program"].n_unique() == 2
    scopes = ops["scope"].cast(pl.String)
    assert scopes.drop_nulls().str.contains("forward").any()
    sources = ops["source"].cast(pl.String).drop_nulls()
    assert sources.str.contains(r"jax_eight_devices\.py:\d+$").any()
    collectives = ops.filter(pl.col("category").cast(pl.String) == "all-reduce")
    assert len(collectives) > 0
    groups = collectives["replica_groups"].cast(pl.String)
    assert groups.null_count() == 0
    assert all("0" in group for group in groups)


def test_the_json_beside_the_xplane_has_the_same_ops(captures: Captures) -> None:
    """Names, devices, order and, but for its three decimals of a microsecond, times."""
    for name in ("jax", "jax_frames"):
        both = [device_ops(opened(captures[name].file(pattern))) for pattern in ("*.xplane.pb", "*.trace.json.gz")]
        assert (
            both[0]
            .select("device", "name", "kind", "op", "module")
            .equals(both[1].select("device", "name", "kind", "op", "module"))
        )
        for column in ("start_ns", "dur_ns"):
            assert np.abs(both[0][column].to_numpy() - both[1][column].to_numpy()).max() <= 1


def device_ops(profile: Profile) -> pl.DataFrame:
    """Ops by device and start; starts count from the first step's."""
    slices = profile.trace.table("slices").with_row_index("slice").with_columns(pl.col("slice").cast(pl.Int32))
    ops = profile.trace.table("device_ops").select("slice", "device")
    xla = profile.trace.table("xla_ops").select("slice", "op", "module")
    made = ops.join(slices, on="slice").join(xla, on="slice").with_columns(pl.col(pl.Enum).cast(pl.String))
    return made.with_columns(pl.col("start_ns") - marks(profile)["start_ns"][0]).sort("device", "start_ns", "name")


# --- causes ---------------------------------------------------------------------------------------------------------


def test_the_loader_is_the_input(with_input: Form) -> None:
    profile, capture = with_input
    document, truth = profile.document(), numbered(capture.truth["steps"])
    for device in devices(capture):
        parts = parts_by_step(document, device)
        for number, step in truth.items():
            assert parts[number].get("input", 0) <= at_most(step["load_ns"][1])
        for number in after_blocking(capture.truth):
            assert parts[number]["input"] >= at_least(truth[number]["load_ns"][0])
    assert "input_bound" in {finding.rule for finding in profile.findings}


def test_a_sleep_that_nothing_explains_is_not_explained(with_input: Form) -> None:
    profile, capture = with_input
    bare = capture.truth["bare"]
    for device in devices(capture):
        parts = parts_by_step(profile.document(), device)
        slept = parts[bare["step"]]
        assert slept.get("unknown_host", 0) + slept.get("sync", 0) >= at_least(bare["ns"])
        assert_waits_cost_no_more_than_they_lasted(parts, capture)


def test_other_sleeps_are_python(with_frames: Form) -> None:
    profile, capture = with_frames
    bare, truth = capture.truth["bare"], numbered(capture.truth["steps"])
    for device in devices(capture):
        parts = parts_by_step(profile.document(), device)
        for number in after_blocking(capture.truth):
            planted = truth[number]["load_ns"][0] + (bare["ns"] if number == bare["step"] else 0)
            assert parts[number].get("python", 0) + parts[number].get("sync", 0) >= at_least(planted)
        assert_waits_cost_no_more_than_they_lasted(parts, capture)
        assert not any("input" in of_step for of_step in parts.values())
    assert "input_bound" not in {finding.rule for finding in profile.findings}


def assert_waits_cost_no_more_than_they_lasted(parts: dict[int, dict[str, int]], capture: Capture) -> None:
    """The host waits only where it asks for a result, and in the call that starts the program."""
    steps = numbered(capture.truth["steps"]).values()
    waited = sum(step["blocked_ns"] + step["call_ns"] for step in steps)
    assert sum(of_step.get("sync", 0) for of_step in parts.values()) <= at_most(waited)


@pytest.mark.parametrize("name", ["jax", "jax_frames"])
def test_the_step_that_recompiled(captures: Captures, name: str) -> None:
    capture = captures[name]
    profile = opened(capture.file("*.xplane.pb"))
    document, truth = profile.document(), capture.truth
    (compiled,) = document["analyses"]["xla"]["compilations"]
    assert document["steps"][compiled["step"]]["number"] == truth["recompiled"]
    assert compiled["module"] == "jit_train_step"
    assert compiled["again"] is True
    weights, usual, other = (truth["batch"][key] for key in ("weights", "usual", "other"))
    assert (compiled["previous_parameters"], compiled["parameters"]) == (f"{weights}, {usual}", f"{weights}, {other}")
    assert compiled["changed"] == f"parameter 1: {usual} → {other}"
    assert "recompiled" in {notice["code"] for notice in document["profile"]["notices"]}
    call_ns = numbered(truth["steps"])[truth["recompiled"]]["call_ns"]
    assert 0 < compiled["dur_ns"] <= at_most(call_ns)
    for device in devices(capture):
        parts = parts_by_step(document, device)
        assert [number for number, of_step in parts.items() if "compile" in of_step] == [truth["recompiled"]]
        recompiled = parts[truth["recompiled"]]
        assert recompiled["compile"] >= at_least(compiled["dur_ns"])
        assert recompiled["graph_build"] > 0
        assert recompiled["compile"] + recompiled["graph_build"] <= at_most(call_ns)


def test_the_duty_cycle_of_every_device(with_input: Form) -> None:
    profile, capture = with_input
    document = profile.document()
    duty = document["analyses"]["xla"]["duty_cycle"]
    assert [of["device"] for of in duty] == list(devices(capture))
    for of_device in duty:
        assert of_device["executions"] == document["summary"]["steps_used"]
        assert 0 < of_device["collective_share"] < of_device["share"] < 1


def test_every_step_transfers_its_batch(with_input: Form) -> None:
    profile, capture = with_input
    puts = slices_named(profile, "DevicePutWithSharding")
    starts = marks(profile)["start_ns"].to_numpy()
    of = np.searchsorted(starts, puts["start_ns"].to_numpy(), "right") - 1
    assert set(of.tolist()) >= set(range(len(starts)))
    for device in devices(capture):
        parts = parts_by_step(profile.document(), device)
        assert all(parts[number]["transfer"] > 0 for number in after_blocking(capture.truth))


# --- predictions ----------------------------------------------------------------------------------------------------


def test_the_step_predicted_without_a_wait_is_the_step_of_the_run_without_it(captures: Captures):
    """Real runs before and after: the loss is read in every step, or never. Within 10 %, and what the machine was
    slower or faster in the second run: both compute the same."""
    capture = captures["jax_pair"]
    before, after = (stepscope.open(capture.folder / name) for name in ("before", "after"))
    assert before.diagnosis.whatif.replay_error is not None
    assert before.diagnosis.whatif.replay_error < 0.02
    measured = after.facts.mean_step_ns
    assert measured is not None
    assert measured >= 0.9 * capture.truth["sleep_ns"]
    computed = [mean_parts(run.facts)[Category.COMPUTE] for run in (before, after)]
    off = abs(before.what_if("sync").predicted_step_ns - measured)
    assert off <= 0.10 * measured + abs(computed[0] - computed[1])
    assert all(activity.launched.all() for activity in after.facts.activities)
