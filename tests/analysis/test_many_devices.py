"""What is asked for every device is not gone through all devices for: counted, as devices are walked through."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stepscope import pipeline
from tests.kit.kineto_writer import write_kineto
from tests.kit.shapes import SHAPES
from tests.kit.some import some

SMALL = 32
"""Launches, each on a device of its own, or four on each."""


class Walked:
    """Of a sequence: where it is gone through, and how often."""

    walks: ClassVar[Counter[str]] = Counter()

    def __iter__(self) -> Iterator[Any]:
        return self._walked(super().__iter__())  # type: ignore[misc]

    def __contains__(self, one: object) -> bool:
        return self._walked(super().__contains__(one))  # type: ignore[misc]

    def index(self, *one: Any) -> int:
        return self._walked(super().index(*one))  # type: ignore[misc]

    def _walked(self, found: Any) -> Any:
        frame = sys._getframe(2)
        self.walks[f"{frame.f_code.co_filename}:{frame.f_lineno}"] += 1
        return found


class Row(Walked, tuple[Any, ...]):
    pass


class List(Walked, list[Any]):
    pass


def walks(shape: str, size: int, folder: Path) -> tuple[int, Counter[str]]:
    """How many devices a profile has, and where they are gone through for a report, a comparison and the pages."""
    path = folder / "many.json"
    path.write_bytes(write_kineto(SHAPES[shape](size)))
    read = pipeline.open_profile(path)
    profile = pipeline.Profile(
        read.source, replace(read.trace, info=replace(read.trace.info, devices=Row(read.trace.info.devices)))
    )
    Walked.walks.clear()
    facts = replace(profile.facts, activities=List(profile.facts.activities), accounts=List(profile.facts.accounts))
    facts.__dict__["devices"] = List(zip(facts.activities, facts.accounts, strict=True))
    facts.__dict__["working"] = List(facts.working)
    profile.__dict__["facts"] = facts
    profile.document()
    profile.compare(profile)
    profile.run()
    return len(facts.accounts), Walked.walks.copy()


@pytest.mark.parametrize("shape", some(["devices_that_wait", "many_devices", "devices_in_every_step"], 1))
def test_devices_are_not_gone_through_for_each_device(shape: str, tmp_path: Path) -> None:
    (_, few), (devices, many) = (walks(shape, size, tmp_path) for size in (SMALL, 4 * SMALL))
    assert sum(few.values()) > 100
    more = {where: (few[where], count) for where, count in many.items() if count >= max(devices, 2 * few[where])}
    assert not more
