"""The served pages: who may read them, what can be read, and what they say of themselves."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import stepscope
from stepscope.errors import InputError
from stepscope.web.app import App
from stepscope.web.entries import Entry, Opened
from stepscope.web.server import PageServer
from tests.web.reports import EXAMPLE

Reply = tuple[int, http.client.HTTPMessage, bytes]


def opened() -> Opened:
    profile = stepscope.open(EXAMPLE)
    return Opened(profile.run(), profile.arguments, query=profile.query)


def unreadable() -> Opened:
    raise InputError("two.json: is not a profile; name another")


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    entries = [Entry("one.json", opened), Entry("<b>two.json", unreadable)]
    with PageServer(App(lambda: entries)) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


def ask(server: PageServer, path: str, method: str = "GET", absolute: bool = False, **headers: str) -> Reply:
    """Send one request, by default below the address with the token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(method, path if absolute else urlsplit(server.url).path + path, skip_host=True)
    for name, value in {"Host": f"127.0.0.1:{server.server_port}", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, reply.headers, body


def test_the_page_and_its_parts(server: PageServer) -> None:
    status, headers, body = ask(server, "")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert b'<script src="app.js">' in body
    assert b"<b>two" not in body
    kinds = {path: ask(server, path)[1]["Content-Type"].split(";")[0] for path in ("app.js", "worker.js", "app.css")}
    assert kinds == {"app.js": "text/javascript", "worker.js": "text/javascript", "app.css": "text/css"}


def test_headers_keep_the_page_to_itself(server: PageServer) -> None:
    _, headers, _ = ask(server, "")
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers.get("Access-Control-Allow-Origin") is None


def test_the_data(server: PageServer) -> None:
    status, _, body = ask(server, "api/0/report")
    assert status == 200
    assert json.loads(body)["report"]["schema"] == "stepscope.report/1"
    _, headers, packed = ask(server, "api/0/report", **{"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed) == body
    assert ask(server, "api/0/pack")[2] == opened().run.pack
    assert ask(server, "api/0/report", "HEAD")[2] == b""


def test_arguments_of_slices(server: PageServer) -> None:
    found: list[dict[str, Any]] = json.loads(ask(server, "api/0/arguments?ids=0,1")[2])
    assert found == json.loads(json.dumps(stepscope.open(EXAMPLE).arguments([0, 1]), default=str))
    assert ask(server, "api/0/arguments?ids=x")[2] == b"[]"
    for ids in ("99999999", "999999999999"):
        status, _, body = ask(server, f"api/0/arguments?ids={ids}")
        assert status == 422
        assert b"no such slice" in body
    assert ask(server, "api/0/arguments?ids=" + "9" * 5_000)[2] == b"[]"


def test_a_profile_that_cannot_be_read_says_why(server: PageServer) -> None:
    status, headers, body = ask(server, "api/1/report")
    assert (status, body) == (422, b"two.json: is not a profile; name another")
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "static/main.js",
        "api/2/report",
        "api/-1/report",
        "api/%D9%A2/report",
        "api/0/../1/report",
        "api/0/path",
        "api/0",
        "pages/overview.js",
    ],
)
def test_nothing_else_can_be_read(server: PageServer, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading(server: PageServer, method: str) -> None:
    assert ask(server, "api/0/report", method)[0] == 405


@pytest.mark.parametrize("path", ["/", "/wrong/", "/app.js", "/%00/", "//", "/wrong/api/0/report"])
def test_nothing_without_the_token(server: PageServer, path: str) -> None:
    assert ask(server, path, absolute=True)[0] == 403


def test_the_token_is_the_whole_token(server: PageServer) -> None:
    path = urlsplit(server.url).path
    assert ask(server, path[:-2] + "/", absolute=True)[0] == 403
    assert ask(server, path.rstrip("/"), absolute=True)[0] == 403
    assert len(path) > 30


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.:x"])
def test_a_name_that_was_made_to_lead_here_is_refused(server: PageServer, host: str) -> None:
    assert ask(server, "", Host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "127.0.0.1:1", "[::1]:8000", "[::1]"])
def test_tunnels_may_have_another_port(server: PageServer, host: str) -> None:
    assert ask(server, "", Host=host)[0] == 200


def test_it_listens_on_the_loopback_device_alone(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_what_failed_is_tried_again_and_what_was_read_is_kept() -> None:
    tries: list[int] = []

    def flaky() -> Opened:
        tries.append(1)
        if len(tries) == 1:
            raise InputError("not yet")
        return opened()

    entry = Entry("one", flaky)
    with pytest.raises(InputError):
        entry.opened()
    assert entry.opened() is entry.opened()
    assert len(tries) == 2


def test_queries_are_answered_within_the_road_of_queries(server: PageServer) -> None:
    sql = "SELECT name, dur_ns FROM steps_of_nobody"
    status, _, body = ask(server, f"api/0/query?sql={quote(sql)}")
    assert status == 422
    assert b"relation 'steps_of_nobody' was not found" in body
    status, _, body = ask(server, f"api/0/query?sql={quote('SELECT index, dur_ns FROM steps ORDER BY index')}")
    found = json.loads(body)
    assert status == 200
    assert found["columns"] == [{"name": "index", "unit": None}, {"name": "dur_ns", "unit": "ns"}]
    assert found["rows"] == [list(row) for row in stepscope.open(EXAMPLE).steps.select("index", "dur_ns").iter_rows()]
    refused = quote("SELECT * FROM read_csv('/etc/passwd')")
    assert ask(server, f"api/0/query?sql={refused}")[0] == 422
    tables = json.loads(ask(server, "api/0/tables")[2])
    assert {"slices", "ops", "host", "steps", "accounting", "critical_path"} <= tables.keys()
    assert "dur_ns" in tables["slices"]
    assert ask(server, f"/api/0/query?sql={refused}", absolute=True)[0] == 403
