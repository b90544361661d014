"""The keyboard and small screens: the trace has the keys when one comes to it, and boxes keep theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser.trace_steps import opened, panel, settled, span, tab
from tests.web.reports import EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
SMALL = "simulated_masked_loss_before.json.gz"
assert (EXAMPLES / SMALL).exists()


def live(page: Page) -> str:
    return page.locator(".tv-live").inner_text()


def press(page: Page, *keys: str) -> None:
    """Press keys wherever the focus is."""
    for key in keys:
        page.keyboard.press(key)
    settled(page)


def test_the_trace_has_the_keys_when_one_comes_to_it(shared_page: Page, reports: Reports) -> None:
    page = shared_page
    opened(page, reports(SMALL))
    press(page, "i")
    assert ", idle, " in live(page)
    for key in ("g", "o"):
        page.keyboard.press(key)
    page.wait_for_selector("h1:has-text('Overview')")
    for key in ("g", "t"):
        page.keyboard.press(key)
    page.wait_for_selector(".tv-stage:focus")
    press(page, "/", "Escape", "x")
    assert "step" in live(page)


def test_backspace_leads_to_the_view_before_and_with_shift_to_the_one_after(
    shared_page: Page, reports: Reports
) -> None:
    page = shared_page
    opened(page, reports(SMALL))
    press(page, "i", "f", "f")
    gap = span(page)
    press(page, "0")
    whole = span(page)
    assert gap != whole
    for back, forward in (("Backspace", "Shift+Backspace"), ("Control+z", "Control+y"), ("h", "Shift+H")):
        press(page, back)
        assert span(page) == gap
        press(page, forward)
        assert span(page) == whole
    press(page, "Control+x", "Control+s")
    assert span(page) == whole, "keys with Control are the browser's, but for those that the list names"


def test_a_box_keeps_its_keys_and_closes(shared_page: Page, reports: Reports) -> None:
    page = shared_page
    opened(page, reports(SMALL))
    press(page, "i")
    before = live(page)
    page.get_by_role("button", name="?: Keys").click()
    press(page, "i")
    assert page.locator(".tv-dialog").is_visible()
    assert live(page) == before
    press(page, "Escape")
    assert page.locator(".tv-dialog").is_hidden()


def test_what_was_measured_takes_the_place_of_the_selection(shared_page: Page, reports: Reports) -> None:
    page = shared_page
    opened(page, reports(SMALL))
    press(page, "i")
    assert "Why the device was idle" in panel(page)
    ruler = page.locator(".tv-ruler").bounding_box()
    assert ruler
    page.mouse.move(ruler["x"] + 100, ruler["y"] + 5)
    page.mouse.down()
    page.mouse.move(ruler["x"] + 300, ruler["y"] + 5, steps=3)
    page.mouse.up()
    page.wait_for_selector(".tv-panel-body:has-text('measured')")
    assert "Why the device was idle" not in panel(page)


def test_on_a_phone_every_control_is_in_reach(shared_page: Page, reports: Reports) -> None:
    page = shared_page
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, reports(SMALL))
    outside = page.locator(".tv-bar > *").evaluate_all(
        "(all) => all.map((one) => [one.getBoundingClientRect(), one]).filter(([box]) => box.width && box.right > 391)"
        ".map(([, one]) => one.textContent || one.className)"
    )
    assert outside == []
    assert page.locator(".tv-filter").is_visible()
    tab(page, "Colours")
    assert "Idle time, by cause" in panel(page)
    page.set_viewport_size({"width": 1440, "height": 900})
