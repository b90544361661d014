"""What is the same for all devices is worked out once, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stepscope import pipeline
from stepscope.analysis import phases, staging, xla
from stepscope.diagnosis import eager
from stepscope.diagnosis.rules import long_launch
from tests.kit.kineto_writer import write_kineto
from tests.kit.shapes import SHAPES

FEW = 4


OF_NAMES: list[tuple[ModuleType, str]] = [
    (phases, "_phase_of_name"), (staging, "is_blocking_copy"), (eager, "is_compiled"), (long_launch, "runs_others"),
    (xla, "outermost"),
]  # fmt: skip


def test_names_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "many.json"
    path.write_bytes(write_kineto(SHAPES["devices_that_wait"](300)))
    asked: Counter[tuple[str, str]] = Counter()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            asked[name, str(given[0])] += 1
            return real(*given)

        return counting

    for module, name in OF_NAMES:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    profile = pipeline.open_profile(path)
    profile.document()
    profile.run()
    assert len(profile.facts.activities) > 2 * FEW
    assert {asks: times for asks, times in asked.items() if times > FEW} == {}
