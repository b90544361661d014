"""Traces larger than the viewer holds, and what it says of what is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepscope
from stepscope.web import pack as packs
from stepscope.web.bounded import bounded_lines
from stepscope.web.lines import TraceTexts, lines
from tests.web.reports import EXAMPLES
from tests.web.test_pack import read

STEPPED = EXAMPLES / "simulated_masked_loss_before.json.gz"


def test_a_large_trace_is_shown_up_to_the_end_of_a_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile = stepscope.open(STEPPED)
    assert isinstance(profile, stepscope.Profile)
    whole = read(packs.pack(profile), tmp_path, 0, 1)
    assert whole["losses"] == []
    assert whole["progress"] == [0.5, 1]
    monkeypatch.setattr(packs, "VIEW_SLICES", whole["slices"] // 2)
    part = read(packs.pack(profile), tmp_path, 0, 1)
    assert 0 < part["slices"] <= whole["slices"] // 2
    (note,) = part["losses"]
    shown = len(part["steps"])
    assert 0 < shown < len(whole["steps"])
    assert f"of the {whole['slices']:,} slices of this trace the {part['slices']:,} up to the end of" in note
    assert f" {part['steps'][-1]} " in note
    assert "--steps A:B" in note
    assert part["end"] < whole["end"]


def test_without_whole_steps_the_first_time_is_kept() -> None:
    profile = stepscope.open(STEPPED)
    drawn = lines(profile.facts, TraceTexts(list(profile.trace.strings)))
    bound = bounded_lines(drawn, [{"name": "step 0", "end_ns": 1 << 60}], 40)
    assert bound is not None
    starts = np.sort(np.concatenate([line.start for line in drawn]))
    assert sum(line.start.size for line in bound.lines) == int(np.searchsorted(starts, bound.until_ns)) <= 40
    assert "--time A:B" in bound.note
    assert bounded_lines(drawn, [], starts.size) is None


def test_a_part_says_what_it_is_a_part_of(tmp_path: Path) -> None:
    profile = stepscope.open(STEPPED)
    assert isinstance(profile, stepscope.Profile)
    (note,) = read(packs.pack(profile.slice(steps=(1, 3))), tmp_path, 0, 1)["losses"]
    assert "cut out" in note
