"""Asking the trace: what a page answers is what ``stepscope query`` answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import stepscope
from stepscope.web.app import App, Entry, Opened
from stepscope.web.server import PageServer
from tests.browser.trace_steps import opened, panel, settled, tab
from tests.web.reports import EXAMPLE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Shot = Callable[["Page"], None]
SQL = "SELECT name, COUNT(*) AS n, MAX(dur_ns) AS longest FROM host GROUP BY name ORDER BY n DESC, name LIMIT 20"


@pytest.fixture(scope="module")
def profile() -> stepscope.Profile:
    return stepscope.open(EXAMPLE)


@pytest.fixture
def served(browser: Browser, profile: stepscope.Profile) -> Iterator[Page]:
    entry = Entry("one.json", lambda: Opened(profile.run(), profile.arguments, query=profile.query))
    with PageServer(App(lambda: [entry])) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        page = context.new_page()
        opened(page, server.url)
        yield page
        context.close()
        server.shutdown()


def ask(page: Page, text: str) -> list[list[str]]:
    """The rows of an answer, as they are shown."""
    tab(page, "Ask")
    page.get_by_label("Query", exact=True).fill(text)
    page.keyboard.press("Enter")
    page.wait_for_selector(".tv-answer tbody tr, .tv-answer [role=alert]")
    found: list[list[str]] = page.locator(".tv-answer tbody tr").evaluate_all(
        "(all) => all.map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    return found


def plain(rows: list[list[str]]) -> list[list[str]]:
    return [[cell.replace("\N{NARROW NO-BREAK SPACE}", "").replace(",", "") for cell in row] for row in rows]


def test_sql_answers_what_query_answers(served: Page, profile: stepscope.Profile, shot: Shot) -> None:
    rows = plain(ask(served, SQL))
    wanted: list[Any] = profile.query(SQL).rows()
    assert [row[1:] for row in rows] == [[str(n), str(longest)] for _, n, longest in wanted]
    assert [row[0][:20] for row in rows] == [name.replace(",", "")[:20] for name, _, _ in wanted]
    served.get_by_role("button", name="Chart").click()
    assert served.locator(".tv-bars > div").count() == 15
    shot(served)
    assert ask(served, "SELECT * FROM nonsense") == []
    assert "relation 'nonsense' was not found" in panel(served)
    assert ask(served, "SELECT * FROM read_csv('/etc/passwd')") == []


def test_words_are_completed_and_what_is_found_is_seen_on_the_tracks(served: Page) -> None:
    tab(served, "Ask")
    box = served.get_by_label("Query", exact=True)
    box.fill("")
    box.press_sequentially("SELECT start_ns, dur_")
    served.keyboard.press("Tab")
    assert box.input_value() == "SELECT start_ns, dur_ns"
    box.press_sequentially(" FROM hos")
    served.keyboard.press("Tab")
    served.keyboard.press("Enter")
    served.wait_for_selector(".tv-answer tbody tr")
    served.get_by_role("button", name="Show on the tracks").click()
    settled(served)
    hit = "() => { const c = document.querySelector('.tv-over'), d = c.getContext('2d').getImageData(0, 1, c.width, 1)"
    count = served.evaluate(
        f"{hit}.data; let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] > 200 && d[i + 1] < 20; return n; }}"
    )
    assert count > 100


def test_a_saved_report_groups_as_sql_does(
    page: Page, reports: Callable[[str], str], profile: stepscope.Profile, shot: Shot
) -> None:
    opened(page, reports("example"))
    rows = plain(ask(page, "kind=host_op group by name"))
    wanted = profile.query(
        "SELECT name, COUNT(*) AS n, SUM(dur_ns) AS total FROM slices WHERE kind = 'host_op' GROUP BY name "
        "ORDER BY total DESC"
    ).rows()
    assert {(row[0], row[1]) for row in rows} == {(name, str(n)) for name, n, _ in wanted[: len(rows)]}
    shot(page)
    # The query stands in the address, and is asked again where that is opened.
    page.wait_for_url(lambda url: "ask=" in url)
    address = page.url
    opened(page, address, "")
    page.wait_for_selector(".tv-answer tbody tr")
    assert plain(page.locator(".tv-answer tbody tr").evaluate_all(
        "(all) => all.map((row) => [...row.cells].map((cell) => cell.innerText))")) == rows  # fmt: skip
    assert ask(page, "SELECT 1") == []
    assert "stepscope view" in panel(page)
