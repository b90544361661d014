"""The command line as a process: terminals, pipes, narrow encodings, and what importing it loads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_RUN = """
import sys, time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from tests.report import documents
from stepscope.errors import Exit
import stepscope

def read(source, *, progress):
    {before}
    made = documents.ALL[str(source.path)]
    return SimpleNamespace(document=made, brief=made, facts=None, findings=(), exit_status=Exit.OK)

fake = ModuleType("stepscope.pipeline")
from stepscope.formats import find
find.find = lambda path, most: SimpleNamespace(sources=(SimpleNamespace(path=Path(path)),), skipped=(), notes=())
fake.read = read
sys.modules["stepscope.pipeline"] = stepscope.pipeline = fake
from stepscope.cli import main
sys.exit(main(sys.argv[1:]))
"""


def _command(*arguments: str, before: str = "pass") -> list[str]:
    return [sys.executable, "-c", _RUN.format(before=before), *arguments]


def _environment(**changes: str) -> dict[str, str]:
    matters = ("NO_COLOR", "COLUMNS", "FORCE_COLOR", "PYTHONUNBUFFERED", "OPENBLAS_NUM_THREADS")
    kept = {key: value for key, value in os.environ.items() if key not in matters}
    return kept | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"} | changes


def _on_a_terminal(command: list[str], **environment: str) -> tuple[str, str]:
    """What a command writes to stdout and to stderr where each is a terminal of 100 columns."""
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    import fcntl
    import struct
    import termios

    pairs = [pty.openpty() for _ in range(2)]
    for _, slave in pairs:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    ends = {"stdout": pairs[0][1], "stderr": pairs[1][1]}
    process = subprocess.Popen(command, env=_environment(**environment), **ends)
    for _, slave in pairs:
        os.close(slave)
    written = [_drain(master) for master, _ in pairs]
    assert process.wait(60) == 0, written
    return written[0], written[1]


def _drain(descriptor: int) -> str:
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux reports the end of a pseudo-terminal as an error.
            chunk = b""
        if not chunk:
            os.close(descriptor)
            return b"".join(chunks).decode()
        chunks.append(chunk)


def test_a_terminal_gets_colour_at_its_width():
    out, err = _on_a_terminal(_command("diagnose", "input_bound"))
    assert "\x1b[1mThe device waits for input data" in out
    assert "\x1b[31m░" in out
    bar = next(line for line in out.splitlines() if "█" * 20 in line)
    assert len(re.sub(r"\x1b\[[0-9;]*m", "", bar)) == 100
    assert err == ""


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, pytest.param({"TERM": "dumb"}, marks=pytest.mark.slow)])
def test_nobody_who_asks_for_none_gets_colour(environment: dict[str, str]):
    out, _ = _on_a_terminal(_command("diagnose", "hostile", "-v"), **environment)
    assert "\x1b" not in out
    assert "█" * 20 in out


def test_a_pipe_gets_plain_text():
    done = subprocess.run(
        _command("diagnose", "hostile", "-v"), capture_output=True, env=_environment(), check=True, timeout=60
    )
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


def test_slow_work_shows_progress_on_stderr_and_leaves_nothing_behind():
    before = "progress('reading', 1, 4); time.sleep(1.1); progress('reading', 3, 4); time.sleep(0.3)"
    out, err = _on_a_terminal(_command("diagnose", "healthy", before=before))
    assert "reading" in err
    assert "75%" in err
    assert err.endswith("\x1b[2K")
    assert "reading" not in out


@pytest.mark.slow
def test_analyses_that_run_late_show_progress_too():
    late = "lambda: (time.sleep(1.1), progress('analysing', 1, 2), documents.healthy())[2]"
    before = f"documents.ALL['late'] = {late}"
    out, err = _on_a_terminal(_command("diagnose", "late", before=before))
    assert "analysing" in err
    assert err.endswith("\x1b[2K")
    assert "Nothing to fix" in out


def test_quick_work_shows_none():
    before = "time.monotonic = lambda: 0.0; progress('reading', 3, 4)"  # However long it takes on a busy machine.
    _, err = _on_a_terminal(_command("diagnose", "healthy", before=before))
    assert err == ""


def test_compiling_is_announced_at_once():
    _, err = _on_a_terminal(_command("diagnose", "healthy", before="progress('compile', 0, 0)"))
    assert "compiling (first run only" in err


def test_no_progress_where_stderr_is_no_terminal():
    before = "time.sleep(1.1); progress('reading', 3, 4)"
    done = subprocess.run(
        _command("diagnose", "healthy", before=before), capture_output=True, env=_environment(), timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_compiling_is_said_once_even_in_a_log():
    before = "progress('compile', 0, 0)"
    done = subprocess.run(
        _command("diagnose", "healthy", before=before), capture_output=True, env=_environment(), timeout=60
    )
    assert done.returncode == 0
    assert done.stderr.decode() == "stepscope: compiling (first run only, a few seconds) …\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGPIPE")
def test_a_reader_who_leaves_is_not_an_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        _command("diagnose", "healthy"), stdout=writing, stderr=subprocess.PIPE, env=_environment(), timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("encoding", "arguments"),
    [
        ("ascii", ["-v"]),
        *(
            pytest.param(encoding, arguments, marks=pytest.mark.slow)
            for encoding in ("ascii", "latin-1", "cp1252")
            for arguments in (["-v"], ["--format", "json"], ["--format", "markdown"])
            if (encoding, arguments) != ("ascii", ["-v"])
        ),
    ],
)
def test_a_narrow_encoding_gets_stand_ins(encoding: str, arguments: list[str]):
    done = subprocess.run(
        _command("diagnose", "input_bound", *arguments),
        capture_output=True, env=_environment(PYTHONIOENCODING=encoding), check=True, timeout=60,
    )  # fmt: skip
    text = done.stdout.decode(encoding)
    if "json" not in arguments:
        assert "#" * 40 in text
        assert "\\u" not in text


def _modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules, sep='\\n')"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return set(done.stdout.split())


HEAVY = {"numpy", "polars", "numba", "rich", "msgspec", "click", "sqlglot"}


def test_importing_stepscope_loads_nothing_heavy():
    loaded = _modules_after("import stepscope; stepscope.__version__; dir(stepscope)")
    assert "stepscope" in loaded
    assert not loaded & HEAVY


def test_the_version_is_told_without_loading_the_reader():
    loaded = _modules_after("from stepscope.cli import main; main(['--version'])")
    assert not loaded & (HEAVY - {"click"})


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_numpy_starts_no_threads_to_diagnose_and_nothing_else_is_told_so():
    profile = Path(__file__).parents[2] / "examples" / "profiles" / "cpu_input_bound.json.gz"
    command = ["stepscope", "diagnose", str(profile)]
    code = f"import os, sys; sys.argv = {command}; from stepscope.cli import main; main()"
    said = "print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; {said}"],
        capture_output=True, text=True, check=True, timeout=60, env=_environment(STEPSCOPE_BACKGROUND="0"),
    )  # fmt: skip
    assert done.stderr.split() == ["1", "None"]


def test_public_names_are_exactly_these():
    names = ["Profile", "__version__", "annotate", "capture_from", "in_ms", "open", "open_all", "profile", "schedule"]
    names += ["start_server", "step"]
    code = f"import stepscope; assert dir(stepscope) == {names}, dir(stepscope)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    code = "import stepscope; stepscope.no_such_name"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "AttributeError: module 'stepscope' has no attribute 'no_such_name'" in done.stderr


def test_python_m_stepscope_is_the_command():
    command = [sys.executable, "-m", "stepscope", "--version"]
    assert subprocess.check_output(command, text=True, timeout=60).startswith("stepscope ")
