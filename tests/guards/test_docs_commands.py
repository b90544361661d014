"""The documentation's commands run, and print what the documentation shows.

In README.md, docs/ and examples/README.md a block fenced as ``console`` holds commands, each on a line that
starts with ``$ ``, and below each command, where it helps, what it prints on standard output (``...`` alone
on a line stands for any lines). A page is run from top to bottom in a copy of the repository, on a terminal
DOCUMENTED_WIDTH columns wide. A ``python`` block is run the same way, as one script. The README's commands are
processes, as people start them; of the other pages what is a command of stepscope and nothing else is called here.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from stepscope import cli

DOCUMENTED_WIDTH = 100
SECONDS = 120

# Commands that are shown but not run here, by how they begin, with the reason.
NOT_RUN = {
    "pip install": "needs the network; tests/packaging installs the wheel",
    "make demo": "installs from the network; tests/packaging runs it in a fresh checkout",
    "stepscope run": "needs a framework; tests/capture runs it",
    "stepscope try train.py": "needs a framework; tests/trials/test_try.py runs it",
    "stepscope view": "serves until it is ended; tests/browser runs it",
    "tensorboard --logdir": "serves until it is ended; tests/browser runs it",
    "stepscope compare before1.json.gz": "needs six runs; tests/cli/test_compare.py has several of a side",
    "stepscope capture": "needs a job that runs; tests/capture runs it",
    "KINETO_USE_DAEMON=1 python train.py &": "is that job",
    "make test": "is what runs this test",
    "make check": ".ci/run runs its parts",
    "git clone": "needs the network",
    "cd": "the commands of a page run from the repository's root",
    "python capture_demo.py": "needs PyTorch; tests/guards/test_examples.py ties the profiles to the script",
    "python jax_demo.py": "needs JAX; tests/guards/test_examples.py ties the profile to the script",
}

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples" / "README.md")
    if "```" in page.read_text(encoding="utf-8")
]
FIRST_READ = ("README.md", "docs/guides/read-a-report.md")
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    body: str
    line: int

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command of a console block with the output shown below it."""
        first, *rest = re.split(r"^\$ ", self.body, flags=re.MULTILINE)
        assert not first.strip(), f"line {self.line}: output before the first command"
        for part in rest:
            command, shown = re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
            yield command, shown


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, without their indentation."""
    found = []
    for match in FENCE.finditer(text):
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        found.append(Block(match["language"], body, text.count("\n", 0, match.start()) + 1))
    return found


def marked(page: Path) -> ParameterSet:
    """A page; of those that run many commands only the first that people read are run each time."""
    name = page.relative_to(ROOT).as_posix()
    return pytest.param(page, id=name, marks=() if name in FIRST_READ else pytest.mark.slow)


@pytest.fixture
def copy(root: Path, repository_files: list[Path], tmp_path: Path) -> Path:
    """A copy of the repository's files."""
    for path in repository_files:
        target = tmp_path / "stepscope" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, target)
    return tmp_path / "stepscope"


Caller = Callable[[str, Path, str], str]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Caller:
    """Runs a command in this process: its standard output."""

    def call(command: str, folder: Path, place: str) -> str:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", str(DOCUMENTED_WIDTH))
        capsys.readouterr()
        status = cli.main(shlex.split(command.replace("\\\n", ""))[1:])
        out, err = capsys.readouterr()
        assert status == 0, f"{place}: exit status {status}\n{out}{err}"
        return out

    return call


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_the_page_does_what_it_shows(page: Path, copy: Path, called: Caller) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            run([sys.executable, "-c", block.body], copy, f"{page.name}:{block.line}")
        elif block.language == "console":
            for command, shown in block.commands():
                if not is_not_run(command):
                    place = f"{page.name}:{block.line}: {command}"
                    here = page.name != "README.md" and is_stepscope_alone(command)
                    printed = called(command, copy, place) if here else run(["bash", "-c", command], copy, place)
                    if shown.strip():
                        assert_shown(printed, shown, place)


def is_stepscope_alone(command: str) -> bool:
    """Whether bash would do no more than start stepscope, which starts no processes of a cluster then."""
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    marks = set(unquoted) & set("|&;<>()*?~#{}") | set(command) & set("$`!")
    return command.startswith("stepscope ") and not marks and "--scheduler" not in command


def is_not_run(command: str) -> bool:
    """Whether the command is one of the list, with any arguments."""
    return any(command == shown or command.startswith(f"{shown} ") for shown in NOT_RUN)


def run(command: list[str], folder: Path, place: str) -> str:
    """Run a command of a page; its standard output."""
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(DOCUMENTED_WIDTH),
    }
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ran.returncode == 0, f"{place}: exit status {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def assert_shown(printed: str, shown: str, place: str) -> None:
    """The page shows what the command prints; lines of only ``...`` stand for any lines."""
    actual = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    expected = "\n".join(line.rstrip() for line in shown.strip().splitlines())
    pattern = r"(?:.*\n)*?".join(re.escape(part) for part in re.split(r"^\.\.\.(?:\n|$)", expected, flags=re.MULTILINE))
    assert re.fullmatch(pattern, f"{actual}\n" if expected.endswith("...") else actual), (
        f"{place} prints something else than the page shows:\n{actual}"
    )


def test_every_shown_command_can_be_run() -> None:
    """A command in a block of another language would escape the test above."""
    escaped = [
        f"{page.name}:{block.line}"
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.language in ("", "sh", "bash", "shell", "text")
        and re.search(r"^(?:\$ )?(?:stepscope|make) ", block.body, re.MULTILINE)
    ]
    assert escaped == []


def test_the_pages_show_the_main_commands() -> None:
    """Guards against a runner that finds nothing to run."""
    commands = [
        command
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.language == "console"
        for command, _ in block.commands()
    ]
    for main in ("make demo", "make test", "stepscope diagnose"):
        assert any(command.startswith(main) for command in commands), f"no page shows {main}"


def test_a_page_is_read_as_written(tmp_path: Path) -> None:
    page = "Text\n\n  ```console\n  $ echo a \\\n      b\n  a b\n  $ true\n  ```\n\n```json\n{}\n```\n"
    console, other = blocks(page)
    assert list(console.commands()) == [("echo a \\\n    b", "a b\n"), ("true", "")]
    assert (console.line, other.language) == (3, "json")
    assert run(["bash", "-c", "echo a \\\n b"], tmp_path, "") == "a b\n"


def test_what_bash_does_more_than_start_is_left_to_bash() -> None:
    assert is_stepscope_alone("stepscope query a \"SELECT b \\\n FROM c WHERE d > 'e'\"")
    for other in ("stepscope a > b", "stepscope a || echo c", "stepscope a 2>&1", "stepscope $A", "cut a", "A=b c"):
        assert not is_stepscope_alone(other), other


def test_what_is_shown_is_compared() -> None:
    assert_shown("a\nb  \nc\n\n", "a\n...\nc\n", "")
    assert_shown("a\nb\nc\n", "...\nc\n", "")
    assert_shown("a\nb\nc\n", "a\n...\n", "")
    assert_shown("a\nc\n", "a\n...\nc", "")
    for shown in ("a\nb\n", "a\nx\nc", "...\nb\n", "b\n..."):
        with pytest.raises(AssertionError, match="something else"):
            assert_shown("a\nb\nc\n", shown, "")


def test_a_failing_command_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="exit status 3"):
        run(["bash", "-c", "exit 3"], tmp_path, "page:1")
