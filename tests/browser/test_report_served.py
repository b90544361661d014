"""The served pages in a browser: ``stepscope view``, TensorBoard's tab, and the frame of a notebook."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stepscope
from stepscope.cli.view import comparison_of, entries_of
from stepscope.web.app import App
from stepscope.web.entries import Entry, Opened
from stepscope.web.server import PageServer
from tests.web.reports import EXAMPLE, EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VERDICT = "the main thread waits for input data 90.3 % of each step"
SECONDS = 90


@contextmanager
def watched(browser: Browser, origin: str) -> Iterator[Page]:
    """A page that may ask ``origin`` alone, and must log no error."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(1000 * SECONDS)  # The server may compile the reader meanwhile, in the same process.
    wrong: list[str] = []
    context.route(lambda url: not url.startswith((origin, "blob:", "data:")), lambda route: route.abort())
    page = context.new_page()
    page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith(origin) else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert wrong == []


@contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process of this Python's environment, ended as Ctrl-C ends it."""
    environment = {**os.environ, "SSH_CONNECTION": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    words = [sys.executable, *map(str, command)]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@pytest.mark.slow
def test_view_serves_every_profile_and_ends_by_ctrl_c(browser: Browser) -> None:
    paths = [EXAMPLE, EXAMPLES / "cpu_input_fixed.json.gz"]
    with running("-m", "stepscope", "view", "--no-browser", *paths) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
        with watched(browser, url) as page:
            page.goto(url)
            assert VERDICT in page.locator(".sentence").inner_text()
            page.get_by_role("link", name="Compare").click()
            assert "faster" in page.locator("main").inner_text()
            page.get_by_role("link", name="Overview").click()
            page.get_by_label("Profile").select_option(index=1)
            page.wait_for_selector(".sentence:not(:has-text('90.3 %'))")
            page.wait_for_function("location.hash.includes('run=1')")
            page.goto(f"{url}#/trace")
            page.wait_for_selector(".trace-host canvas")
            assert len(page.workers) == 1
    assert process.returncode == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def plugins(address: str) -> dict[str, Any]:
    """TensorBoard's list of plugins, once it answers."""
    for _ in range(SECONDS):
        try:
            with urllib.request.urlopen(f"{address}data/plugins_listing", timeout=10) as reply:
                found: dict[str, Any] = json.load(reply)
                return found
        except (urllib.error.URLError, ConnectionError):
            time.sleep(1)
    raise AssertionError("TensorBoard does not answer")


@pytest.mark.slow
def test_a_real_tensorboard_shows_the_tab_behind_a_prefix(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (pip install tensorboard)")
    for name in ("a", "b"):
        run = tmp_path / "plugins" / "profile" / name
        run.mkdir(parents=True)
        (run / "host.pt.trace.json.gz").write_bytes(EXAMPLE.read_bytes())
    port = free_port()
    address = f"http://127.0.0.1:{port}/some/prefix/"
    options = ("--logdir", tmp_path, "--port", str(port), "--host", "127.0.0.1", "--path_prefix", "/some/prefix")
    with running("-m", "tensorboard.main", *options):
        listed = plugins(address)["stepscope"]
        assert listed["enabled"] is True
        assert listed["tab_name"] == "stepscope"
        with watched(browser, f"{address}data/plugin/stepscope/") as page:
            page.goto(f"{address}data/plugin/stepscope/index.html")
            assert VERDICT in page.locator(".sentence").inner_text()
            titles = page.get_by_label("Profile").locator("option").all_inner_texts()
            assert titles == [f"plugins/profile/{name}/host.pt.trace.json.gz" for name in ("a", "b")]
        page = browser.new_page()
        page.goto(f"{address}#stepscope")
        frame = page.frame_locator("iframe")
        assert VERDICT in frame.locator(".sentence").inner_text(timeout=30_000)
        frame.get_by_role("link", name="Trace").click()
        frame.locator(".trace-host canvas").first.wait_for()
        page.close()


def test_the_frame_of_a_notebook_works_without_an_address(browser: Browser, tmp_path: Path) -> None:
    page_ = tmp_path / "cell.html"
    frame_ = stepscope.open(EXAMPLE)._repr_html_()
    page_.write_text(f"<!doctype html><base href='/lab/prefix/'><body>{frame_}</body>", encoding="utf-8")
    with watched(browser, page_.parent.as_uri()) as page:
        page.goto(page_.as_uri())
        frame = page.frame_locator("iframe")
        assert VERDICT in frame.locator(".sentence").inner_text()
        frame.get_by_role("link", name="Ops", exact=True).click()
        frame.locator("h1:text-is('Ops')").wait_for()
        frame.get_by_label("Theme").select_option("dark")
        frame.get_by_role("link", name="Trace").click()
        frame.locator(".trace-host canvas").first.wait_for()
        assert page.evaluate("location.href") == page_.as_uri()


Reports = Callable[[str], str]


def test_the_trace_of_a_file_is_drawn_by_a_worker(page: Page, reports: Reports) -> None:
    page.goto(f"{reports('example')}#/trace")
    page.wait_for_selector(".trace-host canvas")
    assert len(page.workers) == 1
    assert page.workers[0].url.startswith("blob:")


@contextmanager
def serving(app: App) -> Iterator[str]:
    """The address of a server in this process."""
    with PageServer(app) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.url
        server.shutdown()


def test_a_profile_that_is_still_read_shows_how_far(browser: Browser) -> None:
    (own,) = entries_of((str(EXAMPLE),))
    go_on = threading.Event()

    def slow() -> Opened:
        entry.reading("reading", 30, 120)
        go_on.wait(SECONDS)
        return own.opened()

    entry = Entry("slow", slow)
    with serving(App(lambda: [entry])) as url, watched(browser, url) as page:
        page.goto(url)
        page.wait_for_selector(".loading:has-text('Reading the profile: reading')")
        assert page.evaluate("(({value, max}) => value / max)(document.querySelector('.loading progress'))") == 0.25
        go_on.set()
        page.wait_for_selector(".sentence")
        assert page.locator(".loading").count() == 0


def test_any_two_open_profiles_are_compared(browser: Browser) -> None:
    names = ("simulated_masked_loss_before", "simulated_masked_loss_after", "cpu_input_bound")
    entries = entries_of(tuple(str(EXAMPLES / f"{name}.json.gz") for name in names))
    app = App(lambda: entries, comparison=comparison_of)
    with serving(app) as url, watched(browser, url) as page:
        page.goto(f"{url}#/compare")
        page.get_by_role("button", name="Compare these").wait_for()
        assert "holds" not in page.locator("main").inner_text()
        page.get_by_role("button", name="Compare these").click()
        page.wait_for_selector(".compare .sentence")
        text = page.locator("main").inner_text()
        assert "faster" in text
        assert not re.search(r"\w+_\w+\.\d", text)  # No finding by its internal name.
        page.get_by_label("After", exact=True).and_(page.locator("select")).select_option(index=2)
        page.get_by_role("button", name="Compare these").click()
        page.wait_for_selector("main:has-text('cpu_input_bound')")
        page.wait_for_function("location.hash.includes('after=2')")


def test_view_answers_before_the_profile_is_read_and_ends_where_it_cannot_be(tmp_path: Path) -> None:
    (entry,) = entries_of((str(EXAMPLE),))
    assert entry._opened is None
    broken = tmp_path / "a.pt.trace.json"
    broken.write_text("{")
    with running("-m", "stepscope", "view", "--no-browser", broken) as process:
        out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "Traceback" not in out
