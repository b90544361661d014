"""The replay: unchanged it is the profile, and with a cause taken out it is the same run simulated without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.floors import faster
from stepscope.whatif import changes
from stepscope.whatif.change import Change
from stepscope.whatif.graph import dependency_graph
from stepscope.whatif.predictor import predictor
from stepscope.whatif.replay import replay
from tests.kit.planted import CASES, Planted
from tests.kit.some import some
from tests.kit.traces import KINETO_NAMES, LARGE
from tests.support import planted_case, planted_facts, real_facts, trace_of


def host(cause: Category) -> Callable[[Facts], Change]:
    return lambda facts: changes.without_host_time(facts, cause)


def every_wait(facts: Facts) -> Change:
    return Change(waits=frozenset(facts.host.waits.slice.tolist()))


CURES: dict[str, Callable[[Facts], Change]] = {
    "input_bound": host(Category.INPUT),
    "input_on_main_thread": host(Category.INPUT),
    "input_bound_pipeline": host(Category.INPUT),
    "sync_bound": every_wait,
    "sync_chain": every_wait,
    "sync_in_three_places": every_wait,
    "sync_limited": every_wait,
    "launch_bound": changes.without_dispatch,
    "exposed_copy": lambda facts: changes.without_copies(facts, Category.COPY_H2D),
    "copy_staging": lambda facts: changes.without_copies(facts, Category.COPY_H2D),
    "python_between_steps": host(Category.PYTHON),
    "python_annotated": host(Category.PYTHON),
    "garbage_collection": host(Category.GC),
    "checkpointing": host(Category.CHECKPOINT_IO),
    "allocator_retries": host(Category.ALLOCATOR),
    "recompilation": host(Category.COMPILE),
    "profiler_overhead": host(Category.PROFILER),
}
ON_A_DEVICE = [name for name in CASES if name not in ("sampled", "cpu_only")]


def solved(name: str) -> tuple[Planted, Facts]:
    return planted_case(name), planted_facts(name)


def mean(facts: Facts, change: Change) -> float:
    return float(replay(facts, dependency_graph(facts), change)[list(facts.timed)].mean())


@pytest.mark.parametrize("name", some(ON_A_DEVICE, 7))
def test_unchanged_it_is_the_profile(name: str):
    _, facts = solved(name)
    measured = facts.step_ns[list(facts.timed)].mean()
    assert mean(facts, Change()) == pytest.approx(measured, rel=0.002)


@pytest.mark.parametrize("name", CURES)
def test_without_the_cause_it_is_the_run_simulated_without_it(name: str):
    """Within 1 % of the step, and 2 % of what is saved."""
    planted, facts = solved(name)
    measured = facts.step_ns[list(facts.timed)].mean()
    predicted = measured - (mean(facts, Change()) - mean(facts, CURES[name](facts)))
    wanted = planted.without_ns["all"]
    assert predicted == pytest.approx(wanted, rel=0.01)
    assert measured - predicted == pytest.approx(measured - wanted, rel=0.02)


@pytest.mark.parametrize(("left", "key"), [(1, "two"), (2, "one")])
def test_a_wait_of_a_chain_taken_out_alone_moves_to_the_next(left: int, key: str):
    """Three reads in a row per step: with one or two of them left the step is as long as with three."""
    planted, facts = solved("sync_chain")
    waits = facts.host.waits
    order = waits.slice[np.argsort(waits.start, kind="stable")]
    gone = frozenset(s for k, s in enumerate(order.tolist()) if k % 3 >= left)
    predicted = mean(facts, Change(waits=gone))
    assert predicted == pytest.approx(planted.without_ns[key], rel=0.01)
    assert predicted > 0.98 * mean(facts, Change())


def test_taking_out_what_does_not_happen_changes_nothing():
    _, facts = solved("healthy")
    base = replay(facts, dependency_graph(facts), Change())
    for cause in (Category.GC, Category.COMPILE, Category.CHECKPOINT_IO):
        assert np.array_equal(replay(facts, dependency_graph(facts), host(cause)(facts)), base)


def test_two_changes_at_once_take_out_both():
    _, facts = solved("input_bound")
    both = host(Category.INPUT)(facts) | every_wait(facts)
    assert mean(facts, both) <= min(mean(facts, host(Category.INPUT)(facts)), mean(facts, every_wait(facts)))
    assert (Change() | both).waits == both.waits


def test_kernels_twice_as_fast_halve_a_step_that_is_nothing_but_kernels():
    _, facts = solved("healthy")
    (work,) = facts.work
    half = mean(facts, changes.faster_kernels(facts, faster(work, np.arange(work.rows.size), work.ns / 2)))
    assert half == pytest.approx(mean(facts, Change()) / 2, rel=0.02)


# --- where nothing can be replayed ---------------------------------------------------------------------------


def test_without_a_device_or_with_events_missing_it_says_why():
    assert predictor(solved("cpu_only")[1]) == "no device was recorded"
    assert predictor(solved("sampled")[1]) == "events are missing inside the profile"


def test_without_launches_it_says_how_many_were_recorded():
    planted = CASES["healthy"]()
    events = [event for event in planted.events if event.cat != "cuda_runtime"]
    told = predictor(analyse(trace_of(events)))
    assert told == "the launches of only 0 % of the device's ops were recorded"


# --- real profiles -------------------------------------------------------------------------------------------

TOLD = {
    "a100_rank0_of_128": "missing inside",
    "a100_rank1_of_128": "missing inside",
    "cpu_only_no_device": "no device",
    "cpu_only_rank34_of_300": "no device",
}
"""Real profiles that cannot be replayed, and part of why."""


@pytest.mark.real
@pytest.mark.parametrize(
    "names", [[name for name in KINETO_NAMES if name not in LARGE], *some([KINETO_NAMES], 0)], ids=len
)
def test_real_profiles_replay_within_one_percent(names: Sequence[str]):
    """The median of the errors is under 0.1 %, the worst under 1.5 %, and nearly nothing is kept as measured."""
    errors = {}
    for name in names:
        found = predictor(real_facts(f"kineto/{name}.json.gz"))
        if isinstance(found, str):
            assert TOLD[name] in found, (name, found)
        else:
            assert found.residual_share <= 0.05, name
            errors[name] = found.error
    assert set(errors) == set(names) - set(TOLD)
    assert float(np.median(list(errors.values()))) <= 0.001
    assert max(errors.values()) <= 0.015, errors


@pytest.mark.parametrize("name", ["sync_bound", "sync_chain", "sync_in_three_places"])
def test_a_copy_to_the_host_comes_behind_what_it_copies(name: str):
    """Faster copies of 2 µs gain that much: the host still waits for the kernels whose result it reads."""
    _, facts = solved(name)
    copied = mean(facts, Change()) - mean(facts, changes.without_copies(facts, Category.COPY_D2H))
    reads = 3 if name != "sync_bound" else 1
    assert copied == pytest.approx(2_000 * reads, abs=100)
