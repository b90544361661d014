"""What CONTRIBUTING.md and its like name is there, its example works; `make check` is .ci/run without slow tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import support
from tests.guards.test_docs_commands import blocks
from tests.support import facts_of_drawing, planted_facts

from stepscope.diagnosis.rule import Rule

NAMING = ("CONTRIBUTING.md", "SECURITY.md", "docs/releases.md", ".github/PULL_REQUEST_TEMPLATE.md")
ROOMS = ("src", "tests", "docs", "benchmarks", "examples", ".ci", ".github")
SLOW = {"long", "timed", "speed"}
"""Stages of .ci/run that hold what is marked slow, or measure."""
CLEARED = """
    1 char = 10 us
    main   |[S          ][T          ][U          ]
    main   | a b          c d          e f
    gpu0/7 |  [a  ][b ]    [c  ][d ]    [e  ][f ]
    S = step 5
    T = step 6
    U = step 7
    b = memset 4096
    d = memset 4096
    f = memset 4096
"""


@pytest.fixture(scope="module")
def contributing(root: Path) -> str:
    return (root / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def makefile(root: Path) -> dict[str, str]:
    """Each target with what it needs."""
    text = (root / "Makefile").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z]+):([^#\n=]*)", text, re.MULTILINE))


@pytest.mark.parametrize("page", NAMING)
def test_files_that_are_named_are_there(root: Path, page: str) -> None:
    text = (root / page).read_text(encoding="utf-8")
    folder = (root / page).parent
    named = {word for word in re.findall(r"`([\w./-]+)`", text) if word.split("/")[0] in ROOMS and "/" in word}
    linked = set(re.findall(r"\]\(([^):#]+)", text))
    assert named or linked
    assert [name for name in named if not (root / name).exists()] == []
    assert [name for name in linked if not (folder / name).exists()] == []


def test_commands_that_are_shown_can_be_given(contributing: str, root: Path, makefile: dict[str, str]) -> None:
    lines = [line for block in blocks(contributing) if block.language == "sh" for line in block.body.splitlines()]
    assert len(lines) > 8
    for line in lines:
        command, *words = line.split("#")[0].split()
        scripts = [word for word in words if "/" in word]
        assert command in ("make", ".ci/run", ".venv/bin/python"), line
        assert command != "make" or makefile.keys() >= set(words), line
        assert all((root / script).exists() for script in scripts), line
        if "-k" in words:
            (file,), wanted = scripts, words[words.index("-k") + 1]
            assert re.search(rf"def test_\w*{wanted}", (root / file).read_text(encoding="utf-8")), line


def test_helpers_that_are_named_are_there(contributing: str) -> None:
    sentence = contributing[: contributing.index("of\n  `tests/support.py`")].rsplit("process: ", 1)[1]
    names = re.findall(r"`(\w+)`", sentence)
    assert len(names) > 2
    assert [name for name in names if not hasattr(support, name)] == []


def test_lists_that_are_named_are_there(contributing: str, root: Path) -> None:
    named = re.findall(r"`([A-Z]{4,})`\sof\s+`([\w./-]+)`", contributing)
    assert {name for name, _ in named} >= {"RULES", "READERS", "WRITERS", "PAGES"}
    for name, file in named:
        assert re.search(rf"\b{name}\b.* = ", (root / file).read_text(encoding="utf-8")), (name, file)


def test_the_rule_of_the_example_works(contributing: str) -> None:
    (block,) = [block for block in blocks(contributing) if block.language == "python"]
    space: dict[str, Any] = {}
    exec(compile(block.body, "memset_bound.py", "exec"), space)
    assert isinstance(space["RULE"], Rule)
    (found,) = space["find"](facts_of_drawing(CLEARED))
    assert (found.rule, found.cost_ns_per_step) == (space["RULE"].id, 40_000)
    assert space["find"](planted_facts("healthy")) == []


def test_the_glossary_has_each_word_once_in_order(contributing: str) -> None:
    words = re.findall(r"^\| ([a-z][\w, -]+) \|", contributing.split("## Glossary")[1], re.MULTILINE)[1:]
    assert len(words) >= 25
    assert len(words) == len(set(words))
    assert words == sorted(words)


def test_make_check_is_what_ci_runs_but_the_slow_tests(root: Path, makefile: dict[str, str]) -> None:
    stages = re.findall(r"^stage (\w+) \d+ (.*?)(?:  #.*)?$", (root / ".ci/run").read_text(), re.MULTILINE)
    assert {name for name, _ in stages} >= SLOW
    assert {f"make {name}" for name in makefile["check"].split()} == {
        command for name, command in stages if name not in SLOW
    }


def test_hooks_before_a_commit_are_commands_of_the_makefile(root: Path) -> None:
    (repository,) = yaml.safe_load((root / ".pre-commit-config.yaml").read_text())["repos"]
    commands = (root / "Makefile").read_text(encoding="utf-8")
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["entry"].replace(".venv/bin", "$(BIN)") in commands


def test_workflows_run_what_a_contributor_runs(root: Path) -> None:
    def commands(name: str) -> str:
        workflow = yaml.safe_load((root / ".github/workflows" / name).read_text())
        return "\n".join(step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"])

    assert commands("checks.yml").splitlines()[-1] == ".ci/run"
    built = commands("package.yml")
    assert "python -m build" in built
    for shown in re.findall(r"examples/\S+", built):
        assert (root / shown).exists()
