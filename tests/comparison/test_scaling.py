"""Scaling: what N devices do of N times the work, and what eats the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.comparison.compare import compare
from stepscope.comparison.side import Side
from tests.comparison.test_compare import side
from tests.kit.plan import Plan

ONE = Plan(seed=0, buckets=1, collective_us=1)


def _in_a_world_of(run: Side, ranks: int) -> Side:
    return replace(run, devices=ranks)


@pytest.fixture(scope="module")
def slower() -> tuple[Side, Side]:
    """One device, and one of eight ranks whose collective takes 2 ms in which nothing runs."""
    return side(ONE), _in_a_world_of(side(replace(ONE, collective_us=2_000)), 8)


def test_the_loss_is_the_collective_that_was_planted(slower: tuple[Side, Side]):
    found = compare(*slower).scaling
    assert found is not None
    assert (found.devices_before, found.devices_after) == (1, 8)
    first, *rest = found.losses
    assert first.cause == "communication that nothing hides"
    assert first.ns == pytest.approx(2_000_000, rel=0.02)
    assert all(abs(loss.ns) < 50_000 for loss in rest)


def test_losses_sum_and_efficiency_is_the_steps_ratio(slower: tuple[Side, Side]):
    comparison = compare(*slower)
    found = comparison.scaling
    assert found is not None
    assert sum(loss.ns for loss in found.losses) == pytest.approx(comparison.step.ns, abs=5)
    assert found.efficiency == comparison.step.before_ns / comparison.step.after_ns
    assert found.speedup == pytest.approx(8 * found.efficiency)
    assert not found.negative


def test_more_devices_that_are_slower_than_fewer_are_called_so():
    one, two = side(ONE), _in_a_world_of(side(replace(ONE, collective_us=60_000)), 2)
    found = compare(one, two).scaling
    assert found is not None
    assert found.negative


def test_the_devices_of_one_process_count():
    assert side(Plan(seed=0, devices=2)).devices == 2
    assert side(ONE).devices == 1


def test_processes_count_where_none_has_a_device():
    one, two = (replace(side(ONE), devices=None, world_size=ranks) for ranks in (1, 2))
    found = compare(one, two).scaling
    assert found is not None
    assert (found.unit, found.devices_before, found.devices_after) == ("processes", 1, 2)
    assert compare(replace(one, world_size=None), two).scaling is None


def test_as_many_devices_as_before_do_not_scale(slower: tuple[Side, Side]):
    assert compare(slower[0], slower[0]).scaling is None
    assert compare(slower[1], slower[0]).scaling is None
