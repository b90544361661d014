"""The public API: from a path to frames, findings and a valid document."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stepscope
from stepscope import pipeline
from stepscope.analysis.categories import CATEGORIES
from stepscope.errors import Exit, InputError
from stepscope.report import json_, markdown, terminal
from stepscope.trace.tables import TABLES
from tests.cli.profiles import write_profile
from tests.kit.builder import TraceDrawing
from tests.kit.drawing import draw
from tests.kit.events import Event, Stream, Thread
from tests.kit.kineto_writer import FORMS, Form, write_kineto
from tests.kit.planted import CASES
from tests.kit.random_traces import random_traces
from tests.kit.some import some
from tests.report import documents
from tests.support import planted_file

US = 1_000

LOOP = """
    main  |[a] [S             ][T             ][U             ]
    main  |    [a] [I     ][b] [a] [I     ][b] [a] [I     ][b]
    gpu0/7|  [a]   [a]        [b]  [a]        [b]  [a]        [b]
    S = step 7
    T = step 8
    U = step 9
    I = input
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A profile of three steps that wait for input."""
    path = tmp_path / "trace.json"
    path.write_bytes(write_kineto(draw(LOOP), header={"distributedInfo": {"rank": 3, "world_size": 4}}))
    return path


@pytest.fixture
def longer(tmp_path: Path) -> Path:
    """The same, of steps that last long enough to be judged."""
    path = tmp_path / "longer.json"
    header = {"distributedInfo": {"rank": 3, "world_size": 4}}
    path.write_bytes(write_kineto(draw(f"1 char = 100 us\n{LOOP}"), header=header))
    return path


def test_steps_are_a_frame_with_a_row_per_step(path: Path):
    steps = stepscope.open(path).steps
    assert steps.schema == {
        "rank": pl.Int64, "index": pl.Int64, "number": pl.Int64, "start_ns": pl.Int64, "dur_ns": pl.Int64,
        "host_dur_ns": pl.Int64, "basis": pl.String, "inferred": pl.Boolean, "complete": pl.Boolean,
        "slow": pl.Boolean,
    }  # fmt: skip
    assert steps.select("rank", "index", "number", "start_ns", "host_dur_ns", "basis", "inferred").rows() == [
        (3, 0, 7, 40 * US, 160 * US, "device", False),
        (3, 1, 8, 200 * US, 160 * US, "device", False),
        (3, 2, 9, 360 * US, 160 * US, "device", False),
    ]
    assert steps["dur_ns"].sum() == stepscope.open(path).accounting.filter(phase="step")["dur_ns"].sum()


def test_accounting_is_a_frame_whose_categories_sum_to_the_rows(path: Path):
    accounting = stepscope.open(path).accounting
    assert accounting.columns[:6] == ["rank", "device", "step", "phase", "start_ns", "dur_ns"]
    assert sorted(accounting.columns[6:]) == sorted(CATEGORIES)
    assert set(accounting.select(*CATEGORIES).dtypes) == {pl.Int64}
    several_ranks = {"collective_wait", "collective_transfer"}
    nulls = accounting.select(*CATEGORIES).null_count().row(0, named=True)
    assert {name: count for name, count in nulls.items() if count} == dict.fromkeys(several_ranks, len(accounting))
    sums = accounting.select(pl.sum_horizontal(*CATEGORIES)).to_series()
    assert sums.to_list() == accounting["dur_ns"].to_list()
    ends = accounting["start_ns"] + accounting["dur_ns"]
    assert accounting["start_ns"][1:].to_list() == ends[:-1].to_list()
    assert accounting.select("step", "phase").rows() == [(None, "before"), (0, "step"), (1, "step"), (2, "step")]


def test_frames_of_a_profile_without_markers_ranks_or_device_have_real_nulls(tmp_path: Path):
    path = tmp_path / "trace.json"
    path.write_bytes(write_kineto(draw("main |[aten::mm ] [aten::add ]")))
    profile = stepscope.open(path)
    assert profile.steps.select("rank", "number", "basis", "inferred").rows() == [(None, None, "host", True)]
    assert profile.accounting.select("rank", "device").rows() == [(None, None)]
    assert profile.steps.schema["number"] == pl.Int64
    assert profile.accounting.schema["device"] == pl.Int64


def test_every_table_is_a_frame(path: Path):
    trace = stepscope.open(path).trace
    for name, declared in TABLES.items():
        frame = trace.table(name)
        assert frame.columns == [field.name for field in dataclasses.fields(declared)]
        assert len(frame) == len(getattr(trace, name))
    with pytest.raises(KeyError, match="no table 'kernels'; there are tracks, slices"):
        trace.table("kernels")


def test_absent_facts_are_nulls_and_labels_are_words(path: Path):
    ops = stepscope.open(path).trace.table("device_ops")
    assert ops["bytes"].null_count() == len(ops)
    assert ops["graph"].to_list() == [None] * len(ops)
    assert set(ops["direction"].cast(pl.String)) == {"unknown"}
    slices = stepscope.open(path).trace.table("slices")
    assert slices.filter(pl.col("parent").is_null())["depth"].to_list() == [0] * slices["parent"].null_count()


def test_findings_notices_and_the_verdict(longer: Path):
    profile = stepscope.open(longer)
    assert [finding.rule for finding in profile.findings] == [f["rule"] for f in profile.document()["findings"]]
    assert profile.findings[0].rule == "input_bound"
    assert profile.verdict == profile.document()["summary"]["verdict"]
    codes = [notice["code"] for notice in profile.document()["profile"]["notices"]]
    assert [notice.code for notice in profile.notices] == codes
    assert "profile_no_collectives" in codes


def test_the_document_says_what_was_read(path: Path):
    document = documents.check(stepscope.open(path).document())
    (file,) = document["profile"]["files"]
    assert (file["path"], file["bytes"]) == (str(path), path.stat().st_size)
    assert file["events"] == document["profile"]["events"]["total"]
    assert document["profile"]["ranks"] == [3]
    assert document["profile"]["complete"] is True
    assert document["tool"] == {"name": "stepscope", "version": stepscope.__version__}


def test_a_path_may_be_text(path: Path):
    assert stepscope.open(str(path)).document() == stepscope.open(path).document()


def test_analyses_run_once_and_only_when_asked_for(longer: Path, monkeypatch: pytest.MonkeyPatch):
    calls = []
    real = pipeline.analyse
    monkeypatch.setattr(pipeline, "analyse", lambda *given: (calls.append(given), real(*given))[1])
    profile = stepscope.open(longer)
    assert len(profile.trace.slices) > 0
    assert calls == []
    assert profile.document() is profile.document()
    assert (len(profile.steps), profile.findings[0].rule, len(calls)) == (3, "input_bound", 1)


def test_progress_is_told_from_the_first_byte_to_the_last_analysis(path: Path):
    told: list[tuple[str, int, int]] = []

    def note(stage: str, done: int, total: int) -> None:
        if stage != "compile":  # said once per machine, before anything is read
            told.append((stage, done, total))

    profile = stepscope.open(path, progress=note)
    size = path.stat().st_size
    assert {stage for stage, _, _ in told} == {"reading"}
    assert told[-1] == ("reading", size, size)
    reading = len(told)
    profile.document()
    assert {stage for stage, _, _ in told[reading:]} == {"accounting"}
    done = [(now, total) for _, now, total in told[reading:]]
    assert done == sorted(done)
    assert done[-1][0] == done[-1][1]
    assert all(0 <= now <= total for _, now, total in told)


# --- what cannot be read -----------------------------------------------------------------------------------


def test_a_path_that_does_not_exist(tmp_path: Path):
    with pytest.raises(InputError, match=r"nothing\.json") as caught:
        stepscope.open(tmp_path / "nothing.json")
    assert_one_sentence(caught.value)
    assert caught.value.status is Exit.UNREADABLE


def test_a_directory(tmp_path: Path):
    with pytest.raises(InputError) as caught:
        stepscope.open(tmp_path)
    assert_one_sentence(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"   \n", b"hello", b"\x00\x01\x02\x03", b"<html></html>", b"\x80\x05pickle", gzip.compress(b"hello")],
    ids=["empty", "blank", "text", "binary", "html", "pickle", "gzip of text"],
)
def test_a_file_that_is_no_profile(tmp_path: Path, content: bytes):
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        stepscope.open(path)
    assert_one_sentence(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [{"a": 1}, [1, 2, 3], {"traceEvents": 5}, {"traceEvents": {}}], ids=str)
def test_json_that_is_no_profile(tmp_path: Path, content: object):
    path = tmp_path / "thing.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        stepscope.open(path)
    assert_one_sentence(caught.value)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "args": {"name": "python"}}],
        [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": -1}],
    ],
    ids=["no event", "only names of threads", "no usable event"],
)
def test_a_trace_without_anything_to_diagnose(tmp_path: Path, events: list[dict[str, object]]):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    with pytest.raises(InputError) as caught:
        stepscope.open(path)
    assert_one_sentence(caught.value)


def test_a_folder_that_leads_to_one_profile_is_that_profile(path: Path):
    (path.parent / "notes.txt").write_text("batch size 8")
    assert stepscope.open(path.parent).source.path == path
    assert [profile.verdict for profile in stepscope.open_all(path.parent)] == [stepscope.open(path).verdict]


def test_of_several_profiles_one_must_be_named(path: Path):
    for rank in range(7):
        (path.parent / f"rank{rank}.json").write_bytes(path.read_bytes())
    path.unlink()
    with pytest.raises(InputError) as caught:
        stepscope.open(path.parent)
    assert caught.value.sentence == f"{path.parent}: holds 7 profiles; name one of them"
    assert caught.value.details == (*(f"{path.parent}/rank{rank}.json" for rank in range(5)), "…")
    (path.parent / "rank1.json").write_text('{"traceEvents": [{"ph": "X"}]}')
    profiles = stepscope.open_all(path.parent)
    assert next(profiles).source.path.name == "rank0.json"
    with pytest.raises(InputError, match=r"rank1\.json: holds no usable event"):
        next(profiles)


def assert_one_sentence(error: Exception) -> None:
    """``<path>: <what is wrong>; <what to do>``."""
    text = str(error)
    assert re.fullmatch(r"[^:]+: (is|holds|ends|there is) [^\n]+", text), text
    assert "; " in text or text.endswith(("is empty", "no such file")), text
    assert not text.endswith(".")
    assert "Traceback" not in text


def test_a_damaged_profile_is_read_as_far_as_it_goes(path: Path):
    assert stepscope.open(path).exit_status is Exit.OK
    path.write_bytes(path.read_bytes()[:-900])
    profile = stepscope.open(path)
    assert profile.exit_status is Exit.PARTIAL
    document = documents.check(profile.document())
    assert document["profile"]["complete"] is False
    assert any(notice["code"].startswith("damaged_") for notice in document["profile"]["notices"])


# --- any trace gives a valid document ----------------------------------------------------------------------


def assert_reportable(path: Path) -> None:
    profile = stepscope.open(path)
    document = documents.check(profile.document())
    assert json.loads(json_.render(document)) == document
    for verbose in (False, True):
        assert markdown.render(document, verbose=verbose)
        for width in (40, 100):
            lines = terminal.render(document, width=width, verbose=verbose).splitlines()
            assert max(map(len, lines)) <= width
    assert len(profile.steps) == len(document["steps"])
    assert len(profile.accounting) == len(document["accounting"])
    for finding in (*document["findings"], *document["analyses"]["minor_findings"]):
        saving, left = finding["saving_ns_per_step"], finding["predicted_step_ns"]
        assert saving is None or (saving >= 0 and left is not None and left >= 0)


@given(events=random_traces(), form=st.sampled_from(FORMS))
def test_any_trace_in_any_form_gives_a_valid_document(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], form: Form
):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(write_kineto(events, form))
    assert_reportable(path)


@pytest.mark.parametrize("name", some(CASES, 7))
def test_every_planted_profile_gives_a_valid_document(tmp_path: Path, name: str):
    path = tmp_path / "trace.json"
    path.write_bytes(planted_file(name))
    assert_reportable(path)


def steps(count: int) -> TraceDrawing:
    """Markers of 100 µs one after another."""
    drawing = TraceDrawing()
    for number in range(count):
        drawing.step(number, 100 * number, 100)
    return drawing


def only_device_work(d: TraceDrawing) -> None:
    d.kernel(None, "k", 0, 10)
    d.kernel(None, "k", 20, 10)


def only_a_wait(d: TraceDrawing) -> None:
    d.sync(0, 100, stream=Stream())


def steps_of_no_length(d: TraceDrawing) -> None:
    for number in range(5):
        d.step(number, 0, 0)
    d.kernel(d.launch(0, 0), "k", 0, 10)


def one_number_for_all_calls(d: TraceDrawing) -> None:
    call = d.launch(0)
    for at in (10, 20, 30):
        d.add(Event("cuda_runtime", "cudaLaunchKernel", Thread(), at * US, 5 * US, call))
        d.kernel(call, "k", at + 10, 5)


def a_second_device_that_does_nothing_long(d: TraceDrawing) -> None:
    for at in (0, 100, 200, 300):
        d.step(at, at, 100)
        d.kernel(d.launch(at), "k", at + 10, 50)
    d.memset(None, 150, 0, stream=Stream(1, 7))


ODD: dict[str, Callable[[TraceDrawing], object]] = {
    "only a step marker": lambda d: d.step(1, 0, 0),
    "only frames": lambda d: d.python("train.py(3): main", 0, 100),
    "only overhead": lambda d: d.overhead(0, 100),
    "only device work": only_device_work,
    "only a wait": only_a_wait,
    "steps of no length": steps_of_no_length,
    "work only after the steps": lambda d: d.kernel(d.launch(900), "k", 920, 10),
    "work only before the steps": lambda d: d.kernel(d.launch(-300), "k", -200, 10),
    "work before its launch": lambda d: d.kernel(d.launch(500), "k", 10, 20),
    "one number for all calls": one_number_for_all_calls,
    "a second device that does nothing long": a_second_device_that_does_nothing_long,
}
"""Legal profiles at the edge of what there can be."""


@pytest.mark.parametrize("marked", [0, 4])
@pytest.mark.parametrize("name", ODD)
def test_odd_profiles_give_a_valid_document(tmp_path: Path, name: str, marked: int):
    drawing = steps(marked)
    ODD[name](drawing)
    path = tmp_path / "trace.json"
    path.write_bytes(write_kineto(drawing.events()))
    assert_reportable(path)


def test_kernels_of_no_length_give_a_valid_document(tmp_path: Path):
    drawing = TraceDrawing()
    drawing.step(1, 0, 100)
    drawing.kernel(drawing.launch(0), "k", 10, 0)
    drawing.memset(drawing.call("cudaMemsetAsync", 20, 5), 30, 10)
    path = tmp_path / "trace.json"
    path.write_bytes(write_kineto(drawing.events()))
    assert_reportable(path)


@pytest.mark.parametrize("name", some(TABLES, 3))
def test_a_table_is_the_one_that_queries_read(tmp_path, name: str):
    profile = stepscope.open(write_profile(tmp_path / "profile.json"))
    assert profile.table(name).equals(profile.query(f"SELECT * FROM {name}"))


def test_rows_are_numbered_and_other_tables_are_not_there(tmp_path):
    profile = stepscope.open(write_profile(tmp_path / "profile.json"))
    assert profile.table("slices")["id"].to_list() == list(range(len(profile.trace.slices)))
    with pytest.raises(KeyError, match="no table 'nothing'"):
        profile.table("nothing")
