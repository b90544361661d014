"""The file for Perfetto that the viewer writes of a range, read back."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import stepscope
from stepscope.trace.tables import Kind
from stepscope.web.pack import pack
from tests.formats.chrome.perfetto import dropped, load
from tests.formats.chrome.test_chrome_in_perfetto import ARROWS, COMPLAINTS, SLICES, ask, engine
from tests.kit.traces import real_trace
from tests.web.reports import EXAMPLES

__all__ = ["engine"]

WRITER = Path(__file__).with_name("trace_export.mjs")
SMALL = EXAMPLES / "simulated_masked_loss_before.json.gz"
MI300 = "kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz"
"""Its streams overlap, it has collectives and arrows from forward to backward."""


def exported(profile: stepscope.Profile, folder: Path, begin: int | None = None, end: int | None = None) -> Path:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    packed, out = folder / "pack", folder / "selection.json"
    packed.write_bytes(pack(profile))
    bounds = ["null" if at is None else str(at) for at in (begin, end)]
    done = subprocess.run(["node", WRITER, packed, *bounds, out], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"left": 0}
    return out


def opened(path: Path) -> stepscope.Profile:
    made = stepscope.open(path)
    assert isinstance(made, stepscope.Profile)
    return made


@pytest.mark.parametrize("name", ["example", pytest.param(MI300, marks=(pytest.mark.real, pytest.mark.slow))])
def test_stepscope_finds_the_same_in_it(name: str, tmp_path: Path) -> None:
    before = opened(SMALL if name == "example" else real_trace(name))
    path = exported(before, tmp_path)
    assert dropped(load(path)) == []
    after = opened(path)
    told = [profile.document() for profile in (before, after)]
    assert told[0]["summary"]["verdict"] == told[1]["summary"]["verdict"]
    assert told[0]["analyses"]["breakdown"] == told[1]["analyses"]["breakdown"]
    assert [one["id"] for one in told[0]["findings"]] == [one["id"] for one in told[1]["findings"]]
    assert len(before.trace.launches) == len(after.trace.launches) > 0
    assert len(before.trace.flows) == len(after.trace.flows)


def test_a_range_holds_what_overlaps_it(tmp_path: Path) -> None:
    before = opened(SMALL)
    slices = before.trace.slices
    begin, end = 20_000_000, 30_000_000
    inside = (slices.start_ns < end) & (slices.start_ns + slices.dur_ns > begin) & (slices.dur_ns > 0)
    inside &= slices.kind != Kind.OTHER
    path = exported(before, tmp_path, begin, end)
    events = [event for event in load(path)["traceEvents"] if event["ph"] == "X" and event["dur"] > 0]
    kinds = [event["args"]["stepscope kind"] for event in events]
    assert len(kinds) - kinds.count("other") == int(inside.sum()) > 40


@pytest.mark.slow
@pytest.mark.real
def test_perfetto_draws_all_of_it(engine: Path, tmp_path: Path) -> None:
    path = exported(opened(real_trace(MI300)), tmp_path)
    events = load(path)["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    complaints, slices, arrows = ask(engine, path, COMPLAINTS, SLICES, ARROWS)
    assert complaints == []
    assert slices == [[len(complete), round(sum(event["dur"] for event in complete) * 1000)]]
    assert arrows == [[sum(event["ph"] == "f" for event in events)]]
