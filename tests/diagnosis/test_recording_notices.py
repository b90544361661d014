"""What the manifest beside a profile adds to the report."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.analyse import analyse
from stepscope.capture.results import manifest_of
from stepscope.diagnosis.limits import LINE_LOOKS
from stepscope.diagnosis.notices.recording import notices
from stepscope.formats.beside.rows import table_of
from stepscope.trace.tables import NULL, Looks
from tests.kit.drawing import draw
from tests.kit.kineto_writer import write_kineto
from tests.support import facts_of_drawing, trace_of

HOST = """
    1 char = 10 us
    main   |[S                   ][T                   ]
    main   |  a                     b
    gpu0/7 |   a                     b
    S = step 5
    T = step 6
"""
DEVICE = """
    1 char = 10 us
    main   |[S                                          ][T                                          ]
    main   |a[s                                         ]b[t                                         ]
    gpu0/7 | [a                                         ] [b                                         ]
    S = step 5
    T = step 6
    s = sync cudaStreamSynchronize
    t = sync cudaStreamSynchronize
"""
MANIFEST: dict[str, Any] = {
    "schema": "stepscope.capture/1",
    "options": {"stacks": True, "shapes": False, "memory": False, "active": 6},
    "window": {"first_step": 5, "steps": 6, "settled": True, "ended": "recorded"},
    "step_ns": {"unrecorded": 2_000_000, "recorded": 3_000_000, "timed_after": 10},
    "switches": {
        "stacks": {"on": True, "adds": "source lines"},
        "shapes": {"on": True, "adds": "FLOPs"},
        "memory": {"on": False, "adds": "the memory timeline"},
    },
    "files": [{"path": "rank0.json", "bytes": 1}],
    "failures": [],
}


def manifest(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(MANIFEST), **changes}


def texts(drawing: str, told: dict[str, Any]) -> dict[str, str]:
    return {notice.code: notice.text for notice in notices(facts_of_drawing(drawing), told)}


def switched(**on: bool) -> dict[str, Any]:
    return {name: {"on": state, "adds": f"what {name} adds"} for name, state in on.items()}


def test_a_whole_recording_says_nothing() -> None:
    assert texts(HOST, manifest()) == {}


def test_a_lighter_profiler_is_said_with_its_reason() -> None:
    failures = [{"when": "starting the profiler", "what": "RuntimeError: no memory"}]
    told = manifest(failures=failures, switches=switched(stacks=False))
    assert texts(DEVICE, told) == {
        "profile_lighter": "Recorded without stacks: with them the profiler did not start (RuntimeError: no memory)."
    }


def test_a_window_without_a_whole_step_says_how_long_one_takes() -> None:
    window = {"first_step": 5, "steps": 0, "settled": True, "ended": "no step ended within 300 s"}
    assert texts(DEVICE, manifest(window=window)) == {
        "profile_stopped_early": "Recording ended early: no step ended within 300 s. It holds no whole step; before "
        "it, a step took 2.00 ms."
    }


def test_a_job_that_ended_in_its_window_keeps_quiet_of_steps_it_has() -> None:
    window = {"first_step": 5, "steps": 3, "settled": True, "ended": "the job ended"}
    assert texts(DEVICE, manifest(window=window)) == {"profile_stopped_early": "Recording ended early: the job ended."}


@pytest.mark.parametrize(
    ("drawing", "off", "said"),
    [
        (HOST, "stacks", True),
        (DEVICE, "stacks", False),
        (DEVICE, "shapes", True),
        (HOST, "shapes", False),
        (DEVICE, "memory", False),
        (DEVICE, "unheard_of", False),
    ],
)
def test_switches_are_named_where_they_matter(drawing: str, off: str, said: bool) -> None:
    found = texts(drawing, manifest(options={"active": 6}, switches=switched(**{off: False})))
    assert (f"what {off} adds" in found.get("profile_switches", "")) == said
    assert texts(drawing, manifest(switches=switched(**{off: True}))) == {}


def test_what_no_option_records_is_no_switch_left_out() -> None:
    never = {"stacks": {"on": False, "adds": "lines", "instead": "a server"}}
    assert texts(HOST, manifest(options={"active": 6}, switches=never)) == {}
    failures = [{"when": "starting the profiler", "what": "RuntimeError: no memory"}]
    assert texts(HOST, manifest(failures=failures, switches=never)) == {}


@pytest.mark.parametrize("wrong", [{}, {"failures": 3}, {"failures": [], "window": 3}, {"switches": []}])
def test_what_is_no_manifest_of_ours_says_nothing(wrong: dict[str, Any]) -> None:
    told = {**manifest(), **wrong} if wrong else {}
    assert isinstance(notices(facts_of_drawing(HOST), told), list)


def test_the_report_of_a_recorded_profile_has_them(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (folder / "rank0.json").write_bytes(write_kineto(draw(HOST)))
    told = manifest(
        options={"active": 6},
        switches=switched(stacks=False),
        files=[{"path": "plugins/profile/run/rank0.json", "bytes": 1}],
    )
    (tmp_path / "host.1.2.stepscope.json").write_text(json.dumps(told))
    codes = {notice.code for notice in stepscope.open(folder / "rank0.json").notices}
    assert "profile_switches" in codes
    (tmp_path / "host.1.2.stepscope.json").write_text(json.dumps({**told, "files": []}))
    assert "profile_switches" not in {notice.code for notice in stepscope.open(folder / "rank0.json").notices}


SLOW_FIRST = """
    1 char = 10 us
    main   |[S                                          ][T       ][U       ][V       ][W       ]
    main   |  a                                            b         c         d         e
    S = step 5
    T = step 6
    U = step 7
    V = step 8
    W = step 9
