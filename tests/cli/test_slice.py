"""``stepscope slice``: which part is written, and how ranges are typed."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import stepscope
from stepscope import cli
from stepscope.cli import spans
from stepscope.errors import UsageError
from tests.cli.profiles import write_profile


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write_profile(tmp_path / "profile.json")


def part(profile: Path, *options: str) -> stepscope.Profile:
    out = profile.with_name("part.stepscope")
    assert cli.main(["slice", "--force", str(profile), str(out), *options]) == 0
    return stepscope.open(out)


def kernels(profile: stepscope.Profile) -> list[str]:
    return [name[-1] for name in profile.query("SELECT name FROM ops ORDER BY start_ns")["name"]]


def test_steps(profile):
    assert part(profile, "--steps", "4:6").steps["number"].to_list() == [4, 5]
    assert part(profile, "--steps", "4").steps["number"].to_list() == [4]
    assert part(profile, "--steps", "6:").steps["number"].to_list() == [6, 7]


def test_time(profile):
    assert kernels(part(profile, "--time", "100us:0.0002s")) == ["4"]
    assert kernels(part(profile, "--time", ":200us")) == ["3", "4"]


def test_several_options_narrow_down_together(profile):
    found = part(profile, "--steps", "4:6", "--min-dur", "50us")
    assert kernels(found) == ["4", "5"]
    names = set(found.query("SELECT name FROM host")["name"])
    assert names == {"ProfilerStep#4", "ProfilerStep#5", "cudaLaunchKernel"}
    notices = {notice.code: notice.text for notice in found.notices}
    assert notices["profile_sliced"] == (
        "Slices were cut out of this profile, which keeps only steps 4 to 5 and slices of 50.0 µs and longer."
    )
    assert found.exit_status == 0


def test_a_name_without_an_ending_is_a_saved_profile(profile):
    out = profile.with_name("part")
    assert cli.main(["slice", str(profile), str(out), "--steps", "4"]) == 0
    assert stepscope.open(out).steps.height == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say what to keep: --steps, --time or --min-dur"),
        (["--steps", "40:50"], "no such step: this profile has steps 3 to 7"),
        (["--steps", "four"], "--steps four: give numbers"),
        (["--time", "1s:2s"], "this profile holds nothing of the time from 1.00 s to 2.00 s: it lasts from 0 ns to"),
        (["--time", "5"], "--time 5: give a start and an end"),
        (["--min-dur", "10"], "--min-dur 10: a time is a number with a unit"),
    ],
)
def test_a_part_that_is_none_is_refused(profile, capsys, options, words):
    out = profile.with_name("part.stepscope")
    assert cli.main(["slice", str(profile), str(out), *options]) == 2
    captured = capsys.readouterr()
    assert (captured.out, out.exists()) == ("", False)
    assert words in captured.err.splitlines()[-1]


def test_a_damaged_profile_gives_status_3(tmp_path):
    cut = write_profile(tmp_path / "cut.json", cut=400)
    assert cli.main(["slice", str(cut), str(tmp_path / "part"), "--time", "0:100us"]) == 3


def test_ranges_are_read_as_their_examples_say():
    assert doctest.testmod(spans).failed == 0
    assert doctest.testmod(spans).attempted == 3


@pytest.mark.parametrize("text", ["", ":", "a", "1:2:3", "-1", "5:5", "7:5", "9" * 5000, "1.5", "١"])
def test_wrong_steps_are_refused(text):
    with pytest.raises(UsageError, match="--steps"):
        spans.steps(text)


@pytest.mark.parametrize("text", ["", ":", "1s", "1:2", "2s:1s", "1s:1s", "1s:2s:3s", "1e3s:", "1x:", "-1s:"])
def test_wrong_times_are_refused(text):
    with pytest.raises(UsageError, match="--time"):
        spans.time(text)


def test_times_are_exact_and_bounded():
    assert spans.duration("0.123456789s", "") == 123_456_789
    assert spans.duration("999999999999999s", "") == 1 << 62
    assert spans.duration("1.5µs", "") == spans.duration("1.5μs", "") == 1_500
