"""``start_server``: a PyTorch job that can be recorded while it runs.

gRPC, the conversion of profiles and the sending of them are the business of another process (``sidecar``), which ends
with the job: here there are the hooks that count steps, and a thread that waits for requests on a pipe. Standard
library only, so that the job's Python needs nothing more, and forks as it did.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from stepscope.capture.backend import Declined
from stepscope.capture.imports import after_import
from stepscope.capture.on_demand import OnDemand, WindowRequest
from stepscope.capture.options import VARIABLE
from stepscope.capture.state import shared
from stepscope.capture.torch_hooks import watch_torch
from stepscope.interpreter import OWN_FOLDER, places, safe_path
from stepscope.remote.addresses import is_loopback

START_S = 30.0
"""The other process is waited for so long: it imports gRPC from a disk that may be slow."""
EXPORT_WAIT_S = 300.0
"""A job that ends waits this long for a profile to be written."""


class Server:
    """What ``start_server`` returns; it serves whether or not it is kept."""

    def __init__(self, port: int | None = None, declined: str | None = None, beside: _Beside | None = None) -> None:
        self.port = port
        """Where it listens; None where it does not."""
        self.declined = declined
        """Why it does not serve; None where it does."""
        self._beside = beside
        self._owner = os.getpid()

    @property
    def is_serving(self) -> bool:
        """Whether this process can be recorded through it."""
        return self._beside is not None and self._owner == os.getpid()

    def stop(self) -> None:
        """Serve no longer. A window that runs ends with what it has, and is still sent."""
        global _running
        if self._beside is not None and self.is_serving:
            beside, self._beside, _running = self._beside, None, None
            beside.end()


class _Beside:
    """The process that serves for this one, and what it asks of it."""

    def __init__(self, process: subprocess.Popen[bytes], to_it: IO[bytes], from_it: IO[bytes]) -> None:
        self._process, self._to_it, self._from_it = process, to_it, from_it
        self._on_demand = OnDemand()
        self._captures: list[threading.Thread] = []
        self._writing = threading.Lock()

    def begin(self) -> None:
        """Count steps, and answer."""
        after_import({"torch": self._watch})
        shared.on_demand = self._on_demand
        threading.Thread(target=self._answer, name="stepscope-server", daemon=True).start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _watch(self, torch: object) -> None:
        watch_torch(self._on_demand, torch)

    def end(self) -> None:
        """Neither any more; the process ends once it has sent what it has."""
        shared.on_demand = None
        self._on_demand.close()
        for capture in self._captures:
            capture.join(EXPORT_WAIT_S)
        self._to_it.close()

    def _forked(self) -> None:
        """This is a child of the process that is served: the other one must not wait for it to end."""
        self._on_demand.forked()
        self._to_it.close()
        self._from_it.close()

    def _answer(self) -> None:
        with suppress(OSError, ValueError):  # The pipe is gone.
            for line in self._from_it:
                request = json.loads(line)
                if request["do"] == "end":
                    self._on_demand.end()
                elif request["do"] == "status":
                    self._reply(request, self._on_demand.status())
                else:
                    # A daemon: who ends the job waits for what it can still get, and for nothing else.
                    capture = threading.Thread(target=self._capture, args=(request,), daemon=True)
                    self._captures = [each for each in self._captures if each.is_alive()] + [capture]
                    capture.start()
        self._process.wait()

    def _capture(self, request: dict[str, Any]) -> None:
        try:
            self._reply(request, {"path": self._on_demand.capture(WindowRequest(**request["asked"]))})
        except Declined as reason:
            self._reply(request, {"declined": str(reason)})
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            self._reply(request, {"declined": f"recording failed ({type(error).__name__}: {error})"})

    def _reply(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        with self._writing, suppress(OSError, ValueError):
            self._to_it.write(_line({"id": request["id"], **answer}))


_running: Server | None = None
"""Kept here, so that it serves also where its user keeps it nowhere."""


def start_server(
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    allow_remote: bool = False,
    token: str | None = None,
    python: str | os.PathLike[str] | None = None,
) -> Server:
    """Let this PyTorch job be recorded while it runs, by ``stepscope capture``, TensorBoard or any client of the kind.

    Serves until the job ends, or until ``stop`` of what is returned, which need not be kept. ``port`` 0 is any that is
    free (``.port`` says which); ranks on one machine need one each. Listens on this machine alone; ``host`` may be
    another address of it with ``allow_remote=True``. With a ``token`` only who knows it (``stepscope capture
    --token``) is answered. ``python`` is a Python that has grpcio, where the job's own has not.

    Raises ValueError for arguments that make no sense. Nothing else of this ends the job: where the server cannot
    start, that is said on stderr and in ``.declined``.
    """
    global _running
    if not 0 <= port < 65536:
        raise ValueError(f"port {port}: give 1 to 65535, or 0 for any that is free")
    if not is_loopback(host) and not allow_remote:
        raise ValueError(f"host {host}: others could then record this job; if they may, say allow_remote=True")
    if _running is not None and _running.is_serving:
        _say(f"this process has a server already, on port {_running.port}")
        return _running
    if not is_loopback(host):
        _say(f"whoever reaches {host} may record this job, {'with the token' if token else 'whoever that is'}")
    try:
        server = _started({"port": port, "host": host, "token": token}, python)
    except Exception as error:  # noqa: BLE001  Between our code and the user's.
        server = Server(declined=f"{type(error).__name__}: {error}")
    if server.declined is not None:
        _say(f"this job cannot be recorded on demand: {server.declined}")
        return server
    _running = server
    atexit.register(server.stop)
    return server


def _started(config: Mapping[str, Any], python: str | os.PathLike[str] | None) -> Server:
    if not sys.executable and python is None:
        return Server(declined="this process does not know its Python; name one with python=")
    program = os.fspath(python or sys.executable)
    if os.path.dirname(program):  # Else it is looked for on the path of programs.
        program = os.path.abspath(program)
    words = [program, "-P", "-m", "stepscope.remote.sidecar"]
    # Unbuffered: a lock that another thread holds stays locked in forked children.
    process = subprocess.Popen(
        words, cwd=OWN_FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(python), bufsize=0
    )
    to_it, from_it = process.stdin, process.stdout
    assert to_it is not None
    assert from_it is not None
    timer = threading.Timer(START_S, process.kill)
    timer.start()
    try:
        to_it.write(_line(config))
        said = json.loads(from_it.readline() or b'{"declined": "its server process ended at once"}')
        if "port" in said:
            beside = _Beside(process, to_it, from_it)
            beside.begin()
            return Server(port=int(said["port"]), beside=beside)
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
    process.communicate()
    return Server(declined=str(said["declined"]))


def _environment(python: str | os.PathLike[str] | None) -> dict[str, str]:
    """The job's, without what ``stepscope run`` put there; its path of modules, where it is the same Python."""
    known = os.environ | places()
    kept = {key: value for key, value in known.items() if key not in (VARIABLE, "PYTHONPATH", "PYTHONHOME")}
    kept["PYTHONSAFEPATH"] = "1"  # What it starts finds no modules where the job stands, either.
    if python is not None:
        return kept
    path = [str(Path(__file__).parents[2]), *safe_path()]
    return {**kept, "PYTHONPATH": os.pathsep.join(path)}


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(message)).encode() + b"\n"


def _say(sentence: str) -> None:
    print(f"stepscope: {sentence}", file=sys.stderr)
