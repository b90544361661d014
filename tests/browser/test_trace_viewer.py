"""The trace viewer in a browser: what one sees and does, with the mouse and by keyboard alone."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import stepscope
from tests.browser.trace_steps import opened, panel, pressed, settled, span, tab
from tests.support import real_profile

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
Shot = Callable[["Page"], None]
V100 = "kineto/v100_two_ranks_rank1.json.gz"
MI300 = "kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz"


@pytest.mark.real
@pytest.mark.slow
def test_tracks_stand_in_natural_order_and_say_what_they_hold(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports(V100))
    heads = page.locator(".tv-heads-inner .tv-head").all_inner_texts()
    text = "\n".join(heads)
    assert re.search(r"device 1.*steps.*phases.*idle, by cause.*stream 7.*stream 14.*process 783658", text, re.DOTALL)
    assert "compute, D2D" in text
    assert "main loop" in text
    shot(page)


@pytest.mark.real
def test_a_gap_is_selected_by_keyboard_and_tells_its_cause(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports(V100))
    pressed(page, "i", ".")
    text = panel(page)
    assert "Why the device was idle" in text
    assert "host was in" in text
    live = page.locator(".tv-live").inner_text()
    assert "idle" in live
    page.get_by_role("button", name="What ran meanwhile, per thread").click()
    page.wait_for_selector(".tv-panel-body tbody tr")
    assert "device 1" in panel(page)
    shot(page)


@pytest.mark.real
@pytest.mark.slow
def test_the_gaps_tab_lists_the_reports_longest_gap(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports(V100))
    tab(page, "Gaps")
    page.wait_for_selector(".tv-panel-body tbody tr")
    profile = real_profile(V100)
    longest = profile.document()["analyses"]["idle"]["gaps"][0]
    first = page.locator(".tv-panel-body tbody tr").first.inner_text()
    assert longest["blocking"] in first
    assert longest["op"][:20] in first
    shot(page)


@pytest.mark.real
def test_search_by_fields_counts_and_steps_through(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports(V100))
    pressed(page, "/")
    page.keyboard.type("kind:kernel dur>1ms")
    page.wait_for_selector(".tv-count:not(:empty)")
    profile = real_profile(V100)
    assert isinstance(profile, stepscope.Profile)
    slices = profile.trace.slices
    count = int(((slices.kind == 9) & (slices.dur_ns > 1_000_000)).sum())
    assert page.locator(".tv-count").inner_text().startswith(f"{count} ")
    page.keyboard.press("Enter")
    page.wait_for_selector(".tv-panel-body tbody tr")
    first = page.locator(".tv-live").inner_text()
    pressed(page, "n")
    assert page.locator(".tv-live").inner_text() != first
    page.locator(".tv-search").fill("dur>soon")
    page.wait_for_selector(".tv-count:has-text('cannot be understood')")
    shot(page)


@pytest.mark.real
@pytest.mark.slow
def test_steps_flows_and_neighbours_by_keyboard(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports(MI300))
    whole = span(page)
    pressed(page, "x")
    assert span(page) != whole
    pressed(page, "0", "/")
    page.keyboard.type("kind:runtime_call name:hipLaunchKernel")
    page.keyboard.press("Enter")
    settled(page)
    assert ", runtime_call, " in page.locator(".tv-live").inner_text()
    pressed(page, "]")
    kernel = page.locator(".tv-live").inner_text()
    assert ", kernel, " in kernel
    pressed(page, "[")
    assert ", runtime_call, " in page.locator(".tv-live").inner_text()
    pressed(page, "]")
    assert page.locator(".tv-live").inner_text() == kernel
    pressed(page, "o")
    assert page.locator(".tv-live").inner_text().split(",")[0] == kernel.split(",")[0]
    assert "Launched inside (stack and source)" in panel(page)
    shot(page)


@pytest.mark.real
@pytest.mark.slow
def test_zoom_pan_fit_and_history(page: Page, reports: Reports) -> None:
    opened(page, reports(V100))
    whole = span(page)
    stage = page.locator(".tv-stage")
    stage.focus()
    page.keyboard.down("w")
    page.wait_for_timeout(400)
    page.keyboard.up("w")
    settled(page)
    zoomed = span(page)
    assert zoomed != whole
    for _ in range(20):  # On a slow machine one long zoom is several.
        page.keyboard.press("Backspace")
        settled(page)
        if span(page) == whole:
            break
    assert span(page) == whole
    box = stage.bounding_box()
    assert box
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    settled(page)
    assert span(page) != whole
    pressed(page, "0")
    everything = span(page)
    assert everything != whole, "the steps alone are seen first"
    pressed(page, "Backspace", "0")
    assert span(page) == everything
    pressed(page, "i", "f", "f")
    assert span(page).split()[1] in ("µs", "ms", "ns")


@pytest.mark.real
@pytest.mark.slow
def test_an_area_has_sums_and_a_flame_graph(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports(V100))
    box = page.locator(".tv-stage").bounding_box()
    assert box
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 250, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 373, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_selector(".tv-panel-body tbody tr")
    text = panel(page)
    assert "computing (kernels)" in text
    assert "ProfilerStep#" in text
    page.get_by_role("button", name="Flame graph").click()
    page.wait_for_selector(".tv-flame button")
    assert page.locator(".tv-flame button").count() > 5
    shot(page)


@pytest.mark.real
@pytest.mark.slow
def test_the_same_area_in_python_has_the_same_numbers(page: Page, reports: Reports) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, reports(V100))
    pressed(page, "i", "e")
    page.wait_for_selector("text=Copy JSON")
    page.get_by_role("button", name="Copy JSON").click()
    settled(page)
    found = json.loads(page.evaluate("navigator.clipboard.readText()"))
    profile = real_profile(V100)
    assert isinstance(profile, stepscope.Profile)
    region = profile.region(found["begin"], found["end"])
    rows = [row for row in region.to_dicts() if row["device"] is not None and row["name"] is not None]
    wanted = {row["name"]: row["self_ns"] for row in rows}
    assert {part["category"]: part["ns"] for part in found["devices"][0]["parts"]} == wanted


@pytest.mark.real
@pytest.mark.slow
def test_tracks_are_pinned_hidden_and_found(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports(V100))
    head = page.locator(".tv-head", has_text="stream 14").first
    head.hover()
    head.get_by_role("button", name="Pin to the top: stream 14").click()
    assert "stream 14" in page.locator(".tv-heads-pinned").inner_text()
    head = page.locator(".tv-head", has_text="memory reserved").first
    head.hover()
    head.get_by_role("button", name="Hide: memory reserved").click()
    assert "memory reserved" not in page.locator(".tv-heads").inner_text()
    pressed(page, "Control+k")
    page.keyboard.type("show all tracks")
    page.keyboard.press("Enter")
    assert "memory reserved" in page.locator(".tv-heads").inner_text()
    pressed(page, "t")
    page.keyboard.type("stream 7")
    page.keyboard.press("Enter")
    assert page.locator(".tv-live").inner_text() == "stream 7"
    pressed(page, "?")
    assert "longest idle gap" in page.locator(".tv-dialog").inner_text()
    page.keyboard.press("Escape")
    shot(page)


@pytest.mark.real
@pytest.mark.slow
def test_a_finding_leads_to_its_slice_and_the_address_to_the_view(page: Page, reports: Reports, shot: Shot) -> None:
    address = reports(V100)
    page.goto(f"{address}#/overview")
    page.get_by_role("button", name="Show in trace").first.click()
    page.wait_for_selector(".tv-stage[data-frames]")
    settled(page)
    document = real_profile(V100).document()
    # The evidence of waiting for launches is a gap, which is what gets selected.
    evidence = document["findings"][0]["evidence"][0]
    assert page.locator(".tv-live").inner_text().startswith(f"host launching work, idle, {evidence['dur_ns']} ns, on ")
    tab(page, "Findings")
    assert document["findings"][0]["title"] in panel(page)
    shown = span(page)
    pressed(page, "d")
    settled(page)
    where = page.url
    page.goto("about:blank")
    page.goto(where)
    page.wait_for_selector(".tv-stage[data-frames]")
    settled(page)
    assert span(page) == shown
    shot(page)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
def test_themes_and_colours(page: Page, reports: Reports, theme: str, shot: Shot) -> None:
    opened(page, reports(MI300))
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    pixels = page.locator(".tv-pixels")
    for mode in ("op", "precision", "rank", "category"):
        page.wait_for_timeout(150)
        before = pixels.screenshot()
        page.get_by_label("Colour by").select_option(mode)
        deadline = time.monotonic() + 20
        while pixels.screenshot() == before and time.monotonic() < deadline:
            page.wait_for_timeout(50)
        assert pixels.screenshot() != before, f"by {mode} nothing has another colour"
    shot(page)


def test_hostile_names_stay_text(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports("hostile"))
    page.locator(".tv-search").fill("onerror")
    page.keyboard.press("Enter")
    page.wait_for_selector(".tv-panel-body tbody tr")
    tab(page, "Details")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".tv-root img, .tv-root script, .tv-root iframe, .tv-root svg").count() == 0
    assert "<img src=x onerror='window.hacked = 1'>" in panel(page)
    longest = "Math.max(0, ...[...document.querySelectorAll('.tv-panel-body *')].map((one) => one.textContent.length))"
    assert page.evaluate(longest) < 200_000
    shot(page)


@pytest.mark.slow
def test_a_profile_without_devices_says_so(page: Page, reports: Reports) -> None:
    opened(page, reports("example"))
    tab(page, "Gaps")
    assert "No device was recorded" in panel(page)
    pressed(page, "i")
    assert "No device was recorded" in page.locator(".tv-live").inner_text()


def test_without_a_worker_the_page_reads_the_trace_itself(page: Page, reports: Reports) -> None:
    page.add_init_script("window.Worker = class { constructor() { throw new Error('not allowed'); } }")
    opened(page, reports("example"))
    pressed(page, "x")
    assert page.locator(".tv-live").inner_text().startswith("step ")
