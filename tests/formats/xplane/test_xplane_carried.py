"""What was recorded as XPlane is written as it was recorded; of a part of it, without the events that were cut out."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope import cli
from stepscope.formats.writers import WRITERS
from stepscope.formats.xplane.writing import write
from stepscope.pipeline import Profile
from stepscope.trace import tables as t
from tests.formats.xplane import xplane_files
from tests.formats.xplane.carried import differences
from tests.kit.some import some
from tests.kit.traces import real_trace
from tests.kit.wire import message
from tests.kit.xplanes import Ev, Plane, space
from tests.kit.xspace import read_xspace

XPLANE = next(writer for writer in WRITERS if writer.name == "xplane")
REAL = ("tpu_v6e_4_chips", "mi300_jax_conv", "mi300_jax_attention", "v100_many_processes")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "recorded.xplane.pb"
    path.write_bytes(xplane_files.nvidia())
    return path


def written(profile: Profile, folder: Path) -> Path:
    out = folder / "out.xplane.pb"
    write(profile.trace, out)
    return out


def test_the_whole_is_carried_byte_by_byte(recorded, tmp_path):
    profile = stepscope.open(recorded)
    assert written(profile, tmp_path).read_bytes() == recorded.read_bytes()
    assert XPLANE.left_out(profile.trace) == []


def test_a_saved_form_leads_to_what_was_recorded(recorded, tmp_path):
    stepscope.open(recorded).save(tmp_path / "p.stepscope")
    assert written(stepscope.open(tmp_path / "p.stepscope"), tmp_path).read_bytes() == recorded.read_bytes()


def test_where_the_recorded_file_is_gone_it_is_laid_out_anew(recorded, tmp_path):
    profile = stepscope.open(recorded)
    recorded.unlink()
    other = stepscope.open(written(profile, tmp_path))
    assert len(other.trace.slices) == len(profile.trace.slices)
    assert other.trace.info.devices == profile.trace.info.devices


def test_a_part_has_no_event_that_was_cut_out_and_all_that_is_said_of_those_left(recorded, tmp_path):
    part = stepscope.open(recorded).slice(time_ns=(0, 1))
    out = written(part, tmp_path)
    kept = [len(getattr(part.trace, table)) for table in ("slices", "memory", "counters", "instants")]
    before, after = read_xspace(recorded.read_bytes()), read_xspace(out.read_bytes())
    events = {plane.name: sum(len(line.events) for line in plane.lines) for plane in after.planes}
    recorded_events = sum(len(line.events) for plane in before.planes for line in plane.lines)
    assert sum(events.values()) == sum(kept) < recorded_events
    assert events.keys() == {*(plane.name for plane in before.planes), "stepscope"}
    other = stepscope.open(out)
    assert other.trace.completeness.losses == part.trace.completeness.losses
    assert other.trace.info.devices == part.trace.info.devices
    assert {*differences(part.trace, other.trace)} <= {"tracks"}


def test_of_a_damaged_file_its_sound_part_is_carried(recorded, tmp_path):
    data = recorded.read_bytes()
    recorded.write_bytes(data[: len(data) - 40])
    one = stepscope.open(recorded)
    out = written(one, tmp_path)
    other = stepscope.open(out)
    assert not one.trace.completeness.complete
    assert not any(loss.code == "xplane_damaged" for loss in other.trace.completeness.losses)
    assert any(loss.code == "reader_warning" for loss in other.trace.completeness.losses)
    assert len(other.trace.slices) == len(one.trace.slices)


def test_what_another_format_leaves_behind_is_named(recorded, tmp_path, capsys):
    assert cli.main(["convert", str(recorded), str(tmp_path / "out.json")]) == 0
    said = capsys.readouterr().err
    assert "statistics of planes: " in said
    assert cli.main(["convert", str(recorded), str(tmp_path / "out.xplane.pb")]) == 0
    assert "not in it" not in capsys.readouterr().err


def durations(profile):
    """What each step takes on each device."""
    steps = tuple(range(len(profile.steps)))
    return {account.rows.device: account.duration_ns[account.step_rows(steps)].tolist()
            for account in profile.facts.accounts}  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize("name", some(REAL, 3))
def test_a_real_file_is_carried_whole_and_in_parts(name, tmp_path):
    path = real_trace(f"xplane/{name}.xplane.pb")
    one = stepscope.open(path)
    assert written(one, tmp_path).read_bytes() == path.read_bytes()
    numbers = range(len(one.steps))
    part = one.slice(steps=(numbers[len(numbers) // 3], numbers[len(numbers) // 3] + 2))
    other = stepscope.open(written(part, tmp_path))
    # How the clocks of devices lie beside each other is told worse by a part, and with it which of them ends a step.
    assert durations(other) == durations(part) != {}
    assert other.steps["dur_ns"].to_list() == pytest.approx(part.steps["dur_ns"].to_list(), rel=0.001)
    assert len(part.steps) == 2 or len(one.steps) < 2
    assert len(other.trace.memory) == len(part.trace.memory)
    assert other.trace.hlo == one.trace.hlo
    assert [d.id for d in other.trace.info.devices] == [d.id for d in part.trace.info.devices]
    assert (other.trace.slices.kind == t.Kind.KERNEL).sum() == (part.trace.slices.kind == t.Kind.KERNEL).sum()


def test_programs_are_laid_out_where_xprof_looks_for_them(tmp_path):
    hlo = message((1, message((1, "jit_f"), (5, 7))))
    path = tmp_path / "recorded.xplane.pb"
    metadata = Plane("/host:metadata", shared={"jit_f(7)": {"Hlo Proto": hlo}}, extra_names=("jit_f(7)",))
    path.write_bytes(space(xplane_files.host(Ev("work", 0, 10)), metadata))
    profile = stepscope.open(path)
    path.unlink()
    assert profile.trace.hlo == (hlo,)
    assert stepscope.open(written(profile, tmp_path)).trace.hlo == (hlo,)
