"""The process beside a PyTorch job that serves TensorFlow's ProfilerService for it.

The job's end of the pipes is ``server``: a configuration comes first, then answers to what is asked of the job, a line
of JSON each; when they end, the job has. It asks the job for a window, converts its profile in a process of its own,
and sends it.
"""

from __future__ import annotations

import hmac
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from stepscope.errors import StepscopeError
from stepscope.remote.limits import CAPTURE_BYTES, CAPTURE_LONGEST_S
from stepscope.remote.messages import (
    KINETO,
    SERVICE,
    XPLANE,
    ProfileRequest,
    encoded_monitor_response,
    encoded_response,
    terminated_session,
)
from stepscope.units import format_ns

NICENESS = 5
"""The job's own work goes first."""
WORKERS = 8
"""Requests looked at at once: one is served, the others are refused."""
WITHOUT_DEADLINE_S = 600.0
SENDING_SHARE = 0.5
"""Of the time a client waits, this much is kept for converting and sending, and the window takes no more than the
rest."""
GRACE_S = 120.0
"""A request that is being answered when the job ends is answered for so long."""
ANSWER_S = 10.0
_OPTIONS = (
    ("grpc.max_receive_message_length", 1 << 16),
    ("grpc.max_send_message_length", -1),
    # A request whose size is within bounds may become any size when it is decompressed.
    ("grpc.per_message_decompression", 0),
    # Two processes could listen on one port, each getting some of the requests.
    ("grpc.so_reuseport", 0),
)


class PipedJob:
    """The job at the other end of the pipes."""

    def __init__(self, lines: Any, out: Any) -> None:
        self._lines, self._out = lines, out
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._next = 0

    def listen(self) -> None:
        """Hand answers to those who wait for them, until the job has ended."""
        for line in self._lines:
            answer = json.loads(line)
            with self._lock:
                box = self._waiting.pop(answer["id"], None)
            if box is not None:
                box.put(answer)
        with self._lock:
            for box in self._waiting.values():
                box.put({"declined": "the job ended"})

    def ask(self, what: str, within_s: float, **more: Any) -> dict[str, Any]:
        """Its answer; one that declines where it gives none in time."""
        box: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        with self._lock:
            self._next += 1
            number = self._next
            self._waiting[number] = box
            self._write({"do": what, "id": number, **more})
        try:
            return box.get(timeout=max(within_s, 0.1))
        except queue.Empty:
            self._waiting.pop(number, None)
            self.end()
            return {"declined": "the job did not answer in time"}

    def end(self) -> None:
        """Have the window that runs end."""
        self._write({"do": "end"})

    def _write(self, message: dict[str, Any]) -> None:
        with suppress(OSError, ValueError):
            self._out.write(json.dumps(message) + "\n")
            self._out.flush()


