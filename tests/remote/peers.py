"""Profiler servers that are not what they should be."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from stepscope.remote.messages import SERVICE, ProfileRequest

ROOT = Path(__file__).resolve().parents[2]
XSPACE = gzip.decompress((ROOT / "examples" / "profiles" / "jax_eight_devices.xplane.pb.gz").read_bytes())
KINETO_FILE = ROOT / "examples" / "profiles" / "cpu_input_bound.json.gz"

Answer = Callable[[ProfileRequest, Any], bytes]


@contextmanager
def serving(answer: Answer, *, method: str = "Profile", compression: grpc.Compression | None = None) -> Iterator[str]:
    """A gRPC server on loopback that answers so; its address."""

    def handle(message: bytes, context: Any) -> bytes:
        return answer(ProfileRequest.decode(message), context)

    handler = grpc.unary_unary_rpc_method_handler(handle)
    server = grpc.server(
        ThreadPoolExecutor(4),
        handlers=(grpc.method_handlers_generic_handler(SERVICE, {method: handler}),),
        options=(("grpc.max_send_message_length", -1),),
        compression=compression,
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@contextmanager
def mute() -> Iterator[str]:
    """Accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def web() -> Iterator[str]:
    """Answers as a web server does, such as TensorBoard itself."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    connection.recv(1024)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def nothing_listens() -> Iterator[str]:
    """An address that refuses connections: its port is taken, so that no other process can listen there meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"
