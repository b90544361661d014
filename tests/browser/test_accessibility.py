"""Rules of accessibility that a program can check (axe-core), on every page; keyboard, live text and motion."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepscope import cli
from stepscope.cli.view import captures_in, entries_of
from stepscope.web.app import App
from stepscope.web.server import PageServer
from tests.kit import example_ranks
from tests.kit.traces import real_trace
from tests.web.reports import EXAMPLE, EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Reports = Callable[[str], str]

AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("overview", "input", "ops", "kernels", "memory", "ranks", "compare", "trace")
H100, V100 = "kineto/h100_qwen05b.json.gz", "kineto/v100_resnet50_workers0.json.gz"
LOOKS = (("light", "standard"), ("dark", "standard"), ("contrast", "standard"), ("light", "blind"), ("dark", "blind"))
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_CHECK = """([rules, off]) => axe.run(document, {runOnly: rules, rules: Object.fromEntries(off.map((id) =>
    [id, {enabled: false}]))}).then((found) => found.violations.flatMap((one) => one.nodes.map((node) =>
    `${one.id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`)))"""
_SMALL = "target-size"
"""Rows of the trace are 16 pixels high, so that many are seen; each is reached by keys, and made higher by a tool."""


@pytest.fixture
def open_(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Opens a page in which axe may run: it is injected, which the report's policy would forbid."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (npm ci)")
    context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True, reduced_motion="reduce")

    def open_page(address: str) -> Page:
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("main .page")
        page.add_script_tag(path=AXE)
        return page

    yield open_page
    context.close()


def violations(page: Page, *off: str) -> list[str]:
    found: list[str] = page.evaluate(_CHECK, [_RULES, list(off)])
    return found


def look(page: Page, theme: str, palette: str) -> None:
    page.get_by_label("Theme").select_option(theme)
    page.get_by_label("Colours").select_option(palette)


def go(page: Page, name: str) -> None:
    page.evaluate("(name) => { location.hash = `#/${name}`; }", name)
    page.wait_for_selector(f"h1:text-is('{name.capitalize()}') + .page")
    if name == "trace":
        page.wait_for_selector(".trace-host canvas")


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("trace", [V100, H100], ids=["v100", "h100"])
def test_every_page_of_a_real_report(open_: Callable[[str], Page], reports: Reports, trace: str) -> None:
    real_trace(trace)
    page = open_(reports(trace))
    for name in PAGES:
        go(page, name)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for theme, palette in LOOKS if name != "trace" else LOOKS[:3]:
            look(page, theme, palette)
            assert violations(page, *([_SMALL] if name == "trace" else [])) == [], (name, theme, palette)


def test_charts_as_tables_the_list_of_keys_and_the_capture_form(open_: Callable[[str], Page], tmp_path: Path) -> None:
    entries = entries_of((str(EXAMPLE), str(EXAMPLES / "cpu_input_fixed.json.gz")))
    with PageServer(App(lambda: entries, captures=captures_in(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        page = open_(server.url)
        for button in page.get_by_role("button", name="Table", exact=True).all():
            button.click()
        assert violations(page) == []
        page.keyboard.press("?")
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        page.get_by_label("Query", exact=True).fill("SELECT name FROM slices LIMIT 3")
        page.keyboard.press("Enter")
        page.locator("dialog tbody tr").first.wait_for()
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Capture").click()
        assert violations(page) == []
        server.shutdown()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("ranks", ("diagnose", example_ranks.FOLDER)),
        ("compare", ("compare", EXAMPLE, EXAMPLES / "cpu_input_fixed.json.gz")),
    ],
)
def test_a_job_and_a_comparison(
    open_: Callable[[str], Page], tmp_path: Path, name: str, command: tuple[str | Path, ...]
) -> None:
    out = tmp_path / "report.html"
    assert cli.main([*map(str, command), "--format", "html", "-o", str(out)]) == 0
    page = open_(f"{out.as_uri()}#/{name}")
    for theme, palette in LOOKS[:2]:
        look(page, theme, palette)
        assert violations(page) == [], theme


def test_nothing_moves_where_motion_is_not_wanted(page: Page, reports: Reports) -> None:
    page.goto(reports("example"))
    page.wait_for_selector("main .page")
    moving = """[...document.querySelectorAll('*')].filter((one) => {
        const style = getComputedStyle(one);
        return style.animationName !== 'none' || style.transitionDuration !== '0s' || style.scrollBehavior === 'smooth';
    }).map((one) => one.outerHTML.slice(0, 100))"""
    for name in PAGES:
        go(page, name)
        assert page.evaluate(moving) == []


def test_every_control_of_a_page_is_reached_by_tab(page: Page, reports: Reports) -> None:
    page.goto(f"{reports('example')}#/overview")
    page.wait_for_selector("main .page")
    shown = """[...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
        .filter((one) => one.checkVisibility({visibilityProperty: true}))"""
    page.evaluate(f"{shown}.forEach((one, at) => {{ one.dataset.nth = at; }})")
    wanted = page.evaluate(f"{shown}.length")
    reached: list[str | None] = []
    while len(reached) < wanted + 5:
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.dataset.nth")
        if at is None or at in reached:
            break
        reached.append(at)
    assert sorted(map(int, filter(None, reached))) == list(range(wanted))


def test_the_keyboard_sorts_filters_and_copies_a_table_and_opens_a_finding(page: Page, reports: Reports) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{reports('example')}#/ops")
    page.wait_for_selector("main .page")
    page.keyboard.press("/")
    page.keyboard.type("conv")
    section = page.locator("section:has(input[type=search])").first
    assert " of " in section.locator("[role=status]").inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    section.get_by_role("button", name="Copied").wait_for()
    assert "conv" in page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Tab")  # What scrolls.
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert section.locator("th").first.get_attribute("aria-sort") in ("ascending", "descending")
    page.keyboard.press("Escape")
    page.locator("main").focus()
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.wait_for_selector("h1:text-is('Overview')")
    summary = page.locator(".finding summary").first
    before = summary.evaluate("(one) => one.parentElement.open")
    summary.focus()
    page.keyboard.press("Enter")
    assert summary.evaluate("(one) => one.parentElement.open") is not before
