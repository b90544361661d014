"""What ``stepscope run`` says when the command has ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.results import recordings
from stepscope.cli.recorded import _listed, tell
from stepscope.formats.find import find
from tests.kit.drawing import draw
from tests.kit.kineto_writer import write_kineto

DRAWING = """
    1 char = 10 us
    main   |[S                   ][T                   ]
    main   |  a                     b
    S = step 5
    T = step 6
"""


def left_by(folder: Path, *ranks: int, **facts: Any) -> None:
    """What ranks leave."""
    for rank in ranks:
        (folder / f"rank{rank}.json").write_bytes(write_kineto(draw(DRAWING)))
        manifest = {
            "schema": "stepscope.capture/1",
            "rank": rank,
            "started_ns": 1,
            "steps_seen": 20,
            "files": [{"path": f"rank{rank}.json", "bytes": 1}],
            "window": {"first_step": 5, "steps": 2, "ended": "recorded"},
        }
        (folder / f"rank{rank}.stepscope.json").write_text(json.dumps({**manifest, **facts}))


def test_ranks_are_diagnosed_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_by(tmp_path, 0, 1, 2)
    tell(recordings(tmp_path, 0))
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{tmp_path.name} · PyTorch" in " ".join(said.err.split())
    assert "alone" not in said.err
    assert all(str(tmp_path / f"rank{rank}.json") in said.err for rank in range(3))


def test_the_report_for_a_browser_lies_beside_the_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_by(tmp_path, 0)
    tell(recordings(tmp_path, 0))
    page = tmp_path / "rank0.json.html"
    assert f"the same with the trace, for a browser: {page}" in capsys.readouterr().err
    assert '"title":"rank0.json"' in page.read_text(encoding="utf-8")
    found = find(str(tmp_path))
    assert [source.path.name for source in found.sources] == ["rank0.json"]
    assert {skipped.path.name for skipped in found.skipped if skipped.ours} == {
        page.name, "rank0.json.txt", "rank0.stepscope.json",
    }  # fmt: skip


def test_the_report_for_a_browser_is_of_the_job_and_named_after_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_by(tmp_path, 0, 1)
    tell(recordings(tmp_path, 0))
    page = tmp_path / f"{tmp_path.name}.1.html"
    assert f"the same with the traces, for a browser: {page}" in capsys.readouterr().err
    text = page.read_text(encoding="utf-8")
    for title in (tmp_path.name, "rank 0: rank0.json", "rank 1: rank1.json"):
        assert f'"title":"{title}"' in text


def test_processes_that_are_no_ranks_of_a_job_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(write_kineto(draw(DRAWING)))
        manifest = {
            "schema": "stepscope.capture/1", "pid": name, "started_ns": 1, "steps_seen": 20,
            "files": [{"path": name, "bytes": 1}], "window": {"first_step": 5, "steps": 2, "ended": "recorded"},
        }  # fmt: skip
        (tmp_path / f"{name}.stepscope.json").write_text(json.dumps(manifest))
    tell(recordings(tmp_path, 0))
    said = capsys.readouterr().err
    assert "this is the diagnosis of process one alone; process two was recorded too" in said


def test_a_single_process_needs_no_such_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_by(tmp_path, 0)
    tell(recordings(tmp_path, 0))
    assert "alone" not in capsys.readouterr().err


def test_files_are_named_also_where_the_diagnosis_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_by(tmp_path, 0)
    (tmp_path / "rank0.json").write_bytes(b"no profile")
    with pytest.raises(Exception, match=r"rank0\.json"):
        tell(recordings(tmp_path, 0))
    assert str(tmp_path / "rank0.json") in capsys.readouterr().err


def test_many_ranks_are_named_in_part() -> None:
    names = [f"rank {number}" for number in range(1, 64)]
    assert _listed(names[:1]) == "rank 1"
    assert _listed(names[:9]) == "rank 1, rank 2, rank 3, rank 4, rank 5, rank 6, rank 7, rank 8 and rank 9"
    assert _listed(names) == "rank 1, rank 2, rank 3, rank 4, rank 5, rank 6, rank 7, rank 8 and 55 more"


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        (3_000_000, "a step took 3.00 ms while recorded and 2.00 ms otherwise (1.50 ×)"),
        (1_000_000, "a step took 1.00 ms while recorded and 2.00 ms otherwise: steps vary more than recording costs"),
        (900_000, "a step took 900 µs while recorded and 2.00 ms otherwise: those recorded are not like the others"),
    ],
)
def test_recording_is_never_said_to_save_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recorded: int, said: str
) -> None:
    times = {"recorded": recorded, "unrecorded": 2_000_000, "timed_after": 10}
    left_by(tmp_path, 0, step_ns=times, overhead=recorded / times["unrecorded"])
    tell(recordings(tmp_path, 0))
    assert f"; {said}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("looking", "said"),
    [
        ({"spent_ns": 4_000_000, "passed_ns": 1_000_000_000}, "; looking up its lines took 0.4 % of the time"),
        ({"spent_ns": "4", "passed_ns": 0}, ""),
        (None, ""),
    ],
)
def test_what_looking_up_lines_took_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], looking: object, said: str
) -> None:
    left_by(tmp_path, 0, files=[{"path": "rank0.json", "looking": looking}])
    tell(recordings(tmp_path, 0))
    told = capsys.readouterr().err
    assert said in told
    assert ("looking up" in told) is bool(said)