"""


def test_remedies_are_those_of_a_profile_that_stepscope_recorded(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_bytes(write_kineto(draw(SLOW_FIRST)))

    def said() -> dict[str, str]:
        return {notice.code: notice.text for notice in stepscope.open(tmp_path / "rank0.json").notices}

    alone = said()
    assert "Let the profiler wait" in alone["profile_warm_up"]
    assert "activities=" in alone["profile_no_device"]
    (tmp_path / "host.1.2.stepscope.json").write_text(json.dumps(manifest()))
    recorded = said()
    assert recorded["profile_warm_up"].endswith("More steps are left alone with `--skip`, or `wait=` of a schedule.")
    assert recorded["profile_no_device"].endswith("`stepscope doctor` says why it may be missing.")
    assert recorded.keys() >= alone.keys()


def test_what_became_of_what_was_asked_for_is_not_cut_off(tmp_path: Path) -> None:
    """A short report tells the first notices: how many there are of the steps differs from run to run of a job."""
    (tmp_path / "rank0.json").write_bytes(write_kineto(draw(SLOW_FIRST)))
    failures = [{"when": "starting the profiler", "what": "RuntimeError: no memory"}]
    window = {"first_step": 5, "steps": 5, "settled": True, "ended": "the job ended"}
    told = manifest(failures=failures, window=window, switches=switched(stacks=False))
    (tmp_path / "host.1.2.stepscope.json").write_text(json.dumps(told))
    codes = [notice.code for notice in stepscope.open(tmp_path / "rank0.json").notices]
    assert codes[:2] == ["profile_lighter", "profile_stopped_early"]
    assert "profile_warm_up" in codes
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": "stepscope.capture/1", "files": 3}', "[" * 100_000])
def test_a_damaged_manifest_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "host.1.2.stepscope.json").write_text(text)
    assert manifest_of(tmp_path / "rank0.json") is None


def looked(drawing: str, *at: tuple[int, int]) -> dict[str, str]:
    """What is said of a profile at whose thread was looked so often at each line."""
    lines = [line for line, often in at for _ in range(often)]
    rows = [(1_000 * i, 0, "/job/train.py", line, "<module>", NULL) for i, line in enumerate(lines)]
    trace = trace_of(draw(drawing))
    strings, looks = table_of(trace.strings, Looks, rows)
    facts = analyse(replace(trace, strings=strings, looks=looks))
    return {notice.code: notice.text for notice in notices(facts, manifest())}


def test_lines_that_the_job_was_at_are_told() -> None:
    said = looked(HOST, (12, 60), (13, 36), (14, 4))["profile_lines_sampled"]
    assert "by 100 looks at it: `train.py:12` in `<module>` 60.0 %, `train.py:13` in `<module>` 36.0 %." in said
    assert "train.py:14" not in said


@pytest.mark.parametrize("drawing", [HOST, DEVICE])
def test_few_looks_tell_nothing_nor_do_those_at_a_host_that_costs_nothing(drawing: str) -> None:
    assert looked(drawing, (12, LINE_LOOKS - 1 if drawing is HOST else 100)) == {}
