"""What workers can do for a loader, on machines of different sizes."""

from __future__ import annotations

import pytest

from stepscope.whatif.loader import Batches

MS = 1_000_000


def batches(making: float, rest: float, cores: int | None, *, waiting: float = 0, in_workers: bool = False) -> Batches:
    return Batches(making * MS, waiting * MS, rest * MS, cores, in_workers)


@pytest.mark.parametrize(
    ("made", "workers", "measured"),
    [
        # PyTorch 2.13 on two cores: a dataset of Python and small ops, one that only spins, and a generator whose
        # worker slows the step that it hides behind.
        (batches(134, 6.6, 2), 2, 88.5),
        (batches(210, 6, 2), 2, 109.3),
        (batches(10.05, 17.7, 2), 1, 21.26),
    ],
)
def test_what_was_measured_lies_in_the_range(made: Batches, workers: int, measured: float) -> None:
    found = made.best()
    assert found.workers == workers
    assert found.best_ns <= measured * MS <= 1.02 * found.step_ns


def test_with_many_cores_the_rest_of_the_step_is_what_is_left() -> None:
    found = batches(100, 50, 32).best()
    assert found.workers == 3
    assert found.best_ns == 50 * MS
    assert found.step_ns == pytest.approx(50 * MS, rel=0.02)


def test_a_loop_is_slowed_where_a_worker_may_have_the_other_half_of_its_core() -> None:
    beside = [batches(20, 100, cores).with_workers(1).step_ns / MS for cores in (2, 3, 4, 8)]
    assert beside[0] == pytest.approx(110, rel=0.02)
    assert beside[0] > beside[1] > beside[2] == beside[3] == pytest.approx(100, rel=0.02)


def test_workers_and_the_loop_share_the_cores() -> None:
    found = batches(100, 100, 1).best()
    assert found.best_ns == 200 * MS


def test_who_only_waits_needs_no_core() -> None:
    found = batches(100, 10, 2, waiting=95).best()
    assert found.workers >= 8
    assert found.step_ns < 15 * MS


def test_a_batch_that_takes_nothing_costs_its_handing_over() -> None:
    assert batches(0.1, 10, 2).best().step_ns > 10.1 * MS


def test_what_is_measured_in_workers_is_not_charged_for_being_there() -> None:
    there, here = batches(100, 10, 8, in_workers=True), batches(100, 10, 8)
    assert there.with_workers(4).step_ns < here.with_workers(4).step_ns
