"""``stepscope capture HOST:PORT`` and servers of every kind, faulty ones among them."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

import stepscope
from stepscope import cli
from stepscope.errors import StepscopeError, UsageError
from stepscope.remote import addresses, client
from stepscope.remote.addresses import parsed
from stepscope.remote.messages import KINETO, XPLANE, ProfileRequest, encoded_monitor_response, encoded_response
from stepscope.wire import field
from tests.remote.peers import KINETO_FILE, XSPACE, Answer, mute, nothing_listens, serving, web


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "CONNECT_S", 2.0)
    monkeypatch.setattr(client, "CONNECT_S", 2.0)
    monkeypatch.setattr(client, "MONITOR_S", 2.0)


def capture(out: Path, *words: object) -> int:
    return cli.main(["capture", "-o", str(out), "--duration", "10ms", "--timeout", "1", *map(str, words)])


def sends_xspace(request: ProfileRequest, _: Any) -> bytes:
    return encoded_response(request, XPLANE, XSPACE)


def aborts(code: grpc.StatusCode, said: str) -> Answer:
    def answer(_: ProfileRequest, context: Any) -> bytes:
        context.abort(code, said)
        raise AssertionError

    return answer


def hangs(_: ProfileRequest, context: Any) -> bytes:
    ended = threading.Event()
    context.add_callback(ended.set)
    ended.wait(30)
    return b""


def test_a_profile_arrives_and_is_diagnosed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(sends_xspace) as address:
        assert capture(tmp_path, address) == 0
    said = capsys.readouterr()
    (path,) = tmp_path.rglob("*.*")
    # TensorBoard's layout: plugins/profile/<time>/<host>.xplane.pb.
    assert path.parts[-4:-2] == ("plugins", "profile")
    assert path.name == f"{address.replace(':', '_')}.xplane.pb"
    assert path.read_bytes() == XSPACE
    assert f"{address}: captured" in said.err
    assert str(path) in said.err
    assert said.out.startswith(f"{path.name} · JAX · ")


def test_pytorch_sends_its_own_form_to_who_knows_it(tmp_path: Path) -> None:
    asked = []

    def sends_kineto(request: ProfileRequest, _: Any) -> bytes:
        asked.append(request)
        return encoded_response(request, KINETO, KINETO_FILE.read_bytes())

    with serving(sends_kineto) as address:
        (path,) = stepscope.capture_from(address, tmp_path, duration=0.25, stacks=False)
    assert path.name.endswith(".pt.trace.json.gz")
    assert stepscope.open(path).steps.height
    (request,) = asked
    assert (request.duration_ms, request.stacks, request.emit_xspace) == (250, False, True)
    assert KINETO in request.tools


def test_hosts_record_at_the_same_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each answers only once both were asked."""
    both = threading.Barrier(2, timeout=20)

    def together(request: ProfileRequest, context: Any) -> bytes:
        both.wait()
        return sends_xspace(request, context)

    with serving(together) as first, serving(together) as second:
        assert capture(tmp_path, f"{first},{second}") == 0
    assert len(list(tmp_path.rglob("*.xplane.pb"))) == 2
    assert "the first of 2 profiles was diagnosed" in capsys.readouterr().err


def test_hosts_that_do_not_answer_do_not_cost_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(sends_xspace) as address, nothing_listens() as silent:
        assert capture(tmp_path, f"{silent},{address}") == 3
    said = capsys.readouterr()
    assert "nothing listens there" in said.err
    assert "step time" in said.out


def test_in_python_a_missing_profile_is_an_error_that_names_those_that_came(tmp_path: Path) -> None:
    with serving(sends_xspace) as address, nothing_listens() as silent, pytest.raises(StepscopeError) as raised:
        stepscope.capture_from(f"{address},{silent}", tmp_path, duration=0.01)
    (path,) = tmp_path.rglob("*.xplane.pb")
    assert f"arrived all the same: {path}" in raised.value.details


FAULTY: dict[str, tuple[Answer, str]] = {
    "says nothing": (lambda request, context: b"", "its version writes profiles on its own disk only"),
    "says it is empty": (lambda request, context: field(7, 1), "its profile is empty"),
    "sends no events": (
        lambda request, context: encoded_response(request, XPLANE, field(1, field(2, "/host:CPU"))),
        "its profile says nothing",
    ),
    "sends another message": (lambda request, context: b"\xff\xff garbage", "what the server sent is no profile"),
    "sends garbage as a profile": (
        lambda request, context: encoded_response(request, XPLANE, b"\xff" * 4096), "its profile says nothing",
    ),
    "hangs": (hangs, "no profile within 1.01 s; --timeout gives it longer"),
    "sends too much": (
        lambda request, context: encoded_response(request, XPLANE, bytes(200_000)),
        "the profile is larger than 100000 bytes",
    ),
    "records for another": (
        aborts(grpc.StatusCode.INTERNAL, "Another profiling session active."),
        "another profile is being recorded there",
    ),
    "wants a token": (aborts(grpc.StatusCode.UNAUTHENTICATED, ""), "the server wants a token: --token"),
    "refuses": (aborts(grpc.StatusCode.FAILED_PRECONDITION, "not\x1b[31m now"), "the server refused: not"),
    "breaks": (aborts(grpc.StatusCode.UNAVAILABLE, "bye"), "the connection broke"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTY)
def test_what_a_faulty_server_does_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    answer, sentence = FAULTY[kind]
    with serving(answer) as address:
        assert capture(tmp_path, "--max-bytes", 100_000, address) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"stepscope: {address}: ")
    assert sentence in said.err
    assert "\x1b" not in said.err
    assert not list(tmp_path.rglob("*.xplane.pb")) or "its profile says nothing" in sentence


