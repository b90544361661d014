"""A trace whose every name is an attack is shown as what it is: text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]


@pytest.mark.parametrize("name", ["overview", "input", "ops", "kernels", "memory", "ranks", "compare"])
def test_names_stay_text(page: Page, reports: Reports, name: str) -> None:
    page.goto(f"{reports('hostile')}#/{name}")
    page.wait_for_selector("main .page")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main iframe, main script, main a[href]:not([href^='#/'])").count() == 0
    longest = "Math.max(0, ...[...document.querySelectorAll('main *')].map((one) => one.textContent.length))"
    assert page.evaluate(longest) < 200_000


def test_what_is_hidden_in_names_is_written_out(page: Page, reports: Reports) -> None:
    page.goto(f"{reports('hostile')}#/ops")
    page.wait_for_selector("main .page")
    text = page.locator("main").inner_text()
    assert "<img src=x onerror='window.hacked = 1'>" in text
    assert "\\u202eesrever" in text
    assert "\u202e" not in text


def test_a_hostile_address_is_no_page(page: Page, reports: Reports) -> None:
    page.goto(f"{reports('hostile')}#/<img src=x onerror=window.hacked=1>?name=<script>&steps=9-1&run=77")
    page.wait_for_selector("main .page")
    assert page.locator("h1").inner_text() == "Overview"
    assert page.evaluate("window.hacked") is None
