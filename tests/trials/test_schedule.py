"""The order of trials, and when they end: runs are made up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stepscope.capture.results import Recording
from stepscope.trials.arguments import batch_sizes
from stepscope.trials.arms import Arm
from stepscope.trials.process import TrialRun
from stepscope.trials.schedule import TrialSchedule, best_of_groups, improved


def ran(step_ns: int | None, cures: Mapping[str, dict[str, Any]] | None = None, **more: Any) -> TrialRun:
    """A run that took so long per step."""
    facts = {
        "steps_seen": 9,
        "trial": {"times_ns": [] if step_ns is None else [step_ns] * 5},
        "cures": dict(cures or {}),
    }
    found = (Recording(Path("x"), facts, ()),) if step_ns is not None or cures else ()
    told = {"status": None, "wall_s": 0.0, "last_words": "", "late": False} | more
    return TrialRun(found, **told)


def applied(arm: Arm, step_ns: int) -> TrialRun:
    return ran(step_ns, {spec: {"applied": 1, "places": []} for spec in arm.specs})


def schedule(steps: Mapping[str, Callable[[int], int]]) -> tuple[TrialSchedule, list[str]]:
    """Steps by the arm's name and how many runs there were before."""
    order: list[str] = []

    def start(arm: Arm) -> TrialRun:
        order.append(arm.name)
        return applied(arm, steps[arm.name](len(order)))

    return TrialSchedule(Arm(()), start, time.monotonic() + 60), order


def test_values_of_several_batches_stand_at_the_last_of_them() -> None:
    facts = {"steps_seen": 3, "trial": {"values": [1.0, 2.0], "batches": [1, 2, 2], "times_ns": [10, 10]}}
    one = TrialRun((Recording(Path("x"), facts, ()),), None, 0.0, "", late=False)
    assert one.values == [1.0, None, 2.0]
    assert (one.steps, one.step_ns) == (4, 5)
    facts["trial"]["values"] = [0.5, 1.0, 2.0]
    facts["trial"]["batches"] = [1, 2]  # Told from the second step on.
    assert one.values == [0.5, 1.0, None, 2.0]
    facts["trial"]["values"] = [1.0, 2.0]
    del facts["trial"]["batches"]  # type: ignore[attr-defined]
    assert (one.values, one.steps) == ([1.0, 2.0], 2)


def test_arms_run_there_and_back_until_told() -> None:
    made, order = schedule(
        {"as-it-is": lambda n: 1000 + n % 3, "compile": lambda n: 500 + n % 3, "bf16": lambda n: 400 + n % 2}
    )
    arms = [Arm(("compile",)), Arm(("bf16",))]
    made.compare(arms)
    assert order == ["as-it-is", "compile", "bf16", "bf16", "compile", "as-it-is"]
    assert [arm.against(made.baseline).verdict for arm in arms] == ["helps", "helps"]  # type: ignore[union-attr]
    assert made.ended is None


def test_a_drift_is_nobodys_saving() -> None:
    # Each run is slower by 50 than the one before, whatever it is.
    made, _ = schedule({"as-it-is": lambda n: 1000 + 50 * n, "compile": lambda n: 1000 + 50 * n})
    arm = Arm(("compile",))
    made.compare([arm])
    found = arm.against(made.baseline)
    assert found is not None
    assert abs(found.saving_ns) < 1e-6
    assert found.verdict in ("unknown", "nothing")


def test_of_a_cure_with_numbers_the_slow_ones_are_left_behind() -> None:
    times = {
        "as-it-is": lambda n: 1000 + n % 2,
        "workers=1": lambda n: 600 + n % 5 * 40,
        "workers=2": lambda n: 1500 + n % 3,
    }
    made, order = schedule(times)
    arms = [Arm(("workers=1",)), Arm(("workers=2",))]
    made.compare(arms)
    assert arms[1].out is None or arms[1].out == "workers=1 is faster"
    assert order.count("workers=2") == 2
    assert [arm.name for arm in best_of_groups(arms, made.baseline)] == ["workers=1"]


def test_a_cure_that_does_nothing_here_is_run_once_and_says_why() -> None:
    def start(arm: Arm) -> TrialRun:
        return ran(1000, {"compile": {"applied": 0, "refused": "the model is compiled already"}})

    made = TrialSchedule(Arm(()), start, time.monotonic() + 60)
    arm = Arm(("compile",))
    made.compare([arm])
    assert arm.out == "the model is compiled already"
    assert len(arm.runs) == 1
    assert not arm.failed