def test_a_message_that_would_grow_when_decompressed_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def bomb(request: ProfileRequest, _: Any) -> bytes:
        return encoded_response(request, XPLANE, bytes(50_000_000))

    with serving(bomb, compression=grpc.Compression.Gzip) as address:
        assert capture(tmp_path, "--max-bytes", 1_000_000, address) == 1
    assert address in capsys.readouterr().err


@pytest.mark.parametrize("peer", [mute, web])
def test_what_is_no_profiler_server_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], peer: Any) -> None:
    with peer() as address:
        assert capture(tmp_path, address) == 1
    assert "something listens there that is no profiler server" in capsys.readouterr().err


def test_another_grpc_service_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(sends_xspace, method="Other") as address:
        assert capture(tmp_path, address) == 1
    assert "offers gRPC, but no profiles" in capsys.readouterr().err


def test_a_refused_connection_names_its_causes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with nothing_listens() as address:
        assert capture(tmp_path, address) == 1
    said = capsys.readouterr().err
    assert "stepscope.start_server(PORT)" in said
    assert f"server = xp.start_server({address.split(':')[1]})" in said
    assert "ssh" not in said  # It is this machine.
    assert not list(tmp_path.iterdir())


def test_a_job_that_listens_on_another_machine_alone_is_reached_through_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(addresses.socket, "create_connection", refused)
    with pytest.raises(StepscopeError) as raised:
        addresses.check_listening(parsed("node7:9012")[0])
    assert "`ssh -N -L 9012:localhost:9012 node7`, and then stepscope capture localhost:9012" in str(raised.value)


def test_a_host_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert capture(tmp_path, "no-such-host.invalid:9012") == 1
    assert "there is no host no-such-host.invalid" in capsys.readouterr().err


def test_a_server_that_writes_on_a_disk_that_is_seen_here(tmp_path: Path) -> None:
    """As that of PyTorch/XLA 2.9, which knows no ``emit_xspace``."""

    def writes(request: ProfileRequest, _: Any) -> bytes:
        folder = Path(request.repository_root, request.session_id)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{request.host_name.replace(':', '_')}.xplane.pb").write_bytes(XSPACE)
        return b""

    with serving(writes) as address:
        assert capture(tmp_path, address) == 0


def test_steps_are_asked_only_of_who_counts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(sends_xspace) as address:  # Without Monitor, as JAX.
        assert capture_steps(tmp_path, address) == 2
    assert "this server counts no steps" in capsys.readouterr().err
    with serving(lambda request, context: encoded_monitor_response("busy"), method="Monitor") as address:
        assert capture_steps(tmp_path, address) == 2


def capture_steps(out: Path, address: str) -> int:
    return cli.main(["capture", "-o", str(out), "--timeout", "1", "--steps", "3", address])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "say what to record"),
        (["localhost:1", "--pid", "1"], "say what to record"),
        (["localhost"], "an address is HOST:PORT"),
        (["localhost:99999"], "an address is HOST:PORT"),
        (["http://localhost:1"], "an address is HOST:PORT"),
        (["localhost:1", "--duration", "2h"], "a time is a number with a unit"),
        (["localhost:1", "--duration", "0"], "a capture lasts from 1 ms"),
        (["localhost:1", "--duration", "2s", "--steps", "3"], "give one"),
    ],
)
def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str) -> None:
    assert cli.main(["capture", "-o", str(tmp_path), *words]) == 2
    assert sentence in capsys.readouterr().err


def test_without_grpc_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    assert capture(tmp_path / "out", "localhost:1") == 1
    assert capsys.readouterr().err == f"stepscope: {client.INSTALL}\n"
    assert not (tmp_path / "out").exists()


def test_two_captures_of_one_second_have_folders_of_their_own(tmp_path: Path) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(serving(sends_xspace))
        paths = {stepscope.capture_from(address, tmp_path, duration=0.001) for _ in range(2)}
    assert len(paths) == 2


def test_addresses() -> None:
    assert [str(one) for one in parsed("grpc://a:1, [::1]:2,a:1")] == ["a:1", "[::1]:2"]
    assert parsed("[::1]:2")[0].file_stem == "__1_2"
    with pytest.raises(UsageError):
        parsed("a:1,")
