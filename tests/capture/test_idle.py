"""What a step costs while nothing is recorded: one call that counts it, and no step is lost or gained by that."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.recorder import Recorder
from stepscope.capture.steps import EXPLICIT, OPTIMIZER
from tests.capture.pretended import Job


def calls_of(action: Callable[[], None]) -> list[str]:
    """Names of the Python functions that are called in it."""
    calls: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    gc.disable()  # Others' callbacks of the collector are no part of it.
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls[1:]


@pytest.mark.parametrize(("chosen", "before"), [({"skip": 500}, 100), ({"watch": 60.0}, 200)])
def test_a_step_is_one_call(job: Callable[..., Job], chosen: dict[str, Any], before: int) -> None:
    ran = job(**chosen)
    ran.steps(before)
    steps = [calls_of(lambda: ran.recorder.call(OPTIMIZER, ("pretended", "sgd"))) for _ in range(130)]
    own = ["call", "<lambda>"]  # The clock.
    assert sorted(map(len, steps))[-3] == 2
    assert own in steps


def plain(ran: Job) -> None:
    ran.steps(300)


def ends_early(ran: Job) -> None:
    ran.steps(77)


def better_source(ran: Job) -> None:
    """The job says its steps from the 40th on, of two optimizer steps each."""
    ran.steps(40)
    for number in range(150):
        ran.steps(2)
        ran.recorder.step(number)


def second_optimizer(ran: Job) -> None:
    ran.steps(20)
    for _ in range(150):
        ran.recorder.call(OPTIMIZER, ("pretended", "second"))
        ran.steps(1)


def other_calls(ran: Job) -> None:
    for number in range(500):
        ran.steps(1, lambda number: 20 + number % 7)
        ran.recorder.call(OPTIMIZER, ("pretended", "other")) if number > 20 else None
        ran.recorder.call(EXPLICIT, (None, "late")) if number > 20 else None


@pytest.mark.parametrize("scenario", [plain, ends_early, better_source, second_optimizer, other_calls])
@pytest.mark.parametrize("chosen", [{"skip": 100}, {"skip": 10, "watch": 2.0, "active": 2}])
def test_it_comes_out_as_if_every_step_were_looked_at(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, scenario: Callable[[Job], None], chosen: dict[str, Any]
) -> None:
    def found() -> tuple[list[Any], dict[str, Any]]:
        ran = job(**chosen)
        scenario(ran)
        manifest = ran.end()
        for path in Path(ran.options.out).iterdir():
            path.unlink()
        times = {key: value for key, value in manifest.items() if key not in ("started_ns", "periods")}
        periods = [{**each, "start_ns": 0} for each in manifest.get("periods", ())]
        return ran.calls, {**times, "periods": periods}

    counted = found()
    monkeypatch.setattr(Recorder, "_may_pass", lambda _: 0)
    assert counted == found()
    assert counted[1]["steps_seen"] > 70
