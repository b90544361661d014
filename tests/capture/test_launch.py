"""The user's command runs as it would without stepscope."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepscope.capture import launch
from stepscope.capture.options import Options, from_environment
from stepscope.cli import main
from tests.capture.jobs import environment, run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and exit statuses of POSIX")


def test_streams_and_status_are_the_commands_own(tmp_path: Path) -> None:
    code = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d + b'\\xff\\x00\\r\\n'); sys.exit(7)"
    ran = run(tmp_path, sys.executable, "-c", code, stdin=b"\x00\xfe in")
    assert (ran.status, ran.stdout) == (7, b"\x00\xfe in\xff\x00\r\n")
    assert "no profile was written because no process of the command imported a framework" in ran.stderr


def test_a_script_gets_its_arguments_and_a_python(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys; print(sys.argv[1:], sys.path[0])")
    ran = run(tmp_path / "out", script, "--epochs", "3", "--out", "-v", "--", "x")
    assert ran.stdout.decode() == f"['--epochs', '3', '--out', '-v', '--', 'x'] {tmp_path}\n"


def test_a_module_runs(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("import sys; print(__name__, sys.argv[1:])")
    ran = run(tmp_path, "-m", "trainer", "-x", env=environment(PYTHONPATH=str(tmp_path)))
    assert ran.stdout == b"__main__ ['-x']\n"


def test_a_signal_that_ends_the_command_is_its_status(tmp_path: Path) -> None:
    ran = run(tmp_path, sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert ran.status == 128 + signal.SIGKILL


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_in_the_place_of_the_folder_is_said_before_the_command_runs(tmp_path: Path, below: str) -> None:
    (out := tmp_path / "taken").write_text("")
    ran = run(out / below, sys.executable, "-c", "print('ran')")
    assert (ran.status, ran.stdout) == (2, b"")
    assert f"{out} is not a folder: name another with --out" in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_reach_the_command(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(42))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "stepscope", "run", "--out", str(tmp_path), sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"ready\n"
        job.send_signal(number)
        assert job.wait(30) == 42


def test_a_stopped_and_continued_command_is_waited_for(tmp_path: Path) -> None:
    goes_on = tmp_path / "goes on"
    code = (
        "import os, time\n"
        "print(os.getpid(), flush=True)\n"
        f"while not os.path.exists({str(goes_on)!r}):\n    time.sleep(0.01)\n"
        "print('end')\n"
    )
    command = [sys.executable, "-m", "stepscope", "run", "--out", str(tmp_path), sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()) as job:
        assert job.stdout is not None
        child = int(job.stdout.readline())
        os.kill(child, signal.SIGSTOP)
        time.sleep(0.1)
        goes_on.touch()
        os.kill(child, signal.SIGCONT)
        assert job.communicate(timeout=30)[0] == b"end\n"
        assert job.returncode == 0


def test_what_cannot_be_started_has_the_shells_status(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    missing, refused = run(tmp_path, "no-such-command-anywhere"), run(tmp_path, plain)
    assert (missing.status, refused.status) == (127, 126)
    assert missing.stderr == "stepscope: no-such-command-anywhere: no such command\n"


def test_a_script_that_does_not_exist_is_said_with_its_folder(tmp_path: Path) -> None:
    relative, absolute = run(tmp_path, "nosuch.py", "-x"), run(tmp_path, tmp_path / "nosuch.py")
    assert (relative.status, absolute.status) == (127, 127)
    assert relative.stderr == f"stepscope: nosuch.py: there is no such file in {Path.cwd()}\n"
    assert absolute.stderr == f"stepscope: {tmp_path / 'nosuch.py'}: there is no such file\n"
    assert list(tmp_path.iterdir()) == []


def test_an_option_that_is_none_is_refused(tmp_path: Path) -> None:
    ran = run(tmp_path, "--actve", "3", "train.py")
    assert (ran.status, "there is no option --actve" in ran.stderr) == (2, True)


def test_a_length_of_time_is_refused_with_what_there_is(tmp_path: Path) -> None:
    ran = run(tmp_path, "--duration", "2", "train.py")
    assert (ran.status, "--active 20, for --max-seconds 60" in ran.stderr) == (2, True)


@pytest.mark.parametrize("name", ["run", "try"])
@pytest.mark.parametrize(
    ("words", "form"), [(("-c", "print(1)"), "python -c 'print(1)'"), (("-", "x y"), "python - 'x y'")]
)
def test_what_python_takes_in_place_of_a_script_is_told_with_the_form_that_works(
    name: str, words: tuple[str, ...], form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, *words]) == 2
    assert f"write stepscope {name} {form}" in capsys.readouterr().err


def test_words_become_commands() -> None:
    assert launch.command_line(["train.py", "-x"], "py") == ["py", "train.py", "-x"]
    assert launch.command_line(["-m", "pkg.train"], "py") == ["py", "-m", "pkg.train"]
    assert launch.command_line(["torchrun", "train.py"], "py") == ["torchrun", "train.py"]


def test_a_tools_own_environment_is_no_place_for_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.default_python() == sys.executable
    (tmp_path / "uv-receipt.toml").touch()
    shell = tmp_path / "python"
    shell.touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch.default_python() == str(shell)


def test_options_and_path_reach_the_job() -> None:
    options = Options(out="x", active=3)
    made = launch.environment_for(options, {"PYTHONPATH": "mine"})
    assert from_environment(made) == options
    assert made["PYTHONPATH"] == os.pathsep.join([str(launch.STARTUP), "mine"])
    # An empty entry would mean the current folder.
    assert launch.environment_for(options, {})["PYTHONPATH"] == str(launch.STARTUP)
    newer = json.dumps({"out": "y", "not_yet_known": 1})
    assert from_environment({"STEPSCOPE_CAPTURE": newer}) == Options(out="y")
