"""What a reader leaves in the trace: notes, layouts, rules; in the address, in the browser and in a saved report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stepscope
from stepscope.web.app import App
from stepscope.web.entries import Entry, Opened
from stepscope.web.server import PageServer
from tests.browser.trace_steps import command, heads, opened, panel, pressed, settled, span, tab
from tests.web.reports import EXAMPLE

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Shot = Callable[["Page"], None]


@pytest.fixture
def trace(shared_page: Page, reports: Callable[[str], str]) -> Page:
    """The example's trace in a browser that has kept nothing yet."""
    opened(shared_page, reports("example"))
    shared_page.evaluate("localStorage.clear()")
    opened(shared_page, reports("example"))
    return shared_page


def named(page: Page, text: str) -> None:
    pressed(page, "x", "Shift+M")
    page.get_by_label("Name of the note").last.fill(text)
    page.keyboard.press("Enter")
    settled(page)


def notes(page: Page) -> list[str]:
    tab(page, "Notes")
    found: list[str] = page.get_by_label("Name of the note").evaluate_all("(all) => all.map((one) => one.value)")
    return found


def test_a_named_note_survives_in_the_address_and_in_the_browser(
    trace: Page, reports: Callable[[str], str], shot: Shot
) -> None:
    named(trace, "slow <b>loader</b>")
    pressed(trace, "m")
    assert notes(trace) == ["slow <b>loader</b>"]
    assert "marked for now" in panel(trace)
    shot(trace)
    trace.wait_for_url(lambda url: "loader" in url)
    address = trace.url
    opened(trace, reports("example"))
    assert notes(trace) == ["slow <b>loader</b>"]
    assert "marked for now" not in panel(trace)
    trace.evaluate("localStorage.clear()")
    opened(trace, address, "")
    assert notes(trace) == ["slow <b>loader</b>"]
    trace.get_by_role("button", name="Delete").click()
    settled(trace)
    opened(trace, reports("example"))
    assert notes(trace) == []


def test_layouts_are_kept_by_name_and_stand_in_the_address(trace: Page, reports: Callable[[str], str]) -> None:
    before = heads(trace)
    command(trace, "hide tracks matching", "python")
    command(trace, "pin tracks matching", "steps")
    mine = heads(trace)
    assert mine != before
    command(trace, "save this layout as", "mine")
    trace.wait_for_url(lambda url: "layout=" in url)
    address = trace.url
    opened(trace, reports("example"))
    assert heads(trace) == before
    command(trace, "layout mine")
    assert heads(trace) == mine
    opened(trace, address, "")
    assert heads(trace) == mine
    command(trace, "forget the layout mine")
    assert trace.evaluate("localStorage['stepscope-trace-layouts']") == "{}"


def test_a_rule_holds_for_every_trace_that_is_opened(trace: Page, reports: Callable[[str], str]) -> None:
    before = heads(trace)
    command(trace, "always hide tracks matching", "[unclosed")
    assert "no regular expression" in trace.locator(".tv-live").inner_text()
    command(trace, "always hide tracks matching", "^.*steps")
    hidden = heads(trace)
    assert len(hidden) < len(before)
    opened(trace, reports("example"))
    assert heads(trace) == hidden
    command(trace, "forget the rule: hide")
    opened(trace, reports("example"))
    assert heads(trace) == before


def saved(page: Page, folder: Path) -> Path:
    page.get_by_role("button", name="Copy the link, save the report or a picture").click()
    with page.expect_download() as download:
        page.get_by_role("option", name="save the report").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def as_left(page: Page, browser: Browser, path: Path, before: tuple[str, list[str]]) -> None:
    """A saved report opens in a browser that knows nothing at the view it was saved at."""
    fresh = browser.new_context(viewport={"width": 1440, "height": 900})
    wrong: list[str] = []
    other = fresh.new_page()
    other.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened(other, path.as_uri(), "")
    settled(other)
    assert (span(other), heads(other)) == before
    assert notes(other) == ["look here"]
    tab(other, "Ask")
    assert other.get_by_role("button", name="by step", exact=True).is_visible()
    other.get_by_role("tab", name="Notes").click()
    again = saved(other, path.parent / "again")
    parts = [file.read_bytes().partition(b"</title>")[2] for file in (path, again)]
    assert parts[0] == parts[1]
    fresh.close()
    assert wrong == []


def arranged(page: Page) -> tuple[str, list[str]]:
    named(page, "look here")
    command(page, "hide tracks matching", "python")
    tab(page, "Ask")
    page.get_by_label("Name of the query").fill("by step")
    page.keyboard.press("Enter")
    return span(page), heads(page)


def test_a_report_is_saved_with_its_view(trace: Page, browser: Browser, tmp_path: Path) -> None:
    before = arranged(trace)
    as_left(trace, browser, saved(trace, tmp_path), before)


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    profile = stepscope.open(EXAMPLE)
    assert isinstance(profile, stepscope.Profile)
    entries = [Entry("one.json", lambda: Opened(profile.run(), profile.arguments, query=profile.query))] * 2
    with PageServer(App(lambda: entries)) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.url
        server.shutdown()


def test_a_served_report_is_saved_with_its_view(browser: Browser, served: str, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    opened(page, served, "trace?run=1")
    before = arranged(page)
    as_left(page, browser, saved(page, tmp_path), before)
    page.close()
