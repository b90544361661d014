"""How often simulated runs are called different, unchanged or neither, and gates fire: false alarms and misses.

Pairs are few and seeds fixed; ``python -m tests.comparison.test_rates`` prints the rates of hundreds of pairs that
docs/decisions/0010 and docs/guides/compare.md give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from stepscope.analysis.categories import CATEGORIES
from stepscope.comparison import budgets
from stepscope.comparison.apart import usual
from stepscope.comparison.compare import Comparison, compare
from stepscope.comparison.side import Side, several
from tests.comparison.test_compare import side
from tests.kit.plan import Plan

_MS = 1e6
_RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Whichever tests ran before."""
    _RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state


@dataclass(frozen=True)
class Machine:
    """How the steps of a machine vary, as shares of a step."""

    steps: float = 0.05
    runs: float = 0.0
    """Standard deviation between runs."""
    follow: float = 0.0
    bad: float = 0.0
    """Share of steps that take eight times as long."""
    each: int = 1
    """Runs of each side."""


QUIET = Machine(steps=0.01, runs=0.005)
WHITE = Machine()
NOISY = Machine(steps=0.2)
FOLLOWING = Machine(follow=0.7)
HOSTED = Machine(runs=0.03)
BAD_STEPS = Machine(bad=0.05)
HOSTED_RUNS = replace(HOSTED, each=3)


def _steps(machine: Machine, count: int, mean: float) -> np.ndarray:
    noise = _RNG.normal(size=count)
    for k in range(1, count):
        noise[k] = machine.follow * noise[k - 1] + (1 - machine.follow**2) ** 0.5 * noise[k]
    made = mean * (1 + machine.runs * _RNG.normal()) * (1 + machine.steps * noise)
    made[_RNG.random(count) < machine.bad] *= 8
    return np.maximum(made, 0.01 * mean).astype(np.int64)


def _side(machine: Machine, count: int, mean: float) -> Side:
    runs = []
    for _ in range(machine.each):
        step_ns = _steps(machine, count, mean)
        parts = np.zeros((count, len(CATEGORIES)))
        kept = usual(step_ns, parts)
        own = {"step_ns": step_ns[kept], "parts": parts[kept], "runs": (int(kept.sum()),)}
        runs.append(replace(side(Plan(seed=0)), **own, findings=(), minor=(), work=None))
    return several(runs)


def _pairs(machine: Machine, steps: int, slower: float, pairs: int) -> Iterator[Comparison]:
    for _ in range(pairs):
        yield compare(_side(machine, steps, 10 * _MS), _side(machine, steps, 10 * _MS * (1 + slower)))


def _changed(machine: Machine, steps: int, slower: float, pairs: int) -> dict[bool | None, float]:
    said = [found.changed for found in _pairs(machine, steps, slower, pairs)]
    return {value: said.count(value) / pairs for value in (True, False, None)}


def _fired(machine: Machine, steps: int, slower: float, pairs: int, gate: str = "step_time > +3%") -> float:
    limit = budgets.parse(gate)
    return sum(budgets.check(limit, c.after, c).fired for c in _pairs(machine, steps, slower, pairs)) / pairs


@pytest.mark.parametrize(
    ("machine", "steps", "most"),
    [
        (QUIET, 20, 0.01),
        (WHITE, 4, 0.03),
        (WHITE, 20, 0.01),
        (NOISY, 13, 0.06),
        (FOLLOWING, 4, 0.18),
        (FOLLOWING, 20, 0.06),
        (HOSTED, 13, 0.2),
        (HOSTED_RUNS, 13, 0.08),
        (BAD_STEPS, 13, 0.03),
    ],
)
def test_the_same_code_is_seldom_called_different(machine: Machine, steps: int, most: float):
    assert _changed(machine, steps, 0.0, 200)[True] <= most


@pytest.mark.parametrize("machine", [QUIET, WHITE, NOISY, FOLLOWING, HOSTED, BAD_STEPS, HOSTED_RUNS])
@pytest.mark.parametrize("steps", [4, 20])
def test_half_as_slow_again_is_never_called_unchanged(machine: Machine, steps: int):
    assert _changed(machine, steps, 0.5, 60)[False] == 0


@pytest.mark.parametrize(("machine", "least"), [(QUIET, 1.0), (WHITE, 1.0), (FOLLOWING, 0.97), (HOSTED, 1.0)])
def test_half_as_slow_again_is_seen(machine: Machine, least: float):
    assert _changed(machine, 20, 0.5, 100)[True] >= least


def test_one_quiet_run_of_each_tells_that_nothing_changed():
    assert _changed(QUIET, 20, 0.0, 100)[False] >= 0.98


@pytest.mark.parametrize("machine", [QUIET, WHITE, NOISY, FOLLOWING, BAD_STEPS])
@pytest.mark.parametrize("steps", [4, 20])
def test_a_gate_lets_nothing_through_that_is_much_beyond_it(machine: Machine, steps: int):
    assert _fired(machine, steps, 0.12, 60) >= 0.95


def test_a_gate_on_a_quiet_machine_does_not_flicker():
    assert _fired(QUIET, 20, 0.0, 300) <= 0.01


def test_a_gate_that_several_runs_can_check_fires_for_few():
    assert _fired(replace(QUIET, each=3), 20, 0.0, 100) <= 0.03


if __name__ == "__main__":
    MACHINES = {
        "quiet": QUIET, "5 % steps": WHITE, "20 % steps": NOISY, "following 0.7": FOLLOWING, "runs 3 %": HOSTED,
        "runs 3 %, 3 of each": HOSTED_RUNS, "5 % bad steps": BAD_STEPS,
    }  # fmt: skip
    print("machine steps: same code changed, cannot be told | +50 % missed, cannot be told | gate +3 % at 0, at +6 %")
    for name, one in MACHINES.items():
        for n in (4, 20, 50):
            same, slow = _changed(one, n, 0.0, 1000), _changed(one, n, 0.5, 300)
            gates = [_fired(one, n, slower, 500) for slower in (0.0, 0.06)]
            rates = (same[True], same[None], slow[False], slow[None], *gates)
            print(f"{name:20} {n:3}: " + " ".join(f"{rate:6.1%}" for rate in rates))
