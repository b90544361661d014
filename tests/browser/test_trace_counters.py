"""Counters in the trace viewer: what their scale says, changes, a shared scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser.trace_steps import opened, settled

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

WITH_MEMORY = "kineto/h100_qwen05b.json.gz"


def scale(head: Locator) -> str:
    return head.locator(".tv-holds").inner_text()


@pytest.mark.real
def test_scales_of_counters(page: Page, reports: Callable[[str], str], shot: Callable[[Page], None]) -> None:
    opened(page, reports(WITH_MEMORY))
    for group in page.locator(".tv-group button").all():
        if "device" not in group.inner_text():
            group.click()  # its threads: the counters come into sight
    used, reserved = (page.locator(".tv-counter", has_text=text).first for text in ("memory in use", "memory reserved"))
    settled(page)
    plain = scale(used)
    assert plain.startswith("to ")
    assert plain != scale(reserved)

    def press(head: Locator, title: str) -> None:
        head.hover()
        head.get_by_title(title).click()
        settled(page)

    press(used, "Change from sample to sample")
    assert scale(used).startswith("Δ ")
    press(used, "Change per second")
    assert scale(used).endswith("/s")
    press(used, "Change per second")
    assert scale(used) == plain
    press(used, "Logarithmic scale")
    assert scale(used) == f"log {plain}"
    press(used, "Logarithmic scale")
    page.locator(".tv-stage").focus()
    page.keyboard.press("Control+k")
    page.get_by_label("Commands").last.fill("one scale")
    page.keyboard.press("Enter")
    settled(page)
    shot(page)
    assert scale(used) == scale(reserved)
