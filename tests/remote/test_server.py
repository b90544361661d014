"""``start_server`` and the process beside it, in a job whose profiler copies a profile that is there."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import grpc
import pytest

import stepscope
from stepscope.capture.on_demand import OnDemand
from stepscope.capture.state import shared
from stepscope.errors import StepscopeError
from stepscope.interpreter import OWN_FOLDER
from stepscope.remote import server, sidecar
from stepscope.remote.messages import (
    KINETO,
    SERVICE,
    XPLANE,
    ProfileRequest,
    ProfileResponse,
    encoded_monitor_request,
    monitor_text,
)
from stepscope.wire import field
from tests.remote.peers import KINETO_FILE, nothing_listens
from tests.remote.test_on_demand import WAIT_S, Remembering, until

TOKEN = "correct horse"


class Copying(Remembering):
    """Its profile is a real one, of another job."""

    def export(self, folder: str) -> list[str]:
        return [str(shutil.copy(KINETO_FILE, Path(folder, "profile.pt.trace.json.gz")))]


class Served:
    """A job that can be recorded, with steps on a thread of its own."""

    def __init__(self) -> None:
        self.port = stepscope.start_server(token=TOKEN).port  # What it returns is dropped.
        gc.collect()
        self.ends = threading.Event()
        self.trains = threading.Thread(target=self._train)
        self.trains.start()
        self.channel = grpc.insecure_channel(self.address, options=[("grpc.max_receive_message_length", -1)])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def demand(self) -> OnDemand:
        assert server._running is not None
        assert server._running._beside is not None
        return server._running._beside._on_demand

    def _train(self) -> None:
        while not self.ends.wait(0.002):
            stepscope.step()

    def call(self, method: str, message: bytes, token: str = TOKEN, **more: Any) -> Any:
        metadata = (("authorization", f"Bearer {token}"),)
        return self.channel.unary_unary(f"/{SERVICE}/{method}").future(message, metadata=metadata, **more)

    def profile(self, request: ProfileRequest, **more: Any) -> Any:
        return self.call("Profile", request.encode(), **{"timeout": 60, **more})


@pytest.fixture(scope="module")
def job() -> Iterator[Served]:
    patch = pytest.MonkeyPatch()
    patch.setitem(sys.modules, "torch", ModuleType("torch"))
    patch.setattr(server, "OnDemand", lambda: OnDemand(Copying))
    patch.setattr(server, "watch_torch", lambda *_: None)
    served = Served()
    yield served
    served.ends.set()
    served.trains.join()
    assert server._running is not None
    beside = server._running._beside
    server._running.stop()
    assert beside is not None
    assert beside._process.wait(WAIT_S) == 0
    served.channel.close()
    assert shared.on_demand is None
    patch.undo()


def test_our_client_gets_the_profile_as_it_is(job: Served, tmp_path: Path) -> None:
    (path,) = stepscope.capture_from(job.address, tmp_path, steps=4, token=TOKEN)
    assert path.name == f"127.0.0.1_{job.port}.{KINETO}"
    assert path.read_bytes() == KINETO_FILE.read_bytes()


def test_every_other_client_gets_an_xplane(job: Served, tmp_path: Path) -> None:
    """TensorFlow's looks for tool data, JAX's servers answer in ``xspace``."""
    request = ProfileRequest(duration_ms=20, stacks=True, session_id="s", host_name="h")
    told = [
        ProfileResponse.decode(job.profile(ProfileRequest(**{**vars(request), "emit_xspace": emit})).result())
        for emit in (False, True)
    ]
    assert [response.form for response in told] == [XPLANE, XPLANE]
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(told[0].data)
    assert path.read_bytes() == told[1].data
    profile, original = stepscope.open(path), stepscope.open(KINETO_FILE)
    assert profile.trace.info.format == "XPlane"
    assert profile.steps["number"].to_list() == original.steps["number"].to_list()
    assert profile.findings[0].id == original.findings[0].id


def test_what_was_asked_reaches_the_profiler(job: Served) -> None:
    made: list[Copying] = []
    job.demand._make = lambda options: made.append(Copying(options)) or made[-1]  # type: ignore[func-returns-value]
    job.profile(ProfileRequest(steps=2, stacks=True, shapes=True, memory=True, tools=(KINETO,))).result()
    options = made[0].options
    assert (options.stacks, options.shapes, options.memory) == (True, True, True)
    assert [name for name, *_ in made[0].calls] == ["prepare", "begin", "mark", "stop"]


def test_the_server_says_how_far_the_job_is(job: Served) -> None:
    until(lambda: job.demand.status()["step_ns"] is not None)
    said = monitor_text(job.call("Monitor", encoded_monitor_request(1)).result())
    assert said.startswith("stepscope: PyTorch ")
    assert "steps (stepscope.step), " in said


def test_one_capture_at_a_time(job: Served) -> None:
    first = job.profile(ProfileRequest(duration_ms=60_000, session_id="long", tools=(KINETO,)))
    until(lambda: job.demand.status()["recording"])
    with pytest.raises(grpc.RpcError) as refused:
        job.profile(ProfileRequest(duration_ms=20)).result()
    assert refused.value.code() is grpc.StatusCode.ALREADY_EXISTS
    assert refused.value.details() == "Another profiling session active."
    # The wrong session's end is not this one's; the right one's keeps what there is.
    job.call("Terminate", field(1, "other")).result()
    assert job.demand.status()["recording"]
    job.call("Terminate", field(1, "long")).result()
    assert len(ProfileResponse.decode(first.result()).data)


def test_a_client_that_goes_ends_its_capture(job: Served) -> None:
    call = job.profile(ProfileRequest(duration_ms=60_000))
    until(lambda: job.demand.status()["recording"])
    call.cancel()
    until(lambda: not job.demand.status()["recording"])
    until(lambda: not _is_busy(job))


def _is_busy(job: Served) -> bool:
    """Whether the server still makes the answer to another request."""
    call = job.profile(ProfileRequest(duration_ms=1, tools=(KINETO,)))
    return call.code() is grpc.StatusCode.ALREADY_EXISTS


@pytest.mark.parametrize("method", ["Profile", "Monitor", "Terminate"])
def test_who_has_no_token_gets_nothing(job: Served, method: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        job.call(method, b"", token="battery staple").result()
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert not job.demand.status()["recording"]


def test_a_profiler_that_declines_is_told_in_its_words(
    job: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "session", Mock())
    with pytest.raises(StepscopeError, match=r"refused: stepscope\.profile records in this process"):
        stepscope.capture_from(job.address, tmp_path, duration=0.01, token=TOKEN)


def test_clocks_that_disagree_do_not_hold_a_client_up(job: Served) -> None:
    ahead = time.time_ns() + 3600 * 10**9
    with pytest.raises(grpc.RpcError) as refused:
        job.profile(ProfileRequest(duration_ms=10, starts_ns=ahead)).result()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("message", [b"", b"\xff\xfe\x00garbage", b"\x08", b"\x08\x00"])
def test_garbage_is_not_recorded(job: Served, message: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(job.demand, "_make", made.append)
    with pytest.raises(grpc.RpcError) as refused:
        job.call("Profile", message, timeout=60).result()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert made == []
    monkeypatch.undo()
    assert len(ProfileResponse.decode(job.profile(ProfileRequest(steps=1, tools=(KINETO,))).result()).data)


def test_garbage_ends_no_capture(job: Served) -> None:
    recorded = job.profile(ProfileRequest(duration_ms=60_000, tools=(KINETO,)))
    until(lambda: job.demand.status()["recording"])
    for message in (b"\xff\xfe\x00garbage", b"\x0a"):
        job.call("Terminate", message).result()
    assert monitor_text(job.call("Monitor", b"\xff\xfe\x00garbage").result()).endswith("; recording")
    assert job.demand._window is not None  # The job has answered since, and what it is told comes in order.
    assert not job.demand._window.ends_early
    job.call("Terminate", b"").result()
    assert len(ProfileResponse.decode(recorded.result()).data)


def test_a_process_has_one_server(job: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert stepscope.start_server(1).port == job.port
    assert f"a server already, on port {job.port}" in capsys.readouterr().err


# --- servers that cannot be -------------------------------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process without a server."""
    monkeypatch.setattr(server, "_running", None)


