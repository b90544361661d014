"""Names that say what they hold: some words say nothing of what a variable is, and none is called so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

EMPTY = frozenset({"found", "obj", "res", "ret", "stuff", "temp", "thing", "things", "tmp"})


def test_nothing_has_a_name_that_says_nothing(root: Path, modules: list[Path]) -> None:
    empty = [
        f"{path.relative_to(root).as_posix()}:{line} {name}"
        for path in modules
        for name, line in names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in EMPTY
    ]
    assert empty == []


def test_nothing_of_the_pages_does_either(root: Path) -> None:
    empty = re.compile(rf"\b(?:const|let) (?:{'|'.join(sorted(EMPTY))})\b")
    scripts = (root / "src/stepscope/web/static").rglob("*.js")
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in scripts}
    assert len(texts) > 50
    assert {name: empty.findall(text) for name, text in texts.items() if empty.search(text)} == {}


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What a module gives a name, and where: variables, attributes, arguments and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


def test_every_way_of_naming_is_seen() -> None:
    text = "def f(a, *, b):\n  c = d.e = 1\n  for g in []: pass\n  return lambda h: [i for i in a if (j := i)]\n"
    assert sorted(name for name, _ in names(ast.parse(text))) == list("abcefghij")
