"""The server of ``stepscope view``: requests as bytes, through its own handler, with no socket between."""

from __future__ import annotations

import contextlib
import io
import re
import threading
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from stepscope import pipeline
from stepscope.errors import InputError, StepscopeError
from stepscope.remote.addresses import parsed
from stepscope.web.app import App, Guard
from stepscope.web.captures import Captures
from stepscope.web.entries import Entry, Opened
from stepscope.web.server import PageServer, _Handler
from tests.fuzz.mutations import NUMBERS, anyhow, tokens, tree
from tests.fuzz.seeds import kineto

_TOKEN = "TOKEN"
_BODY = b'{"address": "localhost:9012", "seconds": 2.5}'
_PATHS = (
    "", "index.html", "app.js", "worker.js", "app.css", "api/0/report", "api/0/pack", "api/0/file", "api/0/arguments",
    "api/0/arguments?ids=0,1,2", "api/1/report", "api/0.0/file", "api/capture", "api/comparison", "static/main.js",
)  # fmt: skip
_SEGMENTS = (
    "api", "0", "1", "2", "-1", "00", "999999", "9" * 5000, "²", "%D9%A2", "..", "%2e%2e", ".", "", "report", "pack",
    "file", "arguments", "0.1", "0." * 40 + "0", "capture", "cancel", "etc", "passwd", "%00", "%ff", "\\..", "TOKEN",
    "%2f", "%252e%252e", "app.js", "proc", "self", "environ", "?", "#", ";", "ids=1", "x" * 9000, "http://h/", "*",
)  # fmt: skip
_QUERIES = ("", "?", "?ids=", "?ids=0,1", "?ids=999999999999", "?ids=%00", "?ids=-1,²", "?ids=" + "1," * 500, "?a=b")
_HEADERS = (
    "Host: evil.example", "Host: localhost:1", "Host: ", "Host: [::1]:8", "Host: localhost:²",
    "Origin: http://localhost:1", "Origin: null", "Content-Length: -1", "Content-Length: 99999", "Content-Length: ²",
    "Content-Length: 5", "Host", "Content-Length: ", "Transfer-Encoding: chunked", "Expect: 100-continue",
    "Accept-Encoding: gzip", "Connection: close", "Content-Type: application/json", "Content-Type: text/plain",
    "X: " + "y" * 70_000, ": x", " folded", "Range: bytes=0-", "Upgrade: websocket", "Connection: keep-alive",
    "Content-Length: 45\r\nContent-Length: 3", "X-É: é",
)  # fmt: skip
_METHODS = ("GET", "HEAD", "POST", "PUT", "OPTIONS", "CONNECT", "TRACE", "get", "G" * 70_000, "", "\0", "GET\t")
_STATUSES = frozenset({100, 200, 400, 403, 404, 405, 413, 414, 415, 422, 431, 501, 505})
"""What a request may be answered; 501 and 505 are http.server's words for methods and versions that are none."""
_LOST = b"root:x:0"
"""What stands in a file that is none of the server's."""
_PAGE = b'id="served"'
"""What stands in the page that is the server's."""


