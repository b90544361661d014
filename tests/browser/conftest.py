"""Pages in Debian's Chromium through Playwright; without either these tests skip, saying which is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stepscope
from tests.kit.traces import real_trace
from tests.web.reports import EXAMPLE, EXAMPLES, hostile_profile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SHOTS = os.environ.get("STEPSCOPE_SHOTS")
"""Folder that keeps the screenshots."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for the session."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page without any network; a test fails where the page asked for something, or an error was logged."""
    yield from _watched(browser)


@pytest.fixture(scope="module")
def shared_page(browser: Browser) -> Iterator[Page]:
    """As ``page``, one for all tests of a module: what a browser keeps stays between them."""
    yield from _watched(browser)


def _watched(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    asked: list[str] = []
    wrong: list[str] = []

    def block(route: object) -> None:
        asked.append(route.request.url)  # type: ignore[attr-defined]
        route.abort()  # type: ignore[attr-defined]

    context.route(lambda url: not url.startswith(("file:", "blob:", "data:", "about:")), block)
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert (asked, wrong) == ([], [])


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The address of the HTML report of a profile: ``example``, ``hostile``, an example or a real trace by its path."""
    folder = tmp_path_factory.mktemp("reports")
    made: dict[str, str] = {}

    def report(name: str) -> str:
        if name not in made:
            path = folder / f"{len(made)}.html"
            path.write_text(stepscope.open(_source(name, folder)).html(), encoding="utf-8")
            made[name] = path.as_uri()
        return made[name]

    return report


def _source(name: str, folder: Path) -> Path:
    if name == "hostile":
        return hostile_profile(folder)
    path = EXAMPLE if name == "example" else EXAMPLES / name
    return path if path.exists() else real_trace(name)


@pytest.fixture
def shot(request: pytest.FixtureRequest) -> Callable[[Page], None]:
    """Keeps a screenshot where STEPSCOPE_SHOTS names a folder."""

    def keep(page: Page) -> None:
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{request.node.name.replace('/', '_')}.png")

    return keep
