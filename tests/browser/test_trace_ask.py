"""Asking the trace: what a page answers is what ``stepscope query`` answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stepscope
from stepscope.units import format_ns
from stepscope.web.app import App
from stepscope.web.entries import Entry, Opened
from stepscope.web.server import PageServer
from tests.browser.trace_steps import opened, panel, pressed, settled, tab
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
    ask(served, "SELECT * FROM nonsense")
    served.wait_for_selector(".tv-answer [role=alert]")
    assert served.locator(".tv-answer tbody tr").count() == 0
    assert "relation 'nonsense' was not found" in panel(served)
    assert ask(served, "SELECT * FROM read_csv('/etc/passwd')") == []


@pytest.mark.slow
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


def test_what_a_query_found_is_a_counter_on_the_timeline(served: Page) -> None:
    ask(served, "SELECT start_ns, dur_ns FROM host WHERE dur_ns > 1000 ORDER BY dur_ns LIMIT 4000")
    served.get_by_role("button", name="dur_ns as a counter").click()
    pinned = served.locator(".tv-heads-pinned .tv-name")
    pinned.first.wait_for()
    assert pinned.all_inner_texts() == ["dur_ns (1)"]
    served.get_by_role("button", name="dur_ns as a counter").click()
    pinned.nth(1).wait_for()
    settled(served)
    assert pinned.all_inner_texts() == ["dur_ns (1)", "dur_ns (2)"]
    assert "counter" in (pinned.first.get_attribute("aria-label") or "")
    pixels = served.evaluate(
        """() => { const c = document.querySelector('.tv-stage canvas'), d = c.getContext('2d')
            .getImageData(0, 0, c.width, 40).data; const seen = new Set();
            for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
            return seen.size; }"""
    )
    assert pixels > 2  # background, line, area
    pressed(served, "Control+z")
    assert pinned.all_inner_texts() == ["dur_ns (1)"]


def area_of_first(page: Page) -> list[list[str]]:
    """Name, total and count of what the first track holds, by the table of the range."""
    pressed(page, "0")
    page.locator(".tv-heads-pinned .tv-head").first.hover()
    page.get_by_role("button", name="This one alone, again: all").first.click()
    pressed(page, "e")
    table = page.get_by_role("region", name="Slices in the range").or_(page.locator(".tv-panel-body table").last)
    rows: list[list[str]] = table.locator("tbody tr").evaluate_all(
        "(all) => all.map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    return plain([[row[1], row[5], row[6]] for row in rows])


def pinned(page: Page) -> list[str]:
    found: list[str] = page.locator(".tv-heads-pinned .tv-name").all_inner_texts()
    return found


def colours_of_first(page: Page) -> int:
    """How many colours the first track is drawn in."""
    found: int = page.evaluate(
        """() => { const c = document.querySelector('.tv-stage canvas');
            const height = document.querySelector('.tv-heads-pinned').offsetHeight * devicePixelRatio;
            const d = c.getContext('2d').getImageData(0, 0, c.width, height - 6).data; const seen = new Set();
            for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
            return seen.size; }"""
    )
    return found


@pytest.mark.slow
def test_what_sql_found_is_a_track_of_slices_in_the_saved_report_too(
    served: Page, browser: Browser, profile: stepscope.Profile, tmp_path: Path, shot: Shot
) -> None:
    sql = "SELECT start_ns, dur_ns, name FROM host WHERE name LIKE 'aten::%' AND dur_ns > 20000 ORDER BY start_ns"
    ask(served, f"{sql} LIMIT 300")
    served.get_by_role("button", name="Slices as a track").click()
    served.locator(".tv-heads-pinned .tv-name").first.wait_for()
    settled(served)
    assert [name.lstrip("▸▾ ") for name in pinned(served)] == [f"{sql} LIMIT 300"]
    assert colours_of_first(served) > 1
    shot(served)
    wanted = profile.query(
        f"SELECT name, SUM(dur_ns) AS total, COUNT(*) AS n FROM ({sql} LIMIT 300) GROUP BY name ORDER BY name"
    ).rows()
    found = area_of_first(served)
    assert sorted((name, count) for name, _, count in found) == [(name, str(n)) for name, _, n in wanted]
    assert {name: total for name, total, _ in found} == {
        name: plain([[format_ns(int(total))]])[0][0] for name, total, _ in wanted
    }
    served.get_by_role("button", name="Copy the link, save the report or a picture").click()
    with served.expect_download() as download:
        served.get_by_role("option", name="save the report").click()
    download.value.save_as(tmp_path / "saved.html")
    other = browser.new_page(viewport={"width": 1440, "height": 900})
    opened(other, (tmp_path / "saved.html").as_uri(), "")
    settled(other)
    assert pinned(other) == pinned(served)
    assert colours_of_first(other) > 1
    other.close()


@pytest.mark.slow
def test_what_a_search_found_is_a_track_made_kept_and_removed_with_the_keyboard(
    page: Page, reports: Callable[[str], str], shot: Shot
) -> None:
    opened(page, reports("example"))
    ask(page, "kind=host_op name=aten::addmm group by step")
    page.get_by_role("button", name="Slices as a track").focus()
    page.keyboard.press("Enter")
    page.locator(".tv-heads-pinned .tv-name").first.wait_for()
    settled(page)
    name = "kind=host_op name=aten::addmm group by step"
    assert pinned(page) == [name]
    assert colours_of_first(page) > 1
    assert "found, queries" in str(page.locator(".tv-heads-pinned .tv-name").first.get_attribute("aria-label"))
    count = next(row for row in ask(page, "name=aten::addmm kind=host_op") if row[0] == "aten::addmm")[1]
    assert [row[::2] for row in area_of_first(page)] == [["aten::addmm", count.replace(",", "")]]
    shot(page)
    page.wait_for_url(lambda url: "tracks=" in url)
    address = page.url
    opened(page, address, "")
    settled(page)
    assert pinned(page) == [name]
    # Chosen on its track by a click, a slice is told with its name.
    box = page.locator(".tv-stage").bounding_box()
    assert box is not None
    pressed(page, "0")
    for x in range(10, int(box["width"]), 4):
        page.mouse.click(box["x"] + x, box["y"] + 8)
        if "aten::addmm" in page.locator(".tv-live").inner_text():
            break
    else:
        pytest.fail("no slice of the track can be clicked")
    page.locator(".tv-heads-pinned .tv-name").focus()
    while page.evaluate("document.activeElement.getAttribute('aria-label')") != f"Remove: {name}":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    settled(page)
    assert pinned(page) == []
    assert not page.locator(".tv-group button", has_text="queries").count()
    page.wait_for_url(lambda url: "tracks=" not in url)


@pytest.mark.slow
def test_what_is_cut_off_of_an_answer_is_said_beside_it_and_in_the_counters_name(served: Page) -> None:
    ask(served, "SELECT a.start_ns, b.dur_ns AS other FROM host a CROSS JOIN host b LIMIT 6000")
    said = served.locator(".tv-answer [role=note]").inner_text()
    assert said == "Table, chart and timeline have the first 5,000 rows, not all 6,000."
    served.get_by_role("button", name="other as a counter").click()
    pinned = served.locator(".tv-heads-pinned .tv-name")
    pinned.first.wait_for()
    assert pinned.all_inner_texts() == ["other, first 5,000 rows (1)"]
    ask(served, SQL)
    served.wait_for_selector(".tv-answer:not(:has([role=note])) tbody")


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


def saved(page: Page) -> list[str]:
    found: list[str] = page.get_by_role("group", name="Saved queries").get_by_role("button").all_inner_texts()
    return found[::2]


@pytest.mark.slow
def test_a_query_is_saved_by_name_in_the_address(page: Page, reports: Callable[[str], str]) -> None:
    opened(page, reports("example"))
    rows = ask(page, "kind=host_op group by name")
    page.get_by_label("Name of the query").fill('by "name"')
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "queries=" in url)
    ask(page, "kind:kernel group by step")
    page.wait_for_url(lambda url: "step" in url)
    opened(page, page.url, "")
    tab(page, "Ask")
    assert saved(page) == ['by "name"']
    page.get_by_role("button", name='by "name"', exact=True).click()
    page.wait_for_function("(n) => document.querySelectorAll('.tv-answer tbody tr').length === n", arg=len(rows))
    assert page.get_by_label("Query", exact=True).input_value() == "kind=host_op group by name"
    page.get_by_role("button", name='Forget by "name"').click()
    assert saved(page) == []
    page.wait_for_url(lambda url: "queries=" not in url)


@pytest.mark.slow
def test_every_page_asks_with_the_same_panel(page: Page, reports: Callable[[str], str], shot: Shot) -> None:
    opened(page, reports("example"))
    rows = ask(page, "kind=host_op group by name")
    page.goto("about:blank")
    page.goto(f"{reports('example')}#/memory")
    page.get_by_role("heading", name="Memory", level=1).wait_for()
    page.keyboard.press("a")
    box = page.get_by_role("dialog", name="Ask the trace")
    box.get_by_label("Query", exact=True).fill("kind=host_op group by name")
    page.keyboard.press("Enter")
    box.locator("tbody tr").first.wait_for()
    found = box.locator("tbody tr").evaluate_all(
        "(all) => all.map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    assert found == rows
    shot(page)
    box.get_by_label("Name of the query").fill("ops of the host")
    box.get_by_role("button", name="Save the query").click()
    assert "queries=" in page.url
    box.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Ops").click()
    page.get_by_role("button", name="Ask").click()
    assert saved(page) == ["ops of the host"]
    box.get_by_role("button", name="ops of the host", exact=True).click()
    box.get_by_role("button", name="Show in the trace").click()
    page.wait_for_selector(".tv-answer tbody tr")
    assert "queries=" in page.url
    assert page.locator(".tv-search input, input.tv-search").first.input_value() == "kind=host_op"
    assert not page.locator(".top").get_by_role("button", name="Ask").is_visible()


@pytest.mark.slow
def test_pages_ask_the_server_in_sql(served: Page, profile: stepscope.Profile) -> None:
    served.get_by_role("link", name="Overview").click()
    served.get_by_role("button", name="Ask").click()
    box = served.get_by_role("dialog", name="Ask the trace")
    box.get_by_label("Query", exact=True).fill("SELECT COUNT(*) AS n FROM slices")
    served.keyboard.press("Enter")
    box.locator("tbody tr").first.wait_for()
    (row,) = box.locator("tbody tr").all_inner_texts()
    assert [row.replace("\N{NARROW NO-BREAK SPACE}", "").replace(",", "")] == [
        str(profile.query("SELECT COUNT(*) AS n FROM slices").item())
    ]
