"""What is said of a selected slice, and the ways from it to others and to the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import stepscope
from tests.browser.trace_steps import command, opened, panel, pressed, span, tab
from tests.support import real_profile
from tests.web.reports import EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
BERT = "kineto/h100_bert_small.json.gz"
A100 = "kineto/a100_rank0_of_128.json.gz"
SMALL = "simulated_masked_loss_before.json.gz"


def found(page: Page, text: str) -> None:
    """Search, and look at the first hit's details."""
    page.locator(".tv-search").fill(text)
    page.locator(".tv-search").press("Enter")
    page.wait_for_selector(".tv-panel-body tbody tr")
    tab(page, "Details")


def live(page: Page) -> str:
    return page.locator(".tv-live").inner_text()


@pytest.mark.real
def test_a_kernel_against_the_devices_peaks(shared_page: Page, reports: Reports) -> None:
    profile = real_profile(BERT)
    ops = profile.document()["analyses"]["roofline"]["ops"]
    kernel = next(one["kernel"] for one in ops if one["flops_share"])
    opened(shared_page, reports(BERT))
    found(shared_page, f'kind:kernel name="{kernel}"')
    text = panel(shared_page)
    assert re.search(r"FLOP rate\s+\S+ .FLOP/s, \S+ % of the peak", text), text
    assert re.search(r"bytes rate, at least\s+\S+ .B/s, \S+ % of memory bandwidth", text), text
    assert "input dims" in text or "grid" in text


@pytest.mark.real
def test_what_is_not_known_of_a_kernel_is_said(shared_page: Page, reports: Reports) -> None:
    ops = real_profile(A100).document()["analyses"]["roofline"]["ops"]
    opened(shared_page, reports(A100))
    found(shared_page, f'kind:kernel name="{ops[0]["kernel"]}"')
    assert "the peak of this device is not known" in panel(shared_page)
    opened(shared_page, reports(SMALL))
    found(shared_page, "kind:kernel name:relu|elementwise")
    assert "not known: the op has no shapes (record_shapes=True), or its work" in panel(shared_page)


def test_all_occurrences_as_a_histogram_whose_bars_list_them(shared_page: Page, reports: Reports) -> None:
    opened(shared_page, reports(SMALL))
    found(shared_page, "kind:kernel")
    total = int(re.search(r"All ([\d ]+) of this name", panel(shared_page))[1].replace(" ", ""))  # type: ignore[index]
    bars = shared_page.locator(".tv-bins button:enabled")
    counts = [
        int(one.split(" of ")[0].replace(" ", "")) for one in bars.evaluate_all("(all) => all.map((b) => b.title)")
    ]
    assert sum(counts) == total
    name = shared_page.locator(".tv-title").inner_text()
    bars.last.click()
    shared_page.wait_for_selector(f".tv-count:has-text('{counts[-1]} ·')")
    assert shared_page.locator(".tv-search").input_value().startswith("name=")
    shared_page.wait_for_selector(".tv-panel-body tbody tr")
    assert shared_page.locator(".tv-count").inner_text().startswith(f"{counts[-1]} ")
    rows = shared_page.locator(".tv-panel-body tbody tr").all_inner_texts()
    assert len(rows) == counts[-1]
    assert all(row.split("\t")[0].startswith(name[:40]) for row in rows)


@pytest.mark.parametrize(("query", "page_name"), [("kind:kernel", "kernels"), ("kind:host_op", "ops")])
def test_the_page_of_a_slice_shows_its_name_alone(
    shared_page: Page, reports: Reports, query: str, page_name: str
) -> None:
    opened(shared_page, reports(SMALL))
    found(shared_page, query)
    name = shared_page.locator(".tv-title").inner_text()
    shared_page.get_by_role("button", name=f"Open in {page_name}").click()
    shared_page.wait_for_url(re.compile(f"#/{page_name}"))
    filters = shared_page.locator("main input.filter").evaluate_all("(all) => all.map((one) => one.value)")
    assert name in filters
    assert name[:30] in shared_page.locator("main").inner_text()


def test_steps_same_ops_tracks_and_commands_by_keyboard(shared_page: Page, reports: Reports) -> None:
    opened(shared_page, reports(SMALL))
    whole = span(shared_page)
    pressed(shared_page, "x")
    first = live(shared_page)
    pressed(shared_page, "x")
    second = live(shared_page)
    pressed(shared_page, "z")
    assert (live(shared_page), second != first) == (first, True)
    found(shared_page, "kind:kernel")
    kernel = live(shared_page)
    pressed(shared_page, "o")
    assert live(shared_page).split(",")[0] == kernel.split(",")[0]
    pressed(shared_page, "Shift+O")
    assert live(shared_page) == kernel
    pressed(shared_page, ".", ",")
    assert live(shared_page) == kernel
    pressed(shared_page, "[")
    assert "runtime_call" in live(shared_page)
    pressed(shared_page, "-")
    assert "runtime_call" not in live(shared_page)
    pressed(shared_page, "0")
    assert span(shared_page) == whole
    pressed(shared_page, "u")
    assert len(shared_page.locator(".tv-heads .tv-name").all()) == 1
    pressed(shared_page, "u")
    assert len(shared_page.locator(".tv-heads .tv-name").all()) > 3
    command(shared_page, "colour by op")
    assert shared_page.get_by_label("Colour by").input_value() == "op"
    pressed(shared_page, "t")
    shared_page.keyboard.type("strm")
    assert "stream" in shared_page.locator(".tv-choices [aria-selected=true]").inner_text()
    shared_page.keyboard.press("Enter")


def test_measuring_snaps_to_edges_of_slices(shared_page: Page, reports: Reports) -> None:
    opened(shared_page, reports(SMALL))
    pressed(shared_page, "x")
    step = span(shared_page)
    ruler = shared_page.locator(".tv-ruler").bounding_box()
    assert ruler
    # A step fills its view but for 3 % on each side.
    edges = [ruler["x"] + ruler["width"] * share for share in (0.03 / 1.06, 1.03 / 1.06)]
    shared_page.mouse.move(edges[0] + 3, ruler["y"] + 5)
    shared_page.mouse.down()
    shared_page.mouse.move(edges[1] - 3, ruler["y"] + 5, steps=4)
    shared_page.mouse.up()
    shared_page.wait_for_selector(".tv-live:has-text('measured')", state="attached")
    profile = stepscope.open(EXAMPLES / SMALL)
    lengths = {one["dur_ns"] for one in profile.document()["steps"]}
    pressed(shared_page, "Shift+M")
    url = shared_page.evaluate("() => new Promise((done) => setTimeout(() => done(location.hash), 600))")
    begin, end = (int(text) for text in re.search(r"notes=%5B%5B(\d+)%2C(\d+)", url).groups())  # type: ignore[union-attr]
    assert end - begin in lengths, (step, url)
