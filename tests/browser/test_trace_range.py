"""A selected range of the trace: its numbers are those of ``stepscope query``, and it leaves the page in every form."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import stepscope
from stepscope import cli
from tests.browser.trace_steps import copied, opened, panel, pressed, settled, span, tab
from tests.web.reports import EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAME = "simulated_masked_loss_before.json.gz"


@pytest.fixture(scope="module")
def trace(shared_page: Page, reports: Callable[[str], str]) -> Page:
    """The longest gap of a profile, and what ran meanwhile."""
    opened(shared_page, reports(NAME))
    tab(shared_page, "Gaps")
    shared_page.get_by_role("button", name="Show", exact=True).first.click()
    settled(shared_page)
    tab(shared_page, "Details")
    shared_page.get_by_role("button", name="What ran meanwhile, per thread").click()
    shared_page.wait_for_selector(".tv-panel-body tbody tr")
    return shared_page


@pytest.fixture(scope="module")
def found(trace: Page) -> dict[str, Any]:
    copy: dict[str, Any] = copied(trace, "Copy JSON")
    return copy


def by_thread(rows: pl.DataFrame) -> dict[str, dict[tuple[str, str], int]]:
    """Per host thread, by name and kind, the time of its own."""
    sums: dict[str, dict[tuple[str, str], int]] = {}
    for row in rows.filter(pl.col("device").is_null() & pl.col("name").is_not_null()).to_dicts():
        thread = sums.setdefault(f"process {row['process']} · {row['label'] or row['thread']}", {})
        thread[row["name"], row["kind"]] = row["self_ns"]
    return sums


def test_a_gap_lists_per_host_thread_what_query_says(trace: Page, found: dict[str, Any]) -> None:
    gap = stepscope.open(EXAMPLES / NAME).document()["analyses"]["idle"]["gaps"][0]
    assert (found["begin"], found["end"]) == (gap["start_ns"], gap["start_ns"] + gap["dur_ns"])
    profile = stepscope.open(EXAMPLES / NAME)
    assert isinstance(profile, stepscope.Profile)
    region = profile.region(found["begin"], found["end"])
    shown = {
        one["track"]: {(name["name"], name["kind"]): name["self"] for name in one["names"] if name["self"]}
        for one in found["tracks"]
        if one["type"] == "thread"
    }
    assert shown == by_thread(region)
    assert shown
    devices = region.filter(pl.col("device").is_not_null()).to_dicts()
    said = {part["category"]: part["ns"] for part in found["devices"][0]["parts"]}
    assert said == {row["name"]: row["self_ns"] for row in devices}
    text = panel(trace)
    assert all(name in text for thread in shown.values() for name, _ in thread)


def test_its_python_and_its_command_give_the_same_numbers(
    trace: Page, found: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said: dict[str, Any] = {}
    exec(copied(trace, "Copy Python"), said)
    capsys.readouterr()
    profile = stepscope.open(EXAMPLES / NAME)
    assert isinstance(profile, stepscope.Profile)
    region = profile.region(found["begin"], found["end"])
    assert said["region"].equals(region)
    program, *arguments = shlex.split(copied(trace, "Copy command"))
    assert program == "stepscope"
    out = tmp_path / "rows.json"
    assert cli.main([*arguments, "-o", str(out)]) == 0
    assert [row["self_ns"] for row in json.loads(out.read_text())] == region["self_ns"].to_list()


def test_it_is_saved_as_json_csv_picture_and_trace(trace: Page, found: dict[str, Any], tmp_path: Path) -> None:
    saved: dict[str, Path] = {}
    for button in ("Save JSON", "Save CSV", "Save picture", "File for Perfetto"):
        with trace.expect_download() as download:
            trace.get_by_role("button", name=button, exact=True).click()
        saved[button] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[button])
    assert json.loads(saved["Save JSON"].read_text()) == found
    rows = list(csv.DictReader(io.StringIO(saved["Save CSV"].read_text())))
    assert sum(int(row["Self"]) for row in rows) == sum(
        name["self"] for one in found["tracks"] for name in one["names"]
    )
    picture = saved["Save picture"].read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 800
    assert height > 100
    again = stepscope.open(saved["File for Perfetto"])
    assert isinstance(again, stepscope.Profile)
    assert len(again.trace.slices) >= sum(one["count"] for one in found["tracks"])


FORMS = ["merged", "time", "sandwich", "difference"]


def test_every_form_of_the_flame_graph(trace: Page, found: dict[str, Any]) -> None:
    tab(trace, "Flame graph")
    form = trace.get_by_label("Form of the flame graph")
    told = {}
    for one in FORMS:
        form.select_option(one)
        settled(trace)
        told[one] = panel(trace)
        if one in ("merged", "time"):
            root = trace.locator(".tv-flame button").first.get_attribute("aria-label") or ""
            assert root.startswith("all: ")
    assert "Select two ranges" in told["difference"]
    assert "What calls it" in told["sandwich"]
    pressed(trace, "e")
    assert "Select two ranges" in panel(trace)
    pressed(trace, ".", "e")
    tab(trace, "Flame graph")
    trace.wait_for_selector(".tv-flame button")
    label = trace.locator(".tv-flame button").first.get_attribute("aria-label")
    assert re.search("(more|less) than before", label or "")
    form.select_option("merged")
    tab(trace, "Range")
    assert span(trace)
