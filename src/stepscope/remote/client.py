"""Asking profiler servers for profiles, all at once, and their answers in words.

Peers are untrusted: every wait has an end, an answer has a greatest size, and none is decompressed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.remote.addresses import CONNECT_S, Address, check_listening
from stepscope.remote.messages import (
    SERVICE,
    ProfileRequest,
    ProfileResponse,
    encoded_monitor_request,
    monitor_text,
)
from stepscope.report.names import visible

INSTALL = "capturing from a server needs grpcio, which is not installed: pip install grpcio"
MONITOR_S = 5.0
_LOOK_S = 0.2
"""How often a waiting call looks whether it is still wanted."""
_LONGEST_WORDS = 300


@dataclass(frozen=True)
class ServerAnswer:
    """What one server answered: a response, or why there is none."""

    address: Address
    response: ProfileResponse = field(default_factory=ProfileResponse)
    failure: StepscopeError | None = None


def profile(
    addresses: Sequence[Address],
    request: ProfileRequest,
    *,
    timeout_s: float,
    max_bytes: int,
    token: str | None = None,
    stop: threading.Event | None = None,
) -> Iterator[ServerAnswer]:
    """Ask all servers at once; an answer for each, in order, after ``timeout_s`` at the latest.

    Nothing is asked of any before all were connected to, so that they record at the same time; those that could not
    be do not keep the others from recording. Calls end early once ``stop`` is set. Raises StepscopeError where gRPC is
    not installed.
    """
    grpc = imported_grpc()
    failures = dict(zip(addresses, _gathered(addresses), strict=True))
    with ExitStack() as stack:
        channels = {
            address: stack.enter_context(grpc.insecure_channel(str(address), options=_channel_options(max_bytes)))
            for address in addresses
            if failures[address] is None
        }
        failures |= _connected(grpc, channels)
        calls = {
            address: channel.unary_unary(f"/{SERVICE}/Profile").future(
                replace(request, host_name=address.file_stem).encode(), timeout=timeout_s, metadata=_metadata(token)
            )
            for address, channel in channels.items()
            if failures[address] is None
        }
        for call in calls.values():
            stack.callback(call.cancel)
        for address in addresses:
            if address not in calls:
                yield ServerAnswer(address, failure=failures[address])
                continue
            try:
                # Taken out, so that the bytes of one answer are gone before the next is looked at.
                yield ServerAnswer(address, ProfileResponse.decode(_result(grpc, calls.pop(address), stop)))
            except grpc.FutureCancelledError:
                yield ServerAnswer(address, failure=StepscopeError(f"{address}: cancelled before its profile came"))
            except grpc.RpcError as error:
                yield ServerAnswer(address, failure=_in_words(grpc, address, error, timeout_s, max_bytes))


def monitor(address: Address, token: str | None = None) -> str | None:
    """What a server says of itself; None where it says nothing, as TensorFlow's and JAX's do.

    Raises StepscopeError where it cannot be asked.
    """
    grpc = imported_grpc()
    check_listening(address)
    with grpc.insecure_channel(str(address), options=_channel_options(1 << 16)) as channel:
        try:
            call = channel.unary_unary(f"/{SERVICE}/Monitor")
            return monitor_text(call(encoded_monitor_request(1), timeout=MONITOR_S, metadata=_metadata(token)))
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise _in_words(grpc, address, error, MONITOR_S, 0) from None


def imported_grpc() -> Any:
    """The package ``grpc``. Raises StepscopeError, with what to install, where there is none."""
    try:
        import grpc
    except ImportError:
        raise StepscopeError(INSTALL) from None
    return grpc


def _result(grpc: Any, call: Any, stop: threading.Event | None) -> bytes:
    while stop is not None:
        if stop.is_set():
            call.cancel()
        with suppress(grpc.FutureTimeoutError):
            return bytes(call.result(timeout=_LOOK_S))
    return bytes(call.result())


def _channel_options(max_bytes: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", max_bytes),
        ("grpc.max_metadata_size", 1 << 14),
        # A message whose size is within bounds may become any size when it is decompressed.
        ("grpc.per_message_decompression", 0),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
    ]


def _metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    return () if token is None else (("authorization", f"Bearer {token}"),)


def _gathered(addresses: Sequence[Address]) -> list[StepscopeError | None]:
    """Why each cannot be connected to."""
    with ThreadPoolExecutor(min(len(addresses), 32), thread_name_prefix="stepscope-connect") as pool:
        return list(pool.map(_unreachable, addresses))


def _unreachable(address: Address) -> StepscopeError | None:
    try:
        check_listening(address)
    except StepscopeError as error:
        return error
    return None


def _connected(grpc: Any, channels: dict[Address, Any]) -> dict[Address, StepscopeError]:
    """Wait until every channel speaks gRPC; those that do not."""
    ends = time.monotonic() + CONNECT_S
    waiting = {address: grpc.channel_ready_future(channel) for address, channel in channels.items()}
    failures = {}
    for address, ready in waiting.items():
        with suppress(grpc.FutureTimeoutError):
            ready.result(timeout=max(ends - time.monotonic(), 0.1))
            continue
        ready.cancel()
        failures[address] = StepscopeError(
            f"{address}: something listens there that is no profiler server (it does not speak gRPC); name the port "
            "that the job gave to start_server"
        )
    return failures


def _in_words(grpc: Any, address: Address, error: Any, timeout_s: float, max_bytes: int) -> StepscopeError:
    """A failed call as a sentence."""
    code, said = error.code(), visible(" ".join(str(error.details() or "").split())[:_LONGEST_WORDS])
    status = grpc.StatusCode
    if code is status.DEADLINE_EXCEEDED:
        text = f"no profile within {timeout_s:g} s; --timeout gives it longer"
    elif code is status.RESOURCE_EXHAUSTED and "larger than max" in said:
        text = f"the profile is larger than {max_bytes} bytes; record less of it, or raise --max-bytes"
    elif code is status.UNAUTHENTICATED:
        text = "the server wants a token: --token, or STEPSCOPE_TOKEN"
    elif code is status.UNIMPLEMENTED:
        text = "the server there offers gRPC, but no profiles; name the port that the job gave to start_server"
    elif code is status.UNAVAILABLE:
        text = f"the connection broke before a profile came: the job may have ended ({said})"
    elif "another profiling session" in said.lower():
        text = "another profile is being recorded there; try again when it is done"
    else:
        text = f"the server refused: {said or code.name}"
    return StepscopeError(f"{address}: {text}")