class Service:
    """The methods of ProfilerService, on raw messages."""

    def __init__(self, grpc: Any, job: PipedJob, token: str | None) -> None:
        self._status = grpc.StatusCode
        self._job = job
        self._token = token
        self._busy = threading.Lock()
        self._session = ""

    def profile(self, message: bytes, context: Any) -> bytes:
        """``Profile``: one at a time."""
        self._check(context)
        request = ProfileRequest.decode(message)
        if not request.duration_ms and not request.steps:  # Nothing, or garbage: no client means that.
            context.abort(self._status.INVALID_ARGUMENT, "the request asks for no time and for no steps")
        if not self._busy.acquire(blocking=False):
            context.abort(self._status.ALREADY_EXISTS, "Another profiling session active.")
        done = threading.Event()
        try:
            self._session = request.session_id
            # Also called once all is well, when the next window may be open already.
            context.add_callback(lambda: None if done.is_set() else self._job.end())
            with tempfile.TemporaryDirectory(prefix="stepscope-", ignore_cleanup_errors=True) as folder:
                return self._profile(request, context, folder)
        finally:
            done.set()
            self._session = ""
            self._busy.release()

    def terminate(self, message: bytes, context: Any) -> bytes:
        """``Terminate``: the window of a session, or of any where none is named, ends with what it has."""
        self._check(context)
        named = terminated_session(message)
        if self._busy.locked() and (named == self._session if named else not message):
            self._job.end()
        return b""

    def monitor(self, message: bytes, context: Any) -> bytes:
        """``Monitor``: how far the job is."""
        self._check(context)
        status = self._job.ask("status", ANSWER_S)
        if "declined" in status:
            context.abort(self._status.UNAVAILABLE, status["declined"])
        text = f"stepscope: PyTorch {status['torch'] or 'not imported yet'}, {status['steps']} steps"
        if status["step_ns"]:
            text += f" ({status['steps_from']}), {format_ns(status['step_ns'])} each"
        return encoded_monitor_response(text + ("; recording" if status["recording"] else ""))

    def _check(self, context: Any) -> None:
        told = dict(context.invocation_metadata()).get("authorization", "")
        given = told if isinstance(told, str) else ""
        if self._token is not None and not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            context.abort(self._status.UNAUTHENTICATED, "this server wants a token")

    def _profile(self, request: ProfileRequest, context: Any, folder: str) -> bytes:
        ends = time.monotonic() + min(context.time_remaining() or WITHOUT_DEADLINE_S, CAPTURE_LONGEST_S)
        self._wait(request, context, ends)
        bound_s = max((ends - time.monotonic()) * (1 - SENDING_SHARE), request.duration_ms / 1e3)
        asked = {
            "folder": folder, "bound_s": bound_s, "duration_s": request.duration_ms / 1e3, "steps": request.steps,
            "stacks": request.stacks, "shapes": request.shapes, "memory": request.memory,
        }  # fmt: skip
        answer = self._job.ask("capture", ends - time.monotonic(), asked=asked)
        if "declined" in answer:
            active = "another profiling session" in answer["declined"]
            context.abort(
                self._status.ALREADY_EXISTS if active else self._status.FAILED_PRECONDITION, answer["declined"]
            )
        try:
            form, path = _in_form(Path(answer["path"]), request, ends - time.monotonic())
        except StepscopeError as error:
            context.abort(self._status.INTERNAL, str(error))
        if path.stat().st_size > CAPTURE_BYTES:
            context.abort(self._status.RESOURCE_EXHAUSTED, "the profile is too large to be sent: record less")
        return encoded_response(request, form, path.read_bytes())

    def _wait(self, request: ProfileRequest, context: Any, ends: float) -> None:
        """Until the time at which all hosts are to start."""
        ahead_s = request.starts_ns / 1e9 - time.time() if request.starts_ns else 0.0
        if time.monotonic() + ahead_s > ends:
            context.abort(self._status.INVALID_ARGUMENT, f"the start is {ahead_s:.0f} s ahead: do the clocks agree?")
        if ahead_s > 0:
            time.sleep(ahead_s)


def _in_form(recorded: Path, request: ProfileRequest, within_s: float) -> tuple[str, Path]:
    """A profile as the client wants it: PyTorch's own where it knows that, which holds more, else XPlane.

    Raises StepscopeError where it cannot be converted.
    """
    if KINETO in request.tools:
        return KINETO, recorded
    path = recorded.with_name(f"profile.{XPLANE}")
    try:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "stepscope", "convert", str(recorded), str(path)],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=max(within_s, 1.0), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise StepscopeError("the profile could not be converted in time: record less") from None
    if not path.exists():
        raise StepscopeError(f"the profile could not be converted: {ran.stderr.decode(errors='replace')[-300:]}")
    return XPLANE, path


def serve(config: dict[str, Any], job: PipedJob) -> Any:
    """A gRPC server that was started, and its port. Raises StepscopeError where it cannot listen."""
    try:
        import grpc
    except ImportError:
        raise StepscopeError(
            f"{sys.executable} has no grpcio: pip install grpcio there, or name a Python that has it with python="
        ) from None
    service = Service(grpc, job, config["token"])
    methods = {"Profile": service.profile, "Terminate": service.terminate, "Monitor": service.monitor}
    handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
    server = grpc.server(
        ThreadPoolExecutor(WORKERS, thread_name_prefix="stepscope"),
        handlers=(grpc.method_handlers_generic_handler(SERVICE, handlers),),
        options=_OPTIONS,
    )
    host = f"[{config['host']}]" if ":" in config["host"] else config["host"]
    try:
        port = server.add_insecure_port(f"{host}:{config['port']}")
    except RuntimeError:
        port = 0
    if not port:
        raise StepscopeError(
            f"port {config['port']} of {config['host']} is taken, or is none of this machine; each rank needs a port "
            "of its own, as 9012 + rank"
        )
    server.start()
    return server, port


def main() -> NoReturn:
    """Serve for the job at standard input and output until it ends."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # What libraries print must not come between the lines.
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()  # Ctrl-C is the job's to handle; we end when it does.
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    job = PipedJob(sys.stdin, out)
    try:
        server, port = serve(json.loads(sys.stdin.readline()), job)
    except StepscopeError as error:
        _say(out, {"declined": error.sentence})
        sys.exit(1)
    _say(out, {"port": port})
    with suppress(KeyboardInterrupt):
        job.listen()
    server.stop(GRACE_S).wait()
    os._exit(0)


def _say(out: Any, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