def test_a_port_that_is_taken_does_not_end_the_job(
    alone: None, job: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two servers on one port would each get some of the requests."""
    refused = stepscope.start_server(job.port or 0)
    assert refused.port is None
    assert "each rank needs a port of its own" in (refused.declined or "")
    assert "this job cannot be recorded on demand: port" in capsys.readouterr().err
    refused.stop()


def test_the_process_beside_stands_in_no_folder_of_the_job(
    alone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python that is named from where the job stands is still found."""
    monkeypatch.chdir(tmp_path)
    told = "import json, os; print(json.dumps({'declined': os.getcwd()}))"
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{told}"\n')
    (tmp_path / "python").chmod(0o755)
    assert stepscope.start_server(python="./python").declined == OWN_FOLDER


@pytest.mark.parametrize("python", ["/no/such/python", sys.executable.replace("python", "false")])
def test_a_python_that_does_not_serve(alone: None, python: str) -> None:
    assert stepscope.start_server(python=python).declined


def test_a_python_without_grpc_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(StepscopeError, match="has no grpcio: pip install grpcio there"):
        sidecar.serve({"host": "127.0.0.1", "port": 0, "token": None}, sidecar.PipedJob([], sys.stdout))


def test_other_machines_are_served_only_where_that_was_said(
    alone: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="allow_remote=True"):
        stepscope.start_server(host="0.0.0.0")
    monkeypatch.setattr(server, "_started", lambda config, python: server.Server(declined=config["host"]))
    assert stepscope.start_server(host="0.0.0.0", allow_remote=True).declined == "0.0.0.0"
    assert "whoever reaches 0.0.0.0 may record this job" in capsys.readouterr().err
    with pytest.raises(ValueError, match="port 70000"):
        stepscope.start_server(70_000)


def test_the_process_beside_ends_with_the_job() -> None:
    """Even if the job is killed, or was forked: its port is free again."""
    script = (
        "import os, signal, time, stepscope\n"
        "print(stepscope.start_server().port, flush=True)\n"
        "if os.fork() == 0:\n    time.sleep(60)\n    os._exit(0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True) as job:
        assert job.stdout is not None
        address = f"127.0.0.1:{int(job.stdout.readline())}"
        try:
            with grpc.insecure_channel(address) as channel:
                until(lambda: _is_gone(channel))
        finally:
            _kill_group(job.pid)


def _is_gone(channel: grpc.Channel) -> bool:
    try:
        channel.unary_unary(f"/{SERVICE}/Monitor")(b"", timeout=5)
    except grpc.RpcError as error:
        return bool(error.code() is grpc.StatusCode.UNAVAILABLE and "refused" in str(error.details()))
    return False


def _kill_group(leader: int) -> None:
    import os
    import signal

    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_nothing_heavy_is_imported_into_the_job() -> None:
    script = (
        "import sys, stepscope\n"
        "stepscope.start_server\n"
        "print(*({'numpy', 'polars', 'numba', 'grpc', 'rich', 'msgspec', 'click'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == []


def test_no_server_is_there_by_itself(tmp_path: Path) -> None:
    with nothing_listens() as address, pytest.raises(StepscopeError, match="nothing listens there"):
        stepscope.capture_from(address, tmp_path)
