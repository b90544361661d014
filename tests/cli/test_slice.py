"""``stepscope slice``: which part is written, and how ranges are typed."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

import stepscope
from stepscope import cli
from stepscope.cli import spans
from stepscope.errors import UsageError
from tests.cli.profiles import write_profile
from tests.kit.builder import TraceDrawing
from tests.kit.kineto_writer import write_kineto


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


@pytest.fixture
def without_markers(tmp_path: Path) -> Path:
    """Eight steps of two kernels that nothing marks, from 1 ms on; the launches repeat."""
    drawing = TraceDrawing()
    drawing.python("train.py(1): main", 0, 100)
    for step in range(8):
        at = 1_000 + 100 * step
        for place, name in enumerate(("gemm", "relu")):
            drawing.kernel(drawing.launch(at + 20 * place, 5), name, at + 10 + 40 * place + step, 30)
    path = tmp_path / "unmarked.json"
    path.write_bytes(write_kineto(drawing.events()))
    return path


def told(profile: stepscope.Profile) -> list[tuple[object, ...]]:
    """Number, time on the device, and whether the step was inferred."""
    return [(step["number"], step["dur_ns"], step["inferred"]) for step in profile.document()["steps"]]


@pytest.mark.parametrize("ending", ["stepscope", "json", "xplane.pb"])
def test_inferred_steps_stay_what_they_were(without_markers: Path, ending: str):
    whole = stepscope.open(without_markers)
    assert [(inferred, number) for number, _, inferred in told(whole)] == [(True, None)] * 8
    times = [dur for _, dur, _ in told(whole)]
    out = without_markers.with_name(f"part.{ending}")
    assert cli.main(["slice", str(without_markers), str(out), "--steps", "3:6"]) == 0
    found = stepscope.open(out)
    assert [number for number, _, _ in told(found)] == [3, 4, 5]
    assert told(found)[1:] == [(4, times[4], True), (5, times[5], True)]
    assert "steps are inferred from repetition of the launches" in " ".join(n.text for n in found.notices)
    again = found.slice(steps=(4, 6))
    assert [number for number, _, _ in told(again)] == [4, 5]
    assert told(again)[1:] == [(5, times[5], True)]


@pytest.mark.parametrize(
    "claim",
    [
        {"source": "x", "start_ns": [0, 5], "end_ns": [5], "number": [1, 2]},
        {"source": "x", "start_ns": [5, 0], "end_ns": [6, 1], "number": [1, 2]},
        {"source": "x", "start_ns": [0], "end_ns": [1 << 63], "number": [1]},
    ],
)
def test_steps_that_can_be_none_are_left_aside(without_markers: Path, claim: dict[str, object]):
    out = without_markers.with_name("part.json")
    assert cli.main(["slice", str(without_markers), str(out), "--steps", "3:6"]) == 0
    document = json.loads(out.read_text())
    document["stepscope"]["steps"] = claim
    out.write_text(json.dumps(document))
    found = stepscope.open(out)
    assert found.trace.info.steps is None
    assert found.steps.height >= 1


def test_inferred_steps_that_a_time_cuts_are_kept(without_markers: Path):
    out = without_markers.with_name("part.stepscope")
    assert cli.main(["slice", str(without_markers), str(out), "--time", "1250us:1450us"]) == 0
    assert [number for number, _, _ in told(stepscope.open(out))] == [2, 3, 4]
    assert cli.main(["slice", "--force", str(without_markers), str(out), "--min-dur", "10us"]) == 0
    assert [number for number, _, _ in told(stepscope.open(out))] == list(range(8))


def test_a_whole_profile_converted_says_nothing_of_its_inferred_steps(without_markers: Path):
    out = without_markers.with_name("whole.stepscope")
    assert cli.main(["convert", str(without_markers), str(out)]) == 0
    assert stepscope.open(out).trace.info.steps is None


def test_a_part_without_any_repetition_is_one_step_of_no_number(without_markers: Path):
    out = without_markers.with_name("part.stepscope")
    assert cli.main(["slice", str(without_markers), str(out), "--time", "0us:100us"]) == 0
    assert stepscope.open(out).trace.info.steps is None


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
        (["--min-dur", "10"], "--min-dur 10: a time is a number with a unit (ns, us, ms, s), as 10s or 10ms"),
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
