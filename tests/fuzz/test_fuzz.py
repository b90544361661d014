"""A bounded share of the fuzzing, the same inputs every time; and every input that was ever a defect."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn

import pytest

from stepscope.formats import readers
from tests.fuzz import guided
from tests.fuzz.targets import TARGETS, Target

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
    "manifest": 100,
    "placement": 100,
    "program": 160,
    "grpc": 1000,
    "datagram": 2000,
    "answer": 1000,
    "name": 500,
    "sql": 1200,
    "server": 1500,
    "writer": 20,
}
"""So many of each take some 60 s on one core."""
SOME = 24
LEAST = 10
"""One in so many of them each time, but so many where there are few; the rest when there is time,"""
MANY = 5
"""and so many times as many."""
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
    outcomes = fuzz(TARGETS[name], range(at_once(name)), tmp_path)
    assert len(outcomes) > 1, "the mutations change nothing"


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_much_damage_never_does_harm(name: str, tmp_path: Path) -> None:
    outcomes = fuzz(TARGETS[name], range(at_once(name), MANY * INPUTS[name]), tmp_path)
    assert len(outcomes) > 1, "the mutations change nothing"


def at_once(name: str) -> int:
    return max(INPUTS[name] // SOME, min(INPUTS[name], LEAST))


def fuzz(target: Target, numbers: range, folder: Path) -> Counter[str]:
    """Examine some inputs, the same ones for the same numbers; how many had which outcome."""
    outcomes: Counter[str] = Counter()
    for number in numbers:
        data = target.mutated(Random(f"{target.name} {number}"))
        signal.alarm(_HANGS_S)
        try:
            outcomes[target.examined(folder, data, number)] += 1
        except Exception as error:
            place = folder / "defect"
            place.write_bytes(data)
            raise AssertionError(
                f"{target.name} {number} ({len(data)} bytes, {place}): keep it as "
                f"{REGRESSIONS}/{target.name}-WHAT and repair what it shows"
            ) from error
    return outcomes


@pytest.mark.parametrize("path", sorted(REGRESSIONS.iterdir()), ids=lambda path: path.name)
def test_what_did_harm_once_does_none(path: Path, tmp_path: Path) -> None:
    target = TARGETS[path.name.split("-")[0]]
    signal.alarm(_HANGS_S)
    assert target.examined(tmp_path, path.read_bytes(), 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_sound_and_the_same_every_time(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    made = target.seeds()
    assert made == target.seeds()
    for data in made:
        assert not target.examined(tmp_path, data, 0).startswith("refused")
        if target.reader is not None:
            assert (
                next(reader.name for reader in readers.READERS if reader.recognise(data[: readers.HEAD_BYTES]))
                == target.reader
            )


def test_every_reader_is_fuzzed() -> None:
    assert {target.reader for target in TARGETS.values()} - {None} == {reader.name for reader in readers.READERS}
    assert INPUTS.keys() == TARGETS.keys()


def test_without_atheris_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["guided", "--target", "sql"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        guided.main()
    assert ended.value.code == guided.MISSING
