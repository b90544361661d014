"""What compiled loops hold: machine code that is kept is made anew where a module of theirs changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MARKS = {"kernel", "native", "inlined", "outlined"}


def loops(module: ast.Module) -> Iterator[ast.FunctionDef]:
    """The loops of a module and their parts."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and {ast.unparse(mark) for mark in node.decorator_list} & MARKS:
            yield node


def test_no_loop_holds_a_threshold(modules: list[Path]) -> None:
    """Thresholds are given to loops: one that was changed would else stand in kept code as it was (``_behind``)."""
    seen, wrong = 0, []
    for path in modules:
        module = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in module.body if isinstance(node, ast.ImportFrom) and node.module]
        limits = {alias.name for node in imports if node.module.endswith(".limits") for alias in node.names}
        for loop in loops(module):
            seen += 1
            used = {node.id for node in ast.walk(loop) if isinstance(node, ast.Name)}
            wrong += [f"{path.name}: {loop.name} holds {name}" for name in used & limits]
    assert wrong == []
    assert seen > 100
