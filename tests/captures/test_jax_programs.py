"""What compiled programs of JAX do beside computing: they call Python, and are compiled anew."""

from __future__ import annotations

import pytest

from stepscope import Profile
from tests.captures.checks import at_least, opened, parts_by_step
from tests.captures.jobs import Captures

pytestmark = pytest.mark.slow


@pytest.fixture(params=["*.xplane.pb", "*.trace.json.gz"])
def ending(request: pytest.FixtureRequest) -> str:
    """Of the files JAX writes."""
    return str(request.param)


def calling(captures: Captures, name: str, ending: str) -> Profile:
    return opened(captures[name].file(ending))


@pytest.mark.parametrize("name", ["jax_callbacks", "jax_callbacks_frames"])
def test_the_device_waits_for_the_functions_that_its_program_calls(captures: Captures, name: str, ending: str) -> None:
    profile, truth = calling(captures, name, ending), captures[name].truth
    parts = parts_by_step(profile.document(), 0)
    assert len(truth["slept_ns"]) == truth["steps"] == len(parts)
    for of_step in parts.values():
        assert of_step["python"] >= at_least(truth["sleep_ns"])
        assert of_step["compute"] > 0
    found = {finding.rule: finding for finding in profile.findings}
    assert "recompilation" not in found
    called = found["host_callback"]
    assert called.cost_ns_per_step is not None
    assert called.cost_ns_per_step >= at_least(truth["sleep_ns"])
    assert "`pure_callback` " in called.why
    named = [where.function for where in called.where if where.function]
    assert named == (["slow_lookup"] if name == "jax_callbacks_frames" else [])


def test_a_program_that_is_found_in_its_cache_is_not_compiled(captures: Captures, ending: str) -> None:
    """Programs with effects go through Python in every call, which looks them up there."""
    document = calling(captures, "jax_callbacks_frames", ending).document()
    for of_step in parts_by_step(document, 0).values():
        assert not {"compile", "graph_build"} & of_step.keys()
    assert "recompiled" not in {notice["code"] for notice in document["profile"]["notices"]}


def test_programs_that_are_compiled_for_new_shapes(captures: Captures) -> None:
    capture = captures["jax_new_shapes"]
    profile, truth = opened(capture.file("*.xplane.pb")), capture.truth
    compiled = profile.document()["analyses"]["xla"]["compilations"]
    compiled = [one for one in compiled if one["module"] == "jit_train_step"]
    assert [one["step"] for one in compiled] == list(range(len(truth["rows"])))
    before, now = truth["rows"][1:3]
    assert compiled[2]["changed"] == f"parameter 1: f32[{before},{truth['width']}] → f32[{now},{truth['width']}]"
    (found,) = (finding for finding in profile.findings if finding.rule == "recompilation")
    assert "because its inputs changed" in found.why


def test_programs_of_one_name_and_shape_are_not_said_to_have_changed(captures: Captures) -> None:
    profile = opened(captures["jax_new_functions"].file("*.xplane.pb"))
    document = profile.document()
    compiled = document["analyses"]["xla"]["compilations"]
    assert len([one for one in compiled if one["module"] == "jit_train_step"]) >= len(document["steps"])
    assert "recompiled" not in {notice["code"] for notice in document["profile"]["notices"]}
    (found,) = (finding for finding in profile.findings if finding.rule == "recompilation")
    assert "inputs changed" not in found.why
    assert "jax.jit" in found.fix


def test_layers_that_a_program_repeats_are_one_row_of_its_scopes(captures: Captures) -> None:
    capture = captures["jax_layers"]
    (program,) = opened(capture.file("*.xplane.pb")).document()["analyses"]["op_tree"]
    scopes = {node["name"]: node.get("times") for node in program["nodes"] if node["op"] is None}
    layers = capture.truth["layers"]
    for name in ("jvp(layer_*)", "transpose(jvp(layer_*))", "dense_1", "dense_2"):
        assert scopes[name] == layers
    assert not [name for name in scopes if "layer_0" in name]
    assert sum(node["total_ns"] for node in program["nodes"] if node["op"]) == program["total_ns"]
