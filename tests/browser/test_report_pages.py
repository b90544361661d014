"""Each page of the one-file report, opened from disk, shows a real profile's figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import stepscope
from stepscope.report import finding_phrases, phrases
from stepscope.units import format_ns
from tests.kit.some import some
from tests.kit.traces import real_trace
from tests.support import real_profile
from tests.web.reports import EXAMPLE

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
Shot = Callable[["Page"], None]

PAGES = ("overview", "input", "ops", "kernels", "memory", "ranks", "compare")
V100, H100 = "kineto/v100_resnet50_workers0.json.gz", "kineto/h100_qwen05b.json.gz"
B200 = "kineto/b200_eager_rank0_of_8.json.gz"


def open_page(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}#/{name}")
    page.wait_for_selector(f"h1:text-is('{name.partition('?')[0].capitalize()}') + .page")


@pytest.mark.real
@pytest.mark.parametrize("name", some(PAGES, 4))
@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(H100, id="h100"),
        pytest.param(V100, id="v100", marks=pytest.mark.slow),
        pytest.param(B200, id="b200", marks=pytest.mark.slow),
    ],
)
def test_each_page_of_a_real_profile(page: Page, reports: Reports, shot: Shot, name: str, trace: str) -> None:
    real_trace(trace)
    open_page(page, reports(trace), name)
    assert page.locator("h1").inner_text().lower() == name
    assert page.locator("section").count() >= 1
    assert page.locator("nav a[aria-current=page]").inner_text().lower().startswith(name)
    text = page.locator("main").inner_text()
    assert not re.search(r"\b(undefined|NaN|null|\[object|Infinity)\b", text), text
    shot(page)


def test_the_overview_says_what_the_terminal_says(page: Page, reports: Reports) -> None:
    document = stepscope.open(EXAMPLE).document()
    open_page(page, reports("example"), "overview")
    text = page.locator("main").inner_text()
    assert document["summary"]["verdict"] in text
    for headline in phrases.headlines(document):
        assert headline.value in text
        assert headline.rest in text
    for part in document["analyses"]["breakdown"][0]["parts"]:
        if part["ns_per_step"]:
            assert part["label"] in text
            assert format_ns(part["ns_per_step"]) in text
    told, _ = finding_phrases.told_and_untold(document)
    assert [card.inner_text() for card in page.locator(".finding .saving").all()] == [
        finding_phrases.saving(finding, document["summary"]) for finding in told
    ]
    for item in document["profile"]["notices"]:
        assert phrases.notice(item).replace("`", "") in text


def test_pages_without_their_data_say_what_to_record(page: Page, reports: Reports) -> None:
    for name, cure in (("kernels", "ProfilerActivity.CUDA"), ("memory", "profile_memory=True")):
        open_page(page, reports("example"), name)
        assert cure in page.locator(".missing").first.inner_text()


@pytest.mark.real
@pytest.mark.slow
def test_the_step_range_filters_what_has_steps(page: Page, reports: Reports) -> None:
    address = reports(V100)
    open_page(page, address, "overview?steps=6-7")
    assert page.locator(".strip .range").inner_text() == "steps 6 to 7"
    assert "mean of 2 steps: steps 6 to 7" in page.locator("main").inner_text()
    rows = [
        row for row in real_profile(V100).document()["accounting"] if row["phase"] == "step" and row["step"] in (1, 2)
    ]
    mean = round(sum(row["parts"]["input"] for row in rows) / 2)
    assert format_ns(mean) in page.locator(".legend").inner_text()
    page.get_by_role("button", name="All steps").click()
    page.wait_for_selector(".strip .range:text-is('6 steps')")
    open_page(page, address, "kernels?steps=8-8")
    cells = page.locator("section:has(h2:text-is('Longest idle gaps')) tbody tr td:nth-child(1)").all_inner_texts()
    assert cells
    assert {cell.rstrip("+") for cell in cells} == {"8"}


@pytest.mark.real
@pytest.mark.slow
def test_a_finding_leads_to_its_place_in_the_trace(page: Page, reports: Reports) -> None:
    open_page(page, reports(V100), "overview")
    evidence = real_profile(V100).document()["findings"][0]["evidence"][0]
    page.get_by_role("button", name="Show in trace").first.click()
    page.wait_for_url("**#/trace?**")
    # First as asked, then as the viewer tells what it shows.
    start, duration = evidence["start_ns"], evidence["dur_ns"]
    page.wait_for_function(f"[{start}, {duration}].every((ns) => location.hash.includes(String(ns)))")
    page.go_back()
    page.wait_for_selector("h1:text-is('Overview')")


def test_a_link_opens_its_finding(page: Page, reports: Reports) -> None:
    open_page(page, reports("example"), "overview?finding=input_bound.1")
    assert page.evaluate("document.activeElement.parentElement.id") == "finding-input_bound.1"


@pytest.mark.parametrize(
    "theme", ["light", *(pytest.param(theme, marks=pytest.mark.slow) for theme in ("dark", "contrast"))]
)
def test_themes(page: Page, reports: Reports, shot: Shot, theme: str) -> None:
    open_page(page, reports("example"), "overview")
    page.get_by_label("Theme").select_option(theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.reload()
    page.wait_for_selector("main .page")
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    shot(page)


@pytest.mark.slow
def test_a_narrow_window_needs_no_sideways_scrolling(page: Page, reports: Reports, shot: Shot) -> None:
    page.set_viewport_size({"width": 420, "height": 800})
    for name in PAGES:
        open_page(page, reports("example"), name)
        assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page)


@pytest.mark.slow
def test_the_trace_has_the_palette_of_the_pages(page: Page, reports: Reports) -> None:
    open_page(page, reports("example"), "trace")
    page.wait_for_selector(".trace-host canvas")
    page.get_by_label("Colours").select_option("blind")
    page.wait_for_url(lambda url: "colour=category-blind" in url)
    page.get_by_label("Colours").select_option("standard")
    page.wait_for_url(lambda url: "start=" in url and "colour=" not in url)
