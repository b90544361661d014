"""The server of ``stepscope view``: on the loopback device, with a thread for each request.

Whoever connects takes a thread, token or not, so both number and time are bounded: a request has to arrive within
``SERVER_ASKS_S`` however it is sent, its answer has to be taken within ``SERVER_ANSWERS_S``, and of more than
``SERVER_CLIENTS`` at once the others are told to come again. Of clients that vanish nothing is said.
"""

from __future__ import annotations

import io
import socket
import socketserver
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from stepscope.web.app import App, Guard
from stepscope.web.limits import SERVER_ANSWERS_S, SERVER_ASKS_S, SERVER_CLIENTS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_FULL = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"


class PageServer(socketserver.ThreadingMixIn, WSGIServer):
    """Answers on the loopback device; a thread per request."""

    daemon_threads = True
    asks_s = SERVER_ASKS_S
    answers_s = SERVER_ANSWERS_S

    def __init__(self, app: App, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._guard = Guard(app)
        self._places = threading.BoundedSemaphore(SERVER_CLIENTS)
        self.set_app(self._guard)

    @property
    def url(self) -> str:
        """Where the pages are, with the token."""
        return f"http://127.0.0.1:{self.server_port}/{self._guard.token}/"

    def server_bind(self) -> None:
        """Bind without asking the network for this machine's name, which can take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a client a thread, where there is one left."""
        if self._places.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
                return
            except RuntimeError:  # No thread can be started.
                self._places.release()
        with suppress(OSError):
            request.setblocking(False)
            request.send(_FULL)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The life of that thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


class _Handler(WSGIRequestHandler):
    server: PageServer

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Request(self.connection, self.server.asks_s))
        self.wfile = _Reply(self.connection, self.server.answers_s)

    def handle(self) -> None:
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal is the reader's."""


class _Request(io.RawIOBase):
    """What a client sends, within a time from its connection: one that sends a byte at a time gains nothing."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._until = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._connection.settimeout(_left(self._until))
        return self._connection.recv_into(buffer)


class _Reply(io.BufferedIOBase):
    """What a client is sent, within a time from the first of it."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._seconds = connection, seconds
        self._until = 0.0

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer) -> int:
        self._until = self._until or time.monotonic() + self._seconds
        try:
            self._connection.settimeout(_left(self._until))
            self._connection.sendall(content)  # The time is that of the whole, not of each packet.
        except TimeoutError as error:
            raise ConnectionAbortedError from error  # As one that has gone: no more is tried.
        return memoryview(content).nbytes


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
