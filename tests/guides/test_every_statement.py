"""Every statement has exactly one test, every test a statement, and all of them the numbers of the guides."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tests.guides.statements import GUIDES, STATEMENTS

FOLDER = Path(__file__).parent
COUNTS = {"A": 71, "B": 21, "C": 19, "D": 25}


def names() -> list[str]:
    """The names of the tests of statements."""
    files = (path for path in sorted(FOLDER.glob("test_*.py")) if path.name != Path(__file__).name)
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    return [node.name for tree in trees for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]  # fmt: skip


def test_the_statements_are_those_of_the_guides() -> None:
    wanted = [f"{guide}{number}" for guide, count in COUNTS.items() for number in range(1, count + 1)]
    assert [statement.id for statement in STATEMENTS] == wanted
    assert set(GUIDES) == set(COUNTS)


def test_every_statement_has_one_test_and_every_test_a_statement() -> None:
    numbers = [re.match(r"test_([a-d]\d+)_[a-z0-9]", name) for name in names()]
    assert None not in numbers, [name for name, number in zip(names(), numbers, strict=True) if number is None]
    found = Counter(number[1].upper() for number in numbers if number)
    assert found == Counter(statement.id for statement in STATEMENTS)


def test_every_statement_says_what_it_promises_and_how_it_is_shown() -> None:
    for statement in STATEMENTS:
        assert statement.promise[0].isupper() or statement.promise[0] == "`" or statement.promise[0].isdigit()
        assert not statement.promise.endswith(".")
        assert statement.command.startswith("stepscope ")
    assert not [promise for promise, times in Counter(one.promise for one in STATEMENTS).items() if times > 1]
