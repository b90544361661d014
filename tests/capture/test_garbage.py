"""Collections of Python's garbage are ranges of the profile, whichever framework it is of."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.categories import Category
from stepscope.capture.garbage import OLDEST, Collections
from tests.capture.jobs import SCRIPTS, run
from tests.captures.environments import framework_python

STEPS = 60


def test_only_the_oldest_generation_is_marked_and_only_while_recording() -> None:
    told: list[str] = []

    @contextmanager
    def marked() -> Iterator[None]:
        told.append("begins")
        yield
        told.append("ends")

    collections = Collections()
    collections.start(marked)
    try:
        gc.collect(0)
        assert told == []
        gc.collect(OLDEST)
        assert told == ["begins", "ends"]
    finally:
        collections.stop()
    gc.collect()
    assert told == ["begins", "ends"]


def test_what_cannot_be_marked_disturbs_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    def refused() -> None:
        raise RuntimeError("no range")

    collections, kept = Collections(), list(gc.callbacks)
    collections.start(None)
    assert gc.callbacks == kept
    collections.start(refused)
    try:
        gc.collect()
    finally:
        collections.stop()
    assert gc.callbacks == kept
    assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_a_profile_has_them_as_a_cause_of_its_own(framework: str, tmp_path: Path) -> None:
    ran = run(tmp_path, "--python", framework_python(framework), SCRIPTS / "collects.py", framework, STEPS)
    assert ran.status == 0, ran.stderr
    facts = stepscope.open(ran.profile()).facts
    (account, *_) = facts.working
    rows = facts.used_rows(account)
    assert account.parts[rows, Category.GC.code].sum() > 0.5 * account.duration_ns[rows].sum()
    names = stepscope.open(ran.profile()).trace.table("slices")["name"]
    assert (names == "gc").sum() >= len(facts.used), "one per step"
