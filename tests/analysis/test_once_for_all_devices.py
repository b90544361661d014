"""What is the same for all devices is worked out once, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope import pipeline
from stepscope.analysis import phases, staging, xla
from stepscope.diagnosis import eager
from stepscope.diagnosis.rules import long_launch
from tests.kit.kineto_writer import write_kineto
from tests.kit.shapes import SHAPES

FEW = 4


@pytest.mark.parametrize(
    ("module", "name"),
    [(phases, "_phase_of_name"), (staging, "is_blocking_copy"), (eager, "is_compiled"), (long_launch, "runs_others"),
     (xla, "outermost")],
)  # fmt: skip
def test_names_are_looked_at_once(module: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "many.json"
    path.write_bytes(write_kineto(SHAPES["devices_that_wait"](300)))
    asked: Counter[str] = Counter()
    real: Callable[..., Any] = getattr(module, name)

    def counted(*given: Any) -> Any:
        asked[str(given[0])] += 1
        return real(*given)

    monkeypatch.setattr(module, name, counted)
    profile = pipeline.open_profile(path)
    profile.document()
    profile.run()
    assert len(profile.facts.activities) > 2 * FEW
    assert max(asked.values(), default=0) <= FEW
