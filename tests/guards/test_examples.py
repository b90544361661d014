"""The shipped profiles are what examples/README.md says, and belong to the script beside them."""

from __future__ import annotations

import ast
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

import stepscope

PROFILES = {
    "cpu_input_bound": "_SingleProcessDataLoaderIter",
    "cpu_input_fixed": "_MultiProcessingDataLoaderIter",
}
STEPS = [3, 4, 5, 6, 7, 8]
MOST_BYTES = 300_000

Event = dict[str, Any]


def load(root: Path, name: str) -> dict[str, Any]:
    """A shipped profile, read without stepscope."""
    profile: dict[str, Any] = json.loads(gzip.decompress((root / f"examples/profiles/{name}.json.gz").read_bytes()))
    return profile


@pytest.mark.parametrize(("name", "loader"), PROFILES.items())
def test_profile_holds_steps_shapes_stacks_and_the_loader(root: Path, name: str, loader: str) -> None:
    events = load(root, name)["traceEvents"]
    assert [int(event["name"][13:]) for event in events if event["name"].startswith("ProfilerStep#")] == STEPS
    waits = [
        event
        for event in events
        if event["name"] == f"enumerate(DataLoader)#{loader}.__next__" and event["cat"] == "user_annotation"
    ]
    assert len(waits) == len(STEPS)
    assert any(event["cat"] == "python_function" for event in events if "cat" in event)
    assert any("Input Dims" in event.get("args", {}) for event in events)


@pytest.mark.parametrize("name", PROFILES)
def test_frames_point_at_the_lines_of_the_script(root: Path, name: str) -> None:
    """A finding names capture_demo.py:line, so a change of the script means capturing again."""
    tree = ast.parse((root / "examples" / "capture_demo.py").read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    # A function that ran already when the profile began is recorded at the line it stood on.
    lines = {(node.name, line) for node in functions for line in range(node.lineno, node.end_lineno + 1)}
    firsts = {(node.name, node.lineno) for node in functions if node.name not in ("main", "train")}
    frames = [
        re.fullmatch(r"capture_demo\.py\((\d+)\): (\w+)", event["name"]) for event in load(root, name)["traceEvents"]
    ]
    recorded = {(frame[2], int(frame[1])) for frame in frames if frame and frame[2] != "<module>"}
    assert {function for function, _ in recorded} >= {"main", "train", "forward"}
    assert recorded <= lines
    assert {frame for frame in recorded if frame[0] not in ("main", "train")} <= firsts


@pytest.mark.parametrize("name", PROFILES)
def test_profile_is_small_and_names_no_machine(root: Path, name: str) -> None:
    profile = load(root, name)
    assert profile["host_name"] == "localhost"
    assert profile["traceName"] == f"profiles/{name}.json"
    assert (root / f"examples/profiles/{name}.json.gz").stat().st_size <= MOST_BYTES
    assert not [event["name"] for event in profile["traceEvents"] if event["name"].startswith("/")]


def test_the_jax_profile_is_of_the_script(root: Path) -> None:
    script = (root / "examples" / "jax_demo.py").read_text(encoding="utf-8")
    numbers = re.search(r"^FIRST_STEP, STEPS, LONG_BATCH = (\d+), (\d+), (\d+)$", script, re.MULTILINE)
    assert numbers is not None
    first, count, long_batch = map(int, numbers.groups())
    path = root / "examples/profiles/jax_eight_devices.xplane.pb.gz"
    assert path.stat().st_size < 450_000
    profile = stepscope.open(path)
    assert profile.steps["number"].to_list() == [*range(first, first + count)]
    document = profile.document()
    (again,) = [found for found in document["analyses"]["xla"]["compilations"] if found["again"]]
    assert (again["step"], again["changed"]) == (long_batch - first, "parameter 1: f32[64,256] → f32[128,256]")
    (loading,) = [found for found in profile.findings if found.rule == "input_bound"]
    assert loading.where[0].function == "load_batch"
    assert script.splitlines()[(loading.where[0].line or 0) - 1].startswith("def load_batch")
