"""What the doctor says of profiles: those that cannot be read, lack their device side, or stop at a cap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stepscope import pipeline
from stepscope.doctor import State, profiles
from stepscope.formats.find import find
from stepscope.trace.trace import Loss
from tests.kit.events import DEVICE_WORK
from tests.kit.kineto_writer import write_kineto
from tests.kit.nsys_writer import Export, write_nsys
from tests.kit.planted import CASES
from tests.support import planted_file


def outcomes(path: Path) -> dict[str, tuple[State, str, str | None]]:
    (one,) = profiles.examine(str(path))
    return {code: (outcome.state, outcome.sentence, outcome.cure) for code, outcome in one.outcomes}


@pytest.fixture
def written(tmp_path):
    def write(data: bytes, name: str = "profile.json") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def test_a_whole_profile_has_nothing_to_cure(written):
    found = outcomes(written(planted_file("healthy")))
    assert found == {"complete": (State.OK, found["complete"][1], None)}
    assert "1 device; nothing is missing" in found["complete"][1]


def test_launches_without_kernels_are_a_problem_with_a_cure(written):
    events = [event for event in CASES["healthy"]().events if event.cat not in DEVICE_WORK]
    (first, *_) = outcomes(written(write_kineto(events))).items()
    assert first[0] == "profile_device_missing"
    assert first[1][0] is State.PROBLEM
    assert "stepscope doctor" in (first[1][2] or "")


def test_no_device_at_all_is_a_warning(written):
    found = outcomes(written(planted_file("cpu_only")))
    assert found["profile_no_device"][0] is State.WARNING


def test_damage_and_what_the_tool_itself_reports(written):
    data = planted_file("healthy")
    assert outcomes(written(data[: len(data) // 2]))["damaged_truncated"][0] is State.WARNING
    extra = {"DIAGNOSTIC_EVENT": [{"severity": 3, "text": "Buffers were dropped"}]}
    export = Export(extra=extra, graphs=True)
    found = outcomes(written(write_nsys(CASES["graph_launched"]().events, export), "a.sqlite"))
    assert "Buffers were dropped" in found["profile_nsight_message"][1]
    assert "--cuda-graph-trace=node" in (found["profile_graphs_whole"][2] or "")


@pytest.mark.parametrize(
    ("data", "sentence", "cure"),
    [
        (b"hello", "It is text, not a profile.", "`stepscope formats` lists what is read."),
        (b"", "It is empty.", profiles._CHECK),
        (b"SQLite format 3\0" + bytes(99), "It cannot be read: the header of this SQLite file makes no sense.",
         "Export it again."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why_and_what_to_do(written, data, sentence, cure):
    assert outcomes(written(data)) == {"unreadable": (State.PROBLEM, sentence, cure)}


def test_a_path_that_leads_nowhere_is_a_problem(tmp_path):
    ((_, (state, sentence, _)),) = outcomes(tmp_path / "missing").items()
    assert state is State.PROBLEM
    assert "no such file" in sentence


def test_a_folder_gives_an_examination_per_profile(written, tmp_path):
    written(planted_file("healthy"), "a.json")
    written(write_nsys(CASES["healthy"]().events), "b.sqlite")
    found = list(profiles.examine(str(tmp_path)))
    assert sorted(Path(one.path).name for one in found) == ["a.json", "b.sqlite"]


@pytest.mark.parametrize("cap", profiles.CAPS)
def test_a_profile_that_ends_at_a_tools_cap_is_suspected(written, cap):
    profile = pipeline.open(written(planted_file("healthy")))
    completeness = profile.trace.completeness
    for events, suspected in ((cap, True), (cap - 1, False)):
        trace = replace(profile.trace, completeness=replace(completeness, events=events))
        codes = dict(profiles._outcomes(pipeline.Profile(profile.source, trace)))
        assert ("profile_capped" in codes) == suspected
    assert f"{cap:,}" in profiles._cap(replace(trace, completeness=replace(completeness, events=cap))).sentence


def test_every_cure_is_for_a_notice_that_exists():
    from stepscope.diagnosis.notices import notices

    # The codes of notices are the rules' and "profile_" before a loss's: a lost code here would go unnoticed.
    known = {"nsight_message", "graphs_whole", "other_processes", "event_cap", "ops_unplaced"}
    folder = Path(notices.__code__.co_filename).parent
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for code in profiles.CURES:
        assert f'"{code}"' in source or code.removeprefix("profile_") in known
    assert Loss("nsight_message", 1, "").lost_events == 0


def test_without_a_device_the_cause_is_named_and_not_the_doctor_again(written):
    found = outcomes(written(planted_file("cpu_only")))
    _, sentence, cure = found["profile_no_device"]
    assert "the job ran on the CPU alone, or its profiler was not asked" in sentence
    assert "ProfilerActivity.CUDA" in (cure or "")
    assert "stepscope doctor --deep --python" in (cure or "")  # which looks at something else than this run did


def test_a_profile_that_was_told_to_leave_devices_out(written, monkeypatch):
    path = written(planted_file("cpu_only"))
    (source,) = find(str(path)).sources
    trace = pipeline.read(source).trace
    told = replace(trace, info=replace(trace.info, header={"profile_options": {"device_tracer_level": 0}}))
    assert "device_tracer_level=0" in profiles._no_device(told).sentence
