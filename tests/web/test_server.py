"""The server of the pages with clients that vanish, wait, or come in numbers: it says nothing, and answers others."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.request import urlopen

import pytest

from stepscope.web.app import App
from stepscope.web.assemble import ShownRun
from stepscope.web.entries import Entry, Opened
from stepscope.web.limits import SERVER_CLIENTS
from stepscope.web.server import PageServer

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing sends a reset."""
_MUCH = bytes(64 << 20)
"""More than the sockets between two processes hold."""


def opened() -> Opened:
    run = ShownRun("one", {"schema": "stepscope.report/1"}, _MUCH)
    return Opened(run, lambda ids: [{"id": i} for i in ids])


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(App(lambda: [Entry("one", opened)])) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def connect(server: PageServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=30)


def request(server: PageServer, path: str) -> bytes:
    route = server.url.split("/", 3)[3] + path
    return f"GET /{route} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    client.close()


def settled(server: PageServer) -> None:
    """All places are free again: every thread has come to its end."""
    for _ in range(SERVER_CLIENTS):
        assert server._places.acquire(timeout=30)
    for _ in range(SERVER_CLIENTS):
        server._places.release()


@pytest.mark.parametrize(
    "sent", ["", "G", "GET / HTTP/1.0\r\n", "POST /x HTTP/1.0\r\nContent-Length: 9\r\n\r\n1", "\r\n\0"]
)
def test_a_reset_while_it_is_asked_is_no_matter(
    server: PageServer, sent: str, capfd: pytest.CaptureFixture[str]
) -> None:
    client = connect(server)
    client.sendall(sent.encode())
    reset(client)
    assert urlopen(server.url).status == 200
    settled(server)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("received", [0, 1 << 16])
def test_a_reset_while_it_answers_is_no_matter(
    server: PageServer, received: int, capfd: pytest.CaptureFixture[str]
) -> None:
    client = connect(server)
    client.sendall(request(server, "api/0/pack"))
    while received > 0:
        received -= len(client.recv(received))
    reset(client)
    assert urlopen(server.url).status == 200
    settled(server)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("path", [None, "api/0/pack"])
def test_clients_that_wait_lose_their_place(
    server: PageServer, path: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    server.asks_s = server.answers_s = 0.2
    with connect(server) as client:
        client.sendall(b"GET /" if path is None else request(server, path))
        while server._places._value == SERVER_CLIENTS:  # It has no place yet.
            time.sleep(0.001)
        settled(server)
        assert urlopen(f"{server.url}app.css").status == 200
    assert capfd.readouterr() == ("", "")


def test_a_client_that_sends_a_byte_at_a_time_gains_nothing(server: PageServer) -> None:
    server.asks_s = 0.5
    with connect(server) as client:
        client.settimeout(0.01)
        ended = False
        for _ in range(3000):
            try:
                client.sendall(b"x")
                ended = client.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
            if ended:
                break
        assert ended


def test_of_too_many_clients_the_last_are_told_to_come_again(server: PageServer) -> None:
    with ExitStack() as stack:
        for _ in range(SERVER_CLIENTS):
            stack.enter_context(connect(server))
        with connect(server) as late:
            assert late.recv(100).startswith(b"HTTP/1.0 503 ")
    settled(server)
    assert urlopen(server.url).status == 200
