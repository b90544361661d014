"""Captures from the served page: who may start one, how many, and what becomes of it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import stepscope
from stepscope.cli.view import captures_in
from stepscope.errors import StepscopeError
from stepscope.remote.addresses import parsed
from stepscope.web.app import App
from stepscope.web.captures import Captures
from stepscope.web.entries import Entry, Opened
from stepscope.web.server import PageServer
from tests.web.reports import EXAMPLE


def opened() -> Opened:
    profile = stepscope.open(EXAMPLE)
    return Opened(profile.run(), profile.arguments)


@dataclass
class Job:
    """Is recorded until it is let go, or given up."""

    asked: list[tuple[str, float]] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    failure: Exception | None = None

    def record(self, address: str, seconds: float, stop: threading.Event) -> Entry:
        self.asked.append((address, seconds))
        for _ in range(600):
            if self.let_go.wait(0.05):
                break
            if stop.is_set():
                raise StepscopeError(f"{address}: cancelled before its profile came")
        if self.failure is not None:
            raise self.failure
        return Entry("captured", opened)


@pytest.fixture
def job() -> Job:
    return Job()


@pytest.fixture
def server(job: Job) -> Iterator[PageServer]:
    app = App(lambda: [Entry("one", opened)], captures=Captures(job.record, parsed))
    with PageServer(app) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        job.let_go.set()
        server.shutdown()


def ask(
    server: PageServer, method: str, body: bytes = b"", path: str | None = None, **headers: str
) -> tuple[int, bytes]:
    host = f"127.0.0.1:{server.server_port}"
    connection = http.client.HTTPConnection(host, timeout=60)
    given = {"Origin": f"http://{host}", "Content-Type": "application/json", **headers}
    connection.request(method, urlsplit(server.url).path + "api/capture" if path is None else path, body, given)
    reply = connection.getresponse()
    said = reply.status, reply.read()
    connection.close()
    return said


def wanted(address: object = "localhost:9012", seconds: object = 2) -> bytes:
    return json.dumps({"address": address, "seconds": seconds}).encode()


def ended(server: PageServer) -> dict[str, Any]:
    for _ in range(600):
        state: dict[str, Any] = json.loads(ask(server, "GET")[1])
        if state["running"] is None:
            return state
        time.sleep(0.05)
    raise AssertionError("the capture does not end")


def test_a_capture_is_started_followed_and_served(server: PageServer, job: Job) -> None:
    status, body = ask(server, "POST", wanted())
    assert status == 200
    assert json.loads(body)["running"] == "localhost:9012"
    assert json.loads(body)["profiles"] == 1
    job.let_go.set()
    state = ended(server)
    assert (state["captured"], state["profiles"], state["failure"]) == (1, 2, [])
    assert job.asked == [("localhost:9012", 2)]
    status, body = ask(server, "GET", path=urlsplit(server.url).path + "api/1/report")
    assert (status, json.loads(body)["report"]["schema"]) == (200, "stepscope.report/1")


def test_one_at_a_time(server: PageServer, job: Job) -> None:
    assert ask(server, "POST", wanted())[0] == 200
    status, body = ask(server, "POST", wanted("localhost:9013"))
    assert (status, body) == (422, b"localhost:9012 is being recorded: wait until it has ended")
    job.let_go.set()
    ended(server)
    assert len(job.asked) == 1


def cancel(server: PageServer, method: str = "POST", **headers: str) -> tuple[int, bytes]:
    return ask(server, method, b"{}", urlsplit(server.url).path + "api/capture/cancel", **headers)


def test_a_capture_is_cancelled_and_another_may_follow(server: PageServer, job: Job) -> None:
    assert ask(server, "POST", wanted())[0] == 200
    status, body = cancel(server)
    assert (status, json.loads(body)["cancelled"]) == (200, True)
    state = ended(server)
    assert state["failure"] == ["localhost:9012: cancelled before its profile came"]
    assert (state["captured"], state["cancelled"]) == (0, False)
    assert cancel(server)[0] == 200  # Nothing runs: nothing happens.
    job.let_go.set()
    assert json.loads(ask(server, "POST", wanted("localhost:9013"))[1])["cancelled"] is False
    assert ended(server)["captured"] == 1


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 404),
        ("PUT", {}, 405),
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Content-Type": "text/plain"}, 415),
    ],
)
def test_nobody_else_cancels(server: PageServer, job: Job, method: str, headers: dict[str, str], status: int) -> None:
    ask(server, "POST", wanted())
    assert cancel(server, method, **headers)[0] == status
    assert json.loads(ask(server, "GET")[1])["cancelled"] is False
    job.let_go.set()
    assert ended(server)["captured"] == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_nothing_else_starts_one(server: PageServer, job: Job, method: str) -> None:
    ask(server, method, wanted())
    ask(server, method, path=urlsplit(server.url).path + "api/capture?address=localhost:9012&seconds=2")
    assert (job.asked, ended(server)["captured"]) == ([], 0)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://evil.example", "Host": "evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Length": "-1"}, 413),
        ({"Content-Length": "99999999"}, 413),
    ],
)
def test_pages_of_others_start_none(server: PageServer, job: Job, headers: dict[str, str], status: int) -> None:
    assert ask(server, "POST", wanted(), **headers)[0] == status
    assert job.asked == []


@pytest.mark.parametrize("path", ["/api/capture", "/wrong/api/capture", "//api/capture"])
def test_none_without_the_token(server: PageServer, job: Job, path: str) -> None:
    assert ask(server, "POST", wanted(), path)[0] == 403
    assert job.asked == []


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (wanted("localhost"), 422, "an address is HOST:PORT"),
        (wanted("../x:1"), 422, "an address is HOST:PORT"),
        (wanted(["localhost:1"]), 422, "a capture needs an address"),
        (wanted(seconds=True), 422, "a capture needs an address"),
        (wanted(seconds=0), 422, "lasts from 1 ms to 600 s"),
        (wanted(seconds=1e9), 422, "lasts from 1 ms to 600 s"),
        (wanted(seconds=float("nan")), 422, "lasts from 1 ms to 600 s"),
        (b"[]", 422, "a capture needs an address"),
        (b"{", 400, "no JSON"),
        (b"[" * 4000, 400, "no JSON"),
        (b"x" * 5000, 413, "no more than 4096 bytes"),
    ],
)
def test_what_makes_no_sense_is_said(server: PageServer, job: Job, body: bytes, status: int, sentence: str) -> None:
    found, said = ask(server, "POST", body)
    assert found == status
    assert sentence in said.decode()
    assert job.asked == []


@pytest.mark.parametrize(
    ("failure", "lines"),
    [
        (StepscopeError("node7:1: nothing listens there", "Is it running?"),
         ["node7:1: nothing listens there", "Is it running?"]),
        (KeyError("x"), ["stepscope itself failed (KeyError: 'x')"]),
    ],
)  # fmt: skip
def test_why_there_is_no_profile_is_said(server: PageServer, job: Job, failure: Exception, lines: list[str]) -> None:
    job.failure = failure
    job.let_go.set()
    assert ask(server, "POST", wanted())[0] == 200
    state = ended(server)
    assert (state["failure"], state["captured"], state["profiles"]) == (lines, 0, 1)
    assert ask(server, "POST", wanted())[0] == 200  # Another may be tried.


def test_without_grpc_the_form_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[[str], object] = lambda name: None  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", find)
    captures = captures_in(tmp_path / "captures")
    assert captures.missing is not None
    assert "pip install grpcio" in captures.missing
    with pytest.raises(StepscopeError, match="grpcio"):
        captures.start("localhost:9012", 1)
    assert not list(tmp_path.iterdir())


def test_where_pages_have_no_captures_there_is_nothing_to_start() -> None:
    with PageServer(App(lambda: [Entry("one", opened)])) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        assert ask(server, "POST", wanted())[0] == 405
        assert ask(server, "GET")[0] == 404
        server.shutdown()
