"""A running job recorded from the served page."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stepscope.cli.view import captures_in, entries_of
from stepscope.remote.messages import XPLANE, ProfileRequest, encoded_response
from stepscope.web.app import App, Server
from tests.browser.test_report_served import watched
from tests.web.reports import EXAMPLE

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_job_is_recorded_and_its_profile_opens(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed (pip install stepscope[remote])")
    from tests.remote.peers import XSPACE, nothing_listens, serving

    let_go = threading.Event()

    def sends(request: ProfileRequest, _: Any) -> bytes:
        assert let_go.wait(30)
        return encoded_response(request, XPLANE, XSPACE)

    entries, folder = entries_of((str(EXAMPLE),)), tmp_path / "captures"
    with serving(sends) as address, Server(App(lambda: entries, captures=captures_in(folder))) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with watched(browser, server.url) as page:
            page.goto(server.url)
            page.get_by_role("button", name="Capture").click()
            page.get_by_label("seconds").fill("0.2")
            page.get_by_label("HOST:PORT").fill(nothing_listens())
            page.get_by_role("button", name="Record").click()
            page.wait_for_selector(".capture-said:has-text('nothing listens there')")
            page.get_by_label("HOST:PORT").fill(address)
            page.get_by_role("button", name="Record").click()
            page.wait_for_selector(f".capture-said:has-text('{address}')")
            let_go.set()
            page.wait_for_url(lambda url: url.endswith("#/overview?run=1"))
            page.wait_for_selector(".sentence")
            chosen = page.get_by_label("Profile").evaluate("(one) => one.selectedOptions[0].text")
            assert chosen.startswith("captured 20")
            assert chosen.endswith(".xplane.pb")
        server.shutdown()
    (path,) = tmp_path.rglob("*.xplane.pb")
    assert path.read_bytes() == XSPACE
    assert path.is_relative_to(folder)
