"""The critical path tiles each used step exactly, on real profiles, and what it gains is bounded by it."""

from __future__ import annotations

import numpy as np
import pytest

import stepscope
from stepscope.analysis.categories import CATEGORIES
from stepscope.whatif.critical import CriticalPath, critical_path, grouped, saving_ns
from tests.support import real_profile
from tests.web.reports import EXAMPLE

PROFILES = (
    "kineto/a100_event_sync_multi_stream.json.gz",
    "kineto/h100_bert_small.json.gz",
    "kineto/mi300_vllm_decode.json.gz",
    "kineto/torch_compile_triton.json.gz",
    "kineto/v100_two_ranks_rank1.json.gz",
    "kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz",
)


def _path(name: str) -> tuple[stepscope.Profile, CriticalPath]:
    profile = real_profile(name)
    assert isinstance(profile, stepscope.Profile)
    path = critical_path(profile.facts)
    assert isinstance(path, CriticalPath)
    return profile, path


@pytest.mark.real
@pytest.mark.parametrize("name", PROFILES)
def test_the_path_is_exactly_as_long_as_each_step(name: str) -> None:
    profile, path = _path(name)
    begun, over = profile.facts.step_bounds
    for step in profile.facts.used:
        mine = path.step == step
        start, dur = path.start[mine], path.dur[mine]
        assert start[0] == begun[step]
        assert (start[1:] == (start + dur)[:-1]).all()
        assert int(dur.sum()) == int(over[step] - begun[step])
        assert (dur > 0).all()
    entry = profile.document()["analyses"]["critical_path"]
    steps = int(profile.facts.step_ns[list(profile.facts.used)].sum())
    assert entry["total_ns"] == sum(entry["parts"].values()) == steps


@pytest.mark.real
@pytest.mark.parametrize("name", PROFILES[:4])
def test_what_an_element_gains_is_bounded_by_its_time(name: str) -> None:
    profile, path = _path(name)
    groups = grouped(profile.facts, path)
    assert sum(group.total_ns for group in groups) == int(path.dur.sum())
    assert np.array_equal(np.sort(np.concatenate([group.rows for group in groups])), np.arange(path.start.size))
    for group in groups[:6]:
        gained = saving_ns(profile.facts, path, group.rows)
        assert gained is None or 0 <= gained <= profile.facts.per_step(group.total_ns)


@pytest.mark.real
def test_a_device_that_is_always_busy_is_the_path() -> None:
    """Most of a step of decoding is compute, by the accounting too: taking the longest op away gains its time."""
    profile, path = _path("kineto/mi300_vllm_decode.json.gz")
    compute = int(path.dur[path.category == CATEGORIES.index("compute")].sum())  # type: ignore[arg-type]
    booked = sum(row["parts"].get("compute", 0) for row in profile.document()["accounting"] if row["phase"] == "step")
    assert 0.95 < compute / booked <= 1.05
    first = grouped(profile.facts, path)[0]
    gained = saving_ns(profile.facts, path, first.rows)
    assert gained is not None
    assert gained > 0.5 * profile.facts.per_step(first.total_ns)


@pytest.mark.real
def test_it_is_a_table_that_queries_find() -> None:
    profile, path = _path("kineto/torch_compile_triton.json.gz")
    found = profile.query("SELECT step, SUM(dur_ns) AS ns FROM critical_path GROUP BY step")
    steps = profile.facts.used
    assert found.to_dicts() == [{"step": steps[0], "ns": int(profile.facts.step_ns[steps[0]])}]
    named = profile.query("SELECT category, COUNT(*) n FROM critical_path WHERE device IS NOT NULL GROUP BY category")
    assert {row["category"] for row in named.to_dicts()} <= set(map(str, CATEGORIES))
    assert sum(named["n"].to_list()) == int((path.op >= 0).sum())


def test_without_a_device_there_is_none_and_it_is_said() -> None:
    profile = stepscope.open(EXAMPLE)
    assert critical_path(profile.facts) == "no device was recorded"
    assert profile.query("SELECT * FROM critical_path").height == 0
