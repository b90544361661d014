"""Batches that a JAX program makes itself on a processor: called after a batch, and handed over next."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, line, space

MS = 10**9
"""Picoseconds."""
STEPS, STEP = 8, 20


def looped(function: str, then: str = "DevicePutWithSharding") -> Facts:
    """Steps of 20 ms: 12 ms in a function, then what follows it, then a program of 4 ms on XLA:CPU."""
    events = []
    for step in range(STEPS):
        at = step * STEP * MS
        told = {"hlo_module": "jit_step", "program_id": 3, "run_id": 100 + step, "device_ordinal": 0, "hlo_op": "dot.1"}
        events += [
            Ev("train", at, 19 * MS, {"_r": 1, "step_num": step}),
            Ev(f"$train.py:7 {function}", at + MS, 12 * MS),
            Ev("$api.py:9 device_put", at + 14 * MS - MS // 10, MS // 2),
            Ev(then, at + 14 * MS, MS // 10),
            Ev("PjitFunction(step)", at + 15 * MS, 4 * MS),
            Ev("CommonPjRtLoadedExecutable::Execute (jit_step)", at + 15 * MS + MS // 5, 3 * MS,
               {"run_id": 100 + step}),
            Ev("dot.1", at + 15 * MS + MS // 4, 2 * MS, told),
        ]  # fmt: skip
    version = Plane("/host:metadata", stats={"jax_version": "0.10.2"})
    return analyse(read(space(version, Plane("/host:CPU", (line("python", *events, id=1),)))))


def test_what_makes_the_batch_that_is_handed_over_is_input() -> None:
    parts = mean_parts(looped("load_batch"))
    assert parts[Category.INPUT] == pytest.approx(12_000_000, rel=0.01)
    assert parts.get(Category.PYTHON, 0) < 3_000_000


@pytest.mark.parametrize(
    ("function", "then"),
    [("prepare", "DevicePutWithSharding"), ("log_batch", "DevicePutWithSharding"), ("load_batch", "shard_args")],
)
def test_what_only_may_is_python(function: str, then: str) -> None:
    """No name says it, it is for people, or nothing is handed over before the program runs."""
    parts = mean_parts(looped(function, then))
    assert parts.get(Category.INPUT, 0) == 0
    assert parts[Category.PYTHON] >= 11_900_000
