"""What Python shows of a profile and its frames."""

import dataclasses

import polars as pl

import stepscope
from stepscope.analysis.where import Where
from stepscope.diagnosis.finding import Finding
from stepscope.report.frames import in_ms
from stepscope.report.readable import Findings

EXAMPLE = "examples/profiles/cpu_input_bound.json.gz"
ONE = Finding(
    rule="sync_bound", id="sync_bound.1", title="<b>item</b> waits", why="", fix="", cost_ns_per_step=5,
    saving_ns_per_step=1_500_000, where=(Where(file="train.py", line=7),),
)  # fmt: skip


def test_a_profile_is_shown_without_working_anything_out_and_with_its_verdict_once_it_is_known():
    profile = stepscope.open(EXAMPLE)
    assert repr(profile) == "<Profile cpu_input_bound.json.gz, 12,733 events; .verdict says where its time goes>"
    assert "facts" not in profile.__dict__
    assert profile.verdict in repr(profile)
    assert repr(profile).endswith("(1 finding in .findings)>")


def test_findings_are_a_tuple_that_shows_as_a_table():
    unknown = dataclasses.replace(ONE, id="sync_bound.2", saving_ns_per_step=None, where=())
    found = Findings((ONE, unknown))
    assert found == (ONE, unknown)
    assert found[0] is ONE
    assert repr(found).splitlines() == [
        "id            saves per step  what               where",
        "sync_bound.1  1.50 ms         <b>item</b> waits  train.py:7",
        "sync_bound.2  not known       <b>item</b> waits",
    ]
    assert "&lt;b&gt;item" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert repr(Findings(())) == "no findings"


def test_frames_are_shown_in_ms_without_what_is_empty_or_nothing_throughout():
    frame = pl.DataFrame({
        "rank": pl.Series([None, None], dtype=pl.Int64), "step": [0, 0], "dur_ns": [2_000_000, 1_500],
        "input": [0, 7_000],
        "compute": [0, 0], "sync": pl.Series([None, 0], dtype=pl.Int64), "inferred": [False, False],
    })  # fmt: skip
    shown = in_ms(frame)
    assert shown.columns == ["step", "dur_ms", "input", "inferred"]
    assert shown["dur_ms"].to_list() == [2.0, 0.002]
    assert shown["input"].to_list() == [0.0, 0.007]


def test_what_took_time_of_a_real_profile_sums_to_its_steps():
    shown = stepscope.in_ms(stepscope.open(EXAMPLE).accounting)
    parts = shown.drop("step", "phase", "start_ms", "dur_ms", strict=True)
    assert (parts.sum_horizontal() - shown["dur_ms"]).abs().max() < 0.01
    assert {"input", "host_compute"} <= set(parts.columns)
    assert "compute" not in parts.columns
