"""A bounded share of the fuzzing, the same inputs every time; and every input that was ever a defect."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn

import pytest

from stepscope.readers import registry
from tests.fuzz.oracle import examine
from tests.fuzz.targets import TARGETS, Target, depth_of

REGRESSIONS = Path(__file__).parent / "regressions"
"""Files called ``<target>-<what it did>``."""

INPUTS = {
    "kineto": 130,
    "chrome": 300,
    "xla_json": 200,
    "timeline": 200,
    "xplane": 200,
    "step_stats": 300,
    "nsys": 250,
    "saved": 900,
    "summaries": 250,
    "gzip": 200,
    "zip": 300,
}
"""So many of each take some 40 s on one core."""
MANY = 5
"""So many times as many when there is time."""
_HANGS_S = 60


@pytest.fixture(autouse=True)
def _alarm() -> Iterator[None]:
    """What reads one small file for a minute is stuck; compiled loops are only interrupted once they end."""

    def stuck(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"still reading after {_HANGS_S} s")

    before = signal.signal(signal.SIGALRM, stuck)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", TARGETS)
def test_damage_never_does_harm(name: str, tmp_path: Path) -> None:
    outcomes = fuzz(TARGETS[name], range(INPUTS[name]), tmp_path)
    assert len(outcomes) > 1, "the mutations change nothing"


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_much_damage_never_does_harm(name: str, tmp_path: Path) -> None:
    outcomes = fuzz(TARGETS[name], range(INPUTS[name], MANY * INPUTS[name]), tmp_path)
    assert len(outcomes) > 1, "the mutations change nothing"


def fuzz(target: Target, numbers: range, folder: Path) -> Counter[str]:
    """Examine some inputs, the same ones for the same numbers; how many had which outcome."""
    outcomes: Counter[str] = Counter()
    for number in numbers:
        path = target.place(folder, target.mutated(Random(f"{target.name} {number}")))
        signal.alarm(_HANGS_S)
        try:
            outcomes[examine(path, target.variants_of(number), depth=depth_of(number))] += 1
        except Exception as error:
            place = folder / target.file_name
            raise AssertionError(
                f"{target.name} {number} ({place.stat().st_size} bytes, {place}): keep it as "
                f"{REGRESSIONS}/{target.name}-WHAT and repair what it shows"
            ) from error
    return outcomes


@pytest.mark.parametrize("path", sorted(REGRESSIONS.iterdir()), ids=lambda path: path.name)
def test_what_did_harm_once_does_none(path: Path, tmp_path: Path) -> None:
    target = TARGETS[path.name.split("-")[0]]
    signal.alarm(_HANGS_S)
    assert examine(target.place(tmp_path, path.read_bytes()), target.variants)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_sound_and_the_same_every_time(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    made = target.seeds()
    assert made == target.seeds()
    for data in made:
        path = target.place(tmp_path, data)
        assert not examine(path, target.variants).startswith("refused")
        if target.reader is not None:
            assert (
                next(reader.name for reader in registry.READERS if reader.recognise(data[: registry.HEAD_BYTES]))
                == target.reader
            )


def test_every_reader_is_fuzzed() -> None:
    assert {target.reader for target in TARGETS.values()} - {None} == {reader.name for reader in registry.READERS}
    assert INPUTS.keys() == TARGETS.keys()
