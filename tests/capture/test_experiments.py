"""Experiments: the script runs with one thing changed, and the change is compared with the run before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.experiment import Replay, parsed
from stepscope.capture.manifest import SCHEMA
from stepscope.capture.results import Recording
from stepscope.cli.experiments import outcome
from tests.capture.jobs import SCRIPTS, Ran, run
from tests.captures.environments import framework_python

MS = 1_000_000


def recording(step_ms: int, experiment: str | None = None, started: int = 1, **told: Any) -> Recording:
    facts = {
        "schema": SCHEMA,
        "command": ["train.py"],
        "started_ns": started,
        "options": {"experiment": experiment},
        "step_ns": {"unrecorded": step_ms * MS},
        **({"experiment": {"name": experiment, "applied": 1, "refused": None, **told}} if experiment else {}),
    }
    return Recording(Path("manifest"), facts, ())


def test_a_replay_gives_the_first_batches_again_as_many_as_there_were() -> None:
    over = False
    replay = Replay(iter(range(10)), 10, lambda: over)
    first = [next(replay) for _ in range(7)]
    over = True
    # The real input goes on where the replay began, until the epoch has its length.
    assert (first, list(replay)) == ([0, 1, 2, 3, 0, 1, 2], [4, 5, 6])


def test_a_batch_that_the_job_took_apart_is_whole_again() -> None:
    replay = Replay(iter([{"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}]), None, lambda: False)
    assert [next(replay).pop("x") for _ in range(6)] == [1, 2, 3, 4, 1, 2]


@pytest.mark.parametrize("text", ["faster", "workers", "workers=x", "workers=-1", "synthetic-input=1", ""])
def test_what_is_no_experiment_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no experiment"):
        parsed(text)


def test_the_last_run_without_an_experiment_is_what_is_compared() -> None:
    changed = recording(6, "workers=4", 9)
    others = [recording(10, started=1), recording(12, started=2), recording(3, "no-callbacks", 3)]
    assert outcome(changed, [*others, changed]) == [
        "experiment workers=4: a step took 6.00 ms instead of 12.0 ms, 6.00 ms less"
    ]


def test_little_is_no_difference() -> None:
    assert outcome(recording(100, "no-callbacks"), [recording(102)]) == [
        "experiment no-callbacks: a step took 100 ms, as before (102 ms)"
    ]


def test_without_another_run_there_is_nothing_to_compare() -> None:
    (said,) = outcome(recording(5, "no-callbacks"), [])
    assert said.endswith("run once without --experiment")


def test_an_experiment_that_changed_nothing_says_what_it_needs() -> None:
    (said,) = outcome(recording(5, "synthetic-input", applied=0), [recording(9)])
    assert "nothing was changed: no PyTorch DataLoader" in said
    assert "JAX has no input pipeline of its own" in said


def torch_input(out: Path, *options: str) -> Ran:
    python = framework_python("torch")
    return run(out, "--python", python, "--no-stacks", *options, SCRIPTS / "torch_input.py", 60)


@pytest.mark.slow
def test_synthetic_input_says_how_much_of_the_input_is_real(tmp_path: Path) -> None:
    plain, changed = torch_input(tmp_path), torch_input(tmp_path, "--experiment", "synthetic-input")
    assert (changed.status, changed.stdout) == (0, plain.stdout)
    said = changed.stderr[changed.stderr.index("stepscope: experiment") :].splitlines()
    assert said[0].endswith(" less")
    assert said[1].startswith("  Of ")
    assert said[1].endswith(" is real.")
    assert said[2] == "  Where batches are copied to a device, those copies remain in both runs."
    manifests = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("run-*/*.stepscope.json"))]
    with_sleeps, without = sorted((each["step_ns"]["unrecorded"] for each in manifests), reverse=True)
    # Four samples of 3 ms each are slept for.
    assert with_sleeps - without > 10 * MS


@pytest.mark.slow
def test_pinned_memory_needs_a_gpu(tmp_path: Path) -> None:
    ran = torch_input(tmp_path, "--experiment", "pinned-memory")
    assert "experiment pinned-memory: not made: pinned memory speeds copies to a GPU" in ran.stderr
