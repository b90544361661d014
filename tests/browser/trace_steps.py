"""What tests do in the trace viewer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page


def opened(page: Page, address: str, place: str = "trace") -> None:
    """Open the viewer of a report anew, and wait for its first frame."""
    page.goto("about:blank")
    page.goto(f"{address}#/{place}" if place else address)
    page.wait_for_selector(".tv-stage[data-frames]")


def pressed(page: Page, *keys: str) -> None:
    """Press keys on the tracks."""
    page.locator(".tv-stage").focus()
    for key in keys:
        page.keyboard.press(key)
        settled(page)


def settled(page: Page) -> None:
    """Wait until nothing the page says has changed for a while: drawing and sums come from a worker."""
    before, quiet = "", 0
    for _ in range(100):
        page.wait_for_timeout(100)
        now = page.locator(".tv-root, .trace-host").first.inner_text()
        quiet, before = (quiet + 1 if now == before else 0), now
        if quiet == 3:
            return


def panel(page: Page) -> str:
    """What the panel below the tracks says."""
    return page.locator(".tv-panel-body").inner_text()


def tab(page: Page, name: str) -> None:
    """Open a tab of the panel."""
    page.get_by_role("tab", name=name, exact=True).click()
    settled(page)


def span(page: Page) -> str:
    """How much time is in sight."""
    return page.locator(".tv-range").inner_text()


def heads(page: Page) -> list[str]:
    """The tracks in sight of the layout, from the top."""
    found: list[str] = page.locator(".tv-heads-pinned .tv-name, .tv-heads-inner .tv-name").all_inner_texts()
    return found


def command(page: Page, text: str, answer: str | None = None) -> None:
    """Run a command of the palette, and answer what it asks."""
    pressed(page, "Control+k")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    if answer is not None:
        page.locator(".tv-dialog form input").fill(answer)
        page.keyboard.press("Enter")
    settled(page)


def copied(page: Page, button: str) -> Any:
    """What a button of the panel copies."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".tv-panel-body").get_by_role("button", name=button, exact=True).click()
    settled(page)
    text: str = page.evaluate("navigator.clipboard.readText()")
    return json.loads(text) if text.startswith("{") else text
