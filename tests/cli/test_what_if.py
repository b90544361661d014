"""``stepscope what-if``: predictions on the command line and from Python."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import stepscope
from stepscope import cli
from stepscope.errors import UsageError
from tests.kit.kineto_writer import write_kineto
from tests.kit.planted import CASES
from tests.kit.planted_case import step_ns
from tests.kit.some import some
from tests.support import planted_file


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Three reads in a row before host work: only all three pay."""
    path = tmp_path / "chain.json"
    path.write_bytes(planted_file("sync_chain"))
    return path


def test_everything_is_tried_by_itself(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["what-if", str(chain)]) == 0
    first, _, *rows = capsys.readouterr().out.splitlines()
    assert first.startswith("A step takes 3.48 ms on average. Simulated as it is, it comes out ")
    assert rows[0] == "  2.81 ms  saves 672 µs     without sync_bound.1"


def test_json_holds_the_figures_of_what_was_asked_for(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["what-if", str(chain), "--remove", "sync_bound.1", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == "stepscope.what-if/1"
    assert made["replay_error"] < 0.001
    (row,) = made["predictions"]
    assert row["removed"] == ["sync_bound.1"]
    assert row["predicted_step_ns"] == made["step_ns"] - row["saving_ns"]
    planted = CASES["sync_chain"]()
    assert row["predicted_step_ns"] == pytest.approx(planted.without_ns["all"], rel=0.01)


def test_several_at_once_and_categories(chain: Path):
    profile = stepscope.open(chain)
    both = profile.what_if("sync_bound.1", "input")
    assert both.removed == ("sync_bound.1", "input")
    assert both.predicted_step_ns <= profile.what_if("sync").predicted_step_ns


def test_what_the_profile_has_not_is_named_with_what_it_has(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["what-if", str(chain), "--remove", "gc"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("stepscope: gc: cannot be taken out of this profile, which has sync_bound.1,")


def test_where_nothing_can_be_replayed_it_says_why(tmp_path: Path):
    path = tmp_path / "cpu.json"
    path.write_bytes(planted_file("cpu_only"))
    with pytest.raises(UsageError, match="nothing can be predicted from this profile: no device was recorded"):
        stepscope.open(path).what_if("input_bound.1")
    with pytest.raises(UsageError, match="nope: there is no such finding; this profile has between"):
        stepscope.open(path).what_if("nope")


def test_every_so_many_steps_gains_all_but_that_share(chain: Path, capsys: pytest.CaptureFixture[str]):
    profile = stepscope.open(chain)
    saved = profile.what_if("sync_bound.1").saving_ns
    assert profile.what_if("sync_bound.1", every=10).saving_ns == pytest.approx(0.9 * saved, abs=1)
    assert cli.main(["what-if", str(chain), "--remove", "sync_bound.1", "--every", "10"]) == 0
    assert "with only every 10 steps sync_bound.1" in capsys.readouterr().out


@pytest.mark.parametrize(("factor", "kernel_us"), some([(20, 60), (2, 6)], 1, several=True))
def test_a_larger_batch_takes_what_the_loop_with_longer_kernels_takes(tmp_path: Path, factor: int, kernel_us: int):
    """Launch-bound with kernels of 3 us: twice the work is free, twenty times is not."""
    path = tmp_path / "launch.json"
    planted = CASES["launch_bound"]()
    path.write_bytes(write_kineto(planted.events))
    larger = stepscope.open(path).larger_batch(factor)
    assert larger.predicted_step_ns == pytest.approx(step_ns(replace(planted.plan, kernel_us=kernel_us)), rel=0.02)
    assert larger.per_present_batch_ns == round(larger.predicted_step_ns / factor)
    assert larger.has_room is None


def test_a_larger_batch_on_the_command_line(chain: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["what-if", str(chain), "--batch", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("With a batch 2 times as large a step takes about ")
    assert "Whether it fits the memory is not recorded." in told
    assert cli.main(["what-if", str(chain), "--batch", "2", "--remove", "sync_bound.1"]) == 2
    assert cli.main(["what-if", str(chain), "--batch", "0.5"]) == 2