def test_a_job_that_ends_with_a_cure_is_told_with_its_last_words() -> None:
    def start(arm: Arm) -> TrialRun:
        if arm.specs:
            return ran(None, {"compile": {"applied": 1}}, status=1, last_words="ValueError: no")
        return ran(1000)

    made = TrialSchedule(Arm(()), start, time.monotonic() + 60)
    arm = Arm(("compile",))
    made.compare([arm])
    assert arm.failed
    assert arm.out == "the job ended with status 1 before its steps were timed: ValueError: no"


def test_nothing_is_begun_that_would_end_too_late() -> None:
    order: list[str] = []

    def start(arm: Arm) -> TrialRun:
        order.append(arm.name)
        return ran(1000, {spec: {"applied": 1} for spec in arm.specs}, wall_s=1e6)

    made = TrialSchedule(Arm(()), start, time.monotonic() + 60)
    made.compare([Arm(("compile",))])
    assert order == ["as-it-is"]
    assert made.ended == "the time was up"


def test_a_baseline_that_fails_ends_all() -> None:
    made = TrialSchedule(Arm(()), lambda _: ran(None, status=3), time.monotonic() + 60)
    made.compare([Arm(("compile",))])
    assert made.ended == "the job ended with status 3 before its steps were timed"


def test_many_arms_are_divided_so_that_the_first_are_told_where_time_is_short() -> None:
    order: list[str] = []
    walls = iter([0.0] * 10 + [1e6] * 10)

    def start(arm: Arm) -> TrialRun:
        order.append(arm.name)
        made = {spec: {"applied": 1} for spec in arm.specs}
        return ran(500 + len(order) % 3 if arm.specs else 1000 + len(order) % 2, made, wall_s=next(walls))

    made = TrialSchedule(Arm(()), start, time.monotonic() + 60)
    arms = [Arm((f"workers={number}",)) for number in range(6)]
    made.compare(arms)
    assert order == [
        "as-it-is",
        *(arm.name for arm in arms[:4]),
        *(arm.name for arm in arms[3::-1]),
        "as-it-is",
        "as-it-is",
    ]
    assert all(len(arm.runs) == 2 for arm in arms[:4])
    assert made.ended == "the time was up"


def test_times_of_another_batch_size_are_for_as_many_samples_and_none_is_tried_above_one_that_fails() -> None:
    sizes = batch_sizes(["python", "train.py", "-b", "8"], "-b")
    half, double, fourfold, eightfold = arms = [Arm((), argument=size) for size in sizes]
    steps = {"as-it-is": 1000, "-b=4": 900, "-b=16": 1200}
    made = TrialSchedule(Arm(()), lambda arm: ran(steps.get(arm.name), status=1), time.monotonic() + 60)
    made.compare(arms)
    told = {arm.name: arm.against(made.baseline) for arm in (half, double)}
    assert {name: one and (one.after_ns, one.verdict) for name, one in told.items()} == {
        "-b=4": (1800, "hurts"),
        "-b=16": (600, "helps"),
    }
    assert fourfold.failed
    assert (eightfold.out, eightfold.runs) == ("-b=32 fails already", [])


def test_what_is_set_beside_a_cure_is_told_from_that_cure_and_stays_out_where_it_adds_nothing() -> None:
    base, more, same = Arm(("workers=2",)), Arm(("workers=2", "prefetch=4")), Arm(("workers=2", "prefetch=8"))
    alone = Arm(("prefetch=4",))
    made, order = schedule(
        {
            "as-it-is": lambda n: 1000 + n % 3,
            base.name: lambda n: 500 + n % 3,
            more.name: lambda n: 300 + n % 3,
            same.name: lambda n: 500 + n % 2,
        }
    )
    made.compare([base])
    begun = len(order)
    made.compare([more, same], base)
    there = ["as-it-is", base.name, more.name, same.name]
    assert order[begun : begun + 8] == [*there, *reversed(there)]
    assert improved([base, alone], base, [more, same]) == [more]  # The other sets the same twice.
    assert improved([base, alone], base, [same]) == [base, alone]
