"""A running job recorded from the served page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stepscope.cli.view import captures_in, entries_of
from stepscope.remote.messages import XPLANE, ProfileRequest, encoded_response
from stepscope.web.app import App
from stepscope.web.server import PageServer
from stepscope.wire import field
from tests.browser.test_report_served import SECONDS, watched
from tests.web.reports import EXAMPLE

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route


@contextmanager
def form(browser: Browser, folder: Path, opening: Callable[[Page], None] = lambda page: None) -> Iterator[Page]:
    """The open form of a page that keeps captures below a folder."""
    pytest.importorskip("grpc", reason="grpcio is not installed (pip install grpcio)")
    entries = entries_of((str(EXAMPLE),))
    with PageServer(App(lambda: entries, captures=captures_in(folder))) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with watched(browser, server.url) as page:
            page.goto(server.url)
            opening(page)
            page.get_by_role("button", name="Capture").click()
            page.get_by_label("seconds").fill("0.2")
            yield page
        server.shutdown()


def record(page: Page, address: str, said: str) -> None:
    """Ask for a capture by keyboard, and wait until the page says so."""
    page.get_by_label("HOST:PORT").fill(address)
    page.keyboard.press("Enter")
    page.wait_for_selector(f".capture-said .damage:has-text('{said}')")


def test_why_no_profile_came_is_one_sentence(browser: Browser, tmp_path: Path) -> None:
    def busy(_: ProfileRequest, context: Any) -> bytes:
        import grpc

        context.abort(grpc.StatusCode.ALREADY_EXISTS, "Another profiling session active.")
        raise AssertionError

    with form(browser, tmp_path) as page:
        from tests.remote.peers import nothing_listens, serving

        with nothing_listens() as address:
            record(page, address, "nothing listens there")
        with serving(lambda *_: field(7, 1)) as empty:
            record(page, empty, "its profile is empty")
        with serving(busy) as address:
            record(page, address, "another profile is being recorded there; try again when it is done")
        assert page.locator(".capture-said .damage").count() == 1


def test_record_works_while_the_dialog_still_asks_how_it_stands(browser: Browser, tmp_path: Path) -> None:
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    with form(browser, tmp_path, lambda page: page.route("**/api/capture", hold_the_first)) as page:
        from tests.remote.peers import nothing_listens

        with nothing_listens() as address:
            record(page, address, "nothing listens there")
        (asked,) = held
        assert asked.request.method == "GET"
        asked.continue_()
        page.wait_for_timeout(200)  # An answer that comes late changes nothing.
        assert page.locator(".capture-said .damage").count() == 1


def test_a_capture_is_cancelled_from_the_page(browser: Browser, tmp_path: Path) -> None:
    with form(browser, tmp_path / "captures") as page:
        from tests.remote.peers import serving

        asked, let_go = threading.Event(), threading.Event()

        def waits(request: ProfileRequest, context: Any) -> bytes:
            asked.set()
            if not context.add_callback(let_go.set):  # Called once the call has ended, on whichever side.
                let_go.set()
            assert let_go.wait(SECONDS)
            return encoded_response(request, XPLANE, b"")

        with serving(waits) as address:
            page.get_by_label("HOST:PORT").fill(address)
            page.get_by_role("button", name="Record").click()
            page.wait_for_selector(".capture-said progress")
            assert page.get_by_role("button", name="Record").is_disabled()
            assert asked.wait(SECONDS)  # A call that is cancelled before it is sent never reaches the job's server.
            page.get_by_role("button", name="Cancel").click()
            page.wait_for_selector(f".capture-said:has-text('{address}: cancelled before its profile came')")
            assert let_go.wait(SECONDS)  # The job's server knows.
            assert page.get_by_role("button", name="Record").is_enabled()
            assert page.get_by_role("button", name="Cancel").count() == 0
    assert not list(tmp_path.iterdir())


def test_a_job_is_recorded_and_its_profile_opens(browser: Browser, tmp_path: Path) -> None:
    let_go = threading.Event()
    with form(browser, tmp_path / "captures") as page:
        from tests.remote.peers import XSPACE, serving

        def sends(request: ProfileRequest, _: Any) -> bytes:
            assert let_go.wait(SECONDS)
            return encoded_response(request, XPLANE, XSPACE)

        with serving(sends) as address:
            page.get_by_label("HOST:PORT").fill(address)
            page.get_by_role("button", name="Record").click()
            page.wait_for_selector(f".capture-said:has-text('{address}')")
            let_go.set()
            page.wait_for_url(lambda url: url.endswith("#/overview?run=1"))
            page.wait_for_selector(".sentence")
            chosen = page.get_by_label("Profile").evaluate("(one) => one.selectedOptions[0].text")
            assert chosen.startswith("captured 20")
            assert chosen.endswith(".xplane.pb")
    (path,) = tmp_path.rglob("*.xplane.pb")
    assert path.read_bytes() == XSPACE
    assert path.is_relative_to(tmp_path / "captures")
