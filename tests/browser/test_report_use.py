"""Tables, charts and the keyboard of the report's pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import stepscope
from tests.web.reports import EXAMPLE

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]


@pytest.fixture
def ops(page: Page, reports: Reports) -> Page:
    """The Ops page of the example."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{reports('example')}#/ops")
    page.wait_for_selector("main .page")
    return page


def wait_for_hash(page: Page, part: str) -> None:
    """Wait until the address says so: the browser tells of it a little later than the page acts."""
    page.wait_for_function(f"location.hash.includes('{part}')")


BY_TYPE = "section:has(h2:text-is('Ops by type'))"


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"{BY_TYPE} tbody td:nth-child({number})").all_inner_texts()


def test_a_table_sorts_by_any_column_and_tells_so(ops: Page) -> None:
    count = ops.locator(f"{BY_TYPE} th", has_text="count")
    position = 1 + ops.locator(f"{BY_TYPE} th").all_inner_texts().index("count")
    count.get_by_role("button").click()
    down = [int(text.replace(",", "")) for text in column(ops, position)]
    assert down == sorted(down, reverse=True)
    assert count.get_attribute("aria-sort") == "descending"
    count.get_by_role("button").press("Enter")
    assert [int(text.replace(",", "")) for text in column(ops, position)] == down[::-1]
    assert count.get_attribute("aria-sort") == "ascending"


def test_a_table_filters_by_words_of_any_column(ops: Page) -> None:
    total = len(column(ops, 1))
    ops.locator(f"{BY_TYPE} input").fill("AT dataloader")
    assert ops.locator(f"{BY_TYPE} [role=status]").inner_text() == f"{len(column(ops, 1))} of {total} rows"
    assert all("dataloader" in text.lower() for text in column(ops, 1))


def test_a_table_is_copied_as_csv_with_unrounded_values(ops: Page) -> None:
    ops.locator(f"{BY_TYPE} button", has_text="Copy CSV").click()
    ops.wait_for_selector("text=Copied")
    found = list(csv.DictReader(io.StringIO(ops.evaluate("navigator.clipboard.readText()"))))
    uses = stepscope.open(EXAMPLE).document()["analyses"]["ops"]["by_type"]
    assert [(row["op"], int(row["total (ns)"])) for row in found] == [(use["op"], use["total_ns"]) for use in uses]


def test_ops_are_filtered_by_where_they_ran(ops: Page) -> None:
    ops.get_by_label("Where ops ran").select_option("host")
    wait_for_hash(ops, "side=host")
    position = 1 + ops.locator(f"{BY_TYPE} th").all_inner_texts().index("side")
    assert set(column(ops, position)) == {"host"}


def test_a_chart_has_its_values_on_hover_by_keyboard_and_as_a_table(page: Page, reports: Reports) -> None:
    page.goto(f"{reports('example')}#/overview")
    section = page.locator("section:has(h2:text-is('Each step'))")
    plot = section.locator(".plot")
    rows = [row for row in stepscope.open(EXAMPLE).document()["accounting"] if row["phase"] == "step"]
    plot.hover(position={"x": 5, "y": 60})
    assert page.locator(".tip").inner_text().startswith("Step ")
    plot.focus()
    page.keyboard.press("Home")
    first = page.locator(".sr[aria-live]").inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator(".sr[aria-live]").inner_text()
    assert first.startswith("Step ")
    assert first != second
    assert second in page.locator(".sr[aria-live]").inner_text()
    section.get_by_role("button", name="Table").click()
    assert section.locator("tbody tr").count() == len(rows)
    section.get_by_role("button", name="Table").click()
    section.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**#/trace?**")


def test_every_page_by_keyboard(page: Page, reports: Reports) -> None:
    page.goto(reports("example"))
    page.wait_for_selector("main .page")
    titles = ("Input", "Overview", "Ops", "Kernels", "Memory", "Ranks", "Compare")
    for key, title in zip("iopkmrc", titles, strict=True):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_selector(f"h1:text-is('{title}')")
        assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("g o")  # Letters go into the field.
    assert page.locator("h1").inner_text() == "Ops"
    page.locator("main").focus()
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_the_first_tab_skips_to_the_page(page: Page, reports: Reports) -> None:
    page.goto(reports("example"))
    page.wait_for_selector("main .page")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_strip_chooses_steps_by_mouse_and_keyboard(page: Page, reports: Reports) -> None:
    page.goto(reports("example"))
    strip = page.locator(".strip-area")
    box = strip.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 3 - 3, box["y"] + 8)
    page.mouse.up()
    wait_for_hash(page, "steps=3-4")
    strip.focus()
    page.keyboard.press("ArrowRight")
    wait_for_hash(page, "steps=4-5")
    page.keyboard.press("Shift+ArrowRight")
    wait_for_hash(page, "steps=4-6")
    page.keyboard.press("Escape")
    page.wait_for_function("!location.hash.includes('steps')")


def test_a_flame_graph_is_walked_by_keyboard(ops: Page) -> None:
    flame = ops.locator(".flame").first
    flame.locator("[tabindex='0']").focus()
    ops.keyboard.press("Enter")
    assert ops.locator(".sr[aria-live]").inner_text() != ""
    assert "per step" in (ops.evaluate("document.activeElement.getAttribute('aria-label')") or "")


def test_controls_have_names(page: Page, reports: Reports) -> None:
    page.goto(reports("example"))
    for name in ("overview", "input", "ops", "memory"):
        page.goto(f"{reports('example')}#/{name}")
        page.wait_for_selector("main .page")
        nameless = page.evaluate(
            """[...document.querySelectorAll('button, select, input, [tabindex="0"]')].filter((one) =>
               !(one.getAttribute('aria-label') || one.textContent.trim() || one.title)).map((one) => one.outerHTML)"""
        )
        assert nameless == []