def seeds() -> list[bytes]:
    """Requests for everything there is, and a capture."""
    reads = [_request("GET", path) for path in _PATHS[:10]]
    return [*reads, _request("HEAD", ""), _request("POST", "api/capture", _BODY)]


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    headers = ["Host: localhost:8", "Accept-Encoding: gzip"]
    if method == "POST":
        headers += ["Origin: http://localhost:8", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join((f"{method} /{_TOKEN}/{path} HTTP/1.1", *headers, "", "")).encode() + body


def request(random: Random, data: bytes, other: bytes) -> bytes:
    """Method, path, query, headers or body changed, the rest as it was."""
    head, blank, body = data.partition(b"\r\n\r\n")
    line, *headers = head.decode("latin-1").split("\r\n")
    words = line.split(" ")
    if not blank or len(words) != 3:
        return anyhow(random, data, other)
    match random.randrange(9):
        case 0:
            words[0] = random.choice(_METHODS)
        case 1:
            words[1] = f"/{_TOKEN}/{random.choice(_PATHS)}"
        case 2 | 3:
            parts = words[1].split("/")
            at = random.randrange(1, len(parts) + 1)
            parts[at : at + random.choice((0, 1, 1))] = [random.choice(_SEGMENTS)] * random.choice((1, 1, 3))
            words[1] = "/".join(parts)
        case 4:
            words[1] = words[1].partition("?")[0] + random.choice(_QUERIES)
        case 5:
            words[2] = random.choice(("HTTP/1.0", "HTTP/0.9", "HTTP/2", "HTTP/1.1", "HTTP/9.9", "HTTP/1.²", "x"))
        case 6:
            at = random.randrange(len(headers) + 1)
            headers[at : at + random.choice((0, 1))] = [random.choice(_HEADERS)] * random.choice((1, 1, 1, 2, 120))
        case 7 if body:
            body = random.choice((tree, tokens, anyhow))(random, body, _BODY)
            if random.random() < 0.8:
                headers = [h for h in headers if not h.startswith("Content-Length")] + [f"Content-Length: {len(body)}"]
        case _:
            headers.append(f"Content-Length: {random.choice(NUMBERS)}")
    return "\r\n".join((" ".join(words), *headers)).encode("utf-8", "surrogatepass") + blank + body


def answer(folder: Path, data: bytes, number: int) -> str:
    """A request as it would come through the network, and its answer, which tells of no other file and no traceback."""
    client, said = _Client(data), io.StringIO()
    with contextlib.redirect_stderr(said):
        _Handler(client, ("127.0.0.1", 5), _server(folder))
    reply = bytes(client.reply)
    assert not said.getvalue(), said.getvalue()
    assert b"Traceback" not in reply
    assert b"stepscope itself failed" not in reply, reply[-300:]
    assert _LOST not in reply
    if not reply:
        return "refused: no answer"
    status = re.match(rb"HTTP/1\.[01] (\d{3}) ", reply)
    assert _PAGE not in reply or _TOKEN.encode() in unquote_to_bytes(data), "answered without the token"
    if status is None:
        return "refused: in the oldest way"
    assert int(status[1]) in _STATUSES, reply[:100]
    kind = re.search(rb"(?i)content-type: ([a-z/-]+)", reply)
    return f"{'read' if status[1] == b'200' else 'refused'}: {status[1].decode()} {kind[1].decode() if kind else ''}"


class _Client:
    """What a handler takes for a connection."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.reply = bytearray()

    def makefile(self, mode: str, size: int) -> io.BytesIO:
        return io.BytesIO()

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def recv_into(self, buffer: Any) -> int:
        return self._data.readinto(buffer)

    def sendall(self, content: Any) -> None:
        self.reply += content


@lru_cache(1)
def _server(folder: Path) -> PageServer:
    """A server that listens nowhere, of a profile, of one that cannot be read, and with captures that all fail."""
    server: PageServer = PageServer.__new__(PageServer)
    server.server_address = ("127.0.0.1", 8)
    server.server_name, server.server_port = "127.0.0.1", 8
    server.setup_environ()
    path = folder / "profile"
    path.write_bytes(kineto()[0])
    entries = [Entry("one", lambda: _opened(path)), Entry("two", _unreadable)]
    guard = Guard(App(lambda: entries, captures=Captures(_record, parsed)))
    guard.token = _TOKEN
    server.set_app(guard)
    return server


def _opened(path: Path) -> Opened:
    profile = pipeline.open_profile(path)
    return Opened(profile.run(), profile.arguments)


def _unreadable() -> NoReturn:
    raise InputError("two.json: is not a profile; name another")


def _record(address: str, seconds: float, stop: threading.Event) -> NoReturn:
    raise StepscopeError(f"{address}: nothing listens there")
