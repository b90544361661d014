"""RunMetadata files of one TensorFlow 1 job: one profile with a step per run."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope.cli import main
from stepscope.formats.find import find
from stepscope.inputs.joined import Joined
from stepscope.pipeline import Profile
from tests.kit.step_stats import CPU, device, node, run_metadata
from tests.kit.step_stats import step_stats as stats

US = 1_000


def run_of(start: int, dur: int, *names: str, cpu: str = CPU) -> bytes:
    """One traced run: nodes one after the other, together so long."""
    each = dur // len(names)
    nodes = [node(name, start + at * each, each, f"{name} = MatMul(x, w)") for at, name in enumerate(names)]
    return run_metadata(stats(device(cpu, *nodes)))


def written(folder: Path, **files: bytes) -> Path:
    for name, content in files.items():
        (folder / f"{name}.pb").write_bytes(content)
    return folder


def steps_of(profile: Profile) -> list[tuple[int, int, int]]:
    """Number, start and duration of the runs that are steps, in µs."""
    markers = profile.facts.markers
    return [
        (number or 0, start // US, (end - start) // US)
        for number, start, end in zip(markers.numbers, markers.start.tolist(), markers.end.tolist(), strict=True)
    ]


def test_each_run_is_a_step(tmp_path: Path):
    """In the order of their numbers, of which the tenth is later than the second."""
    written(tmp_path, step_2=run_of(0, 100, "a", "b"), step_10=run_of(150, 120, "a", "b"))
    (source,) = find(str(tmp_path)).sources
    assert isinstance(source, Joined)
    assert source.path.name == "step_*.pb"
    profile = stepscope.open(tmp_path)
    assert isinstance(profile, Profile)
    assert steps_of(profile) == [(0, 0, 100), (1, 150, 120)]
    assert profile.document()["summary"]["step_source"] == "tf.Session.run"
    assert {step["inferred"] for step in profile.document()["steps"]} == {False}
    nodes = profile.trace.table("nodes")
    assert nodes.height == 4
    assert nodes["placement"].unique().cast(str).to_list() == [CPU]
    assert profile.trace.completeness.complete
    assert not [notice for notice in profile.notices if notice.code == "profile_no_steps"]


def test_what_lies_between_two_runs_is_no_step(tmp_path: Path):
    """Every hundredth run was traced: the time of the others is nobody's."""
    written(tmp_path, **{f"run{number}": run_of(number * 50_000, 100, "a", "b") for number in range(6)})
    profile = stepscope.open(tmp_path)
    assert isinstance(profile, Profile)
    assert profile.steps["dur_ns"].to_list() == [100 * US] * 6
    rows = profile.accounting
    assert rows.filter(phase="gap")["dur_ns"].to_list() == [49_900 * US] * 5
    assert rows["dur_ns"].sum() == (5 * 50_000 + 100) * US


def test_runs_close_behind_each_other_leave_no_gap(tmp_path: Path):
    """The session's caller takes 20 µs of each 120: they are the step's."""
    written(tmp_path, **{f"run{number}": run_of(number * 120, 100, "a", "b") for number in range(6)})
    profile = stepscope.open(tmp_path)
    assert isinstance(profile, Profile)
    assert profile.steps["dur_ns"].to_list()[:5] == [120 * US] * 5
    assert "gap" not in profile.accounting["phase"].to_list()


def test_runs_that_only_fill_a_queue_are_no_steps(tmp_path: Path):
    files = {f"run{2 * number}": run_of(number * 300, 200, "a", "b") for number in range(4)}
    files |= {f"run{2 * number + 1}": run_of(number * 300 + 210, 50, "put") for number in range(4)}
    profile = stepscope.open(written(tmp_path, **files))
    assert isinstance(profile, Profile)
    assert [(start, dur) for _, start, dur in steps_of(profile)] == [(at * 300, 200) for at in range(4)]
    assert profile.trace.table("nodes").height == 12


def test_a_run_that_also_writes_a_summary_is_a_step(tmp_path: Path):
    files = {f"run{number}": run_of(number * 300, 210, "a", "b", *["summary"] * (number == 2)) for number in range(4)}
    profile = stepscope.open(written(tmp_path, **files))
    assert isinstance(profile, Profile)
    assert len(steps_of(profile)) == 4


def test_what_the_file_says_of_a_node_is_found_in_the_right_file(tmp_path: Path):
    written(tmp_path, step_1=run_of(0, 100, "first"), step_2=run_of(150, 100, "second"))
    profile = stepscope.open(tmp_path)
    assert isinstance(profile, Profile)
    names = profile.trace.table("slices")["kind"].cast(str).to_list()
    told = profile.arguments([at for at, kind in enumerate(names) if kind == "host_op"])
    assert sorted(each["node_name"] for each in told) == ["first", "second"]


@pytest.mark.parametrize(
    "names",
    [
        ("worker1", "worker2"),  # ranks
        ("step7_task_0", "step7_task_1"),
        ("vm.411.17", "vm.412.17"),  # processes
        ("before", "after"),
    ],
)
def test_files_that_are_no_steps_of_one_job_stay_apart(tmp_path: Path, names: tuple[str, ...]):
    written(tmp_path, **{name: run_of(0, 100, "a", "b") for name in names})
    assert not any(isinstance(source, Joined) for source in find(str(tmp_path)).sources)


def test_the_steps_of_each_worker_are_its_own(tmp_path: Path):
    written(tmp_path, **{f"step{step}_worker{rank}": run_of(step * 200, 100, "a", "b")
                         for step in range(3) for rank in range(2)})  # fmt: skip
    found = find(str(tmp_path)).sources
    assert [source.path.name for source in found] == ["step*_worker0.pb", "step*_worker1.pb"]


def test_a_file_that_is_cut_off_costs_its_own_end_alone(tmp_path: Path):
    whole = run_of(150, 100, "a", "b")
    written(tmp_path, step_1=run_of(0, 100, "a", "b"), step_2=whole[:-20], step_3=run_of(300, 100, "a", "b"))
    profile = stepscope.open(tmp_path)
    assert isinstance(profile, Profile)
    assert profile.trace.table("nodes").height == 5
    assert not profile.trace.completeness.complete


@pytest.mark.parametrize(("days", "left"), [(2, 2), (0.6, 2), (0.4, 3)])
def test_runs_half_a_day_apart_are_left_out_and_said(days: float, left: int, tmp_path: Path):
    later_us = round(days * 86_400_000_000)
    written(tmp_path, step_1=run_of(0, 100, "a", "b"), step_2=run_of(later_us, 100, "a", "b"),
            step_3=run_of(later_us + 200, 100, "a", "b"))  # fmt: skip
    profile = stepscope.open(tmp_path)
    assert isinstance(profile, Profile)
    assert len(steps_of(profile)) == left
    told = [loss.text for loss in profile.trace.completeness.losses if loss.code == "runs_far_apart"]
    assert len(told) == 3 - left
    assert all("half a day or more before the last one" in text for text in told)


def test_by_command_together_and_separately(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    written(tmp_path, step_1=run_of(0, 100, "a", "b"), step_2=run_of(150, 100, "a", "b"))
    assert main(["diagnose", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("step_*.pb · TensorFlow · no device recorded · 2 steps")
    named = [str(tmp_path / f"step_{number}.pb") for number in (2, 1)]
    assert main(["diagnose", *named, "--format", "json"]) == 0
    assert '"step_source": "tf.Session.run"' in capsys.readouterr().out
    assert main(["diagnose", str(tmp_path), "--separately"]) == 0
    out = capsys.readouterr().out
    assert out.count("TensorFlow · no device recorded · the whole profile") == 2
