"""What compiled loops hold: machine code that is kept is made anew where a module of theirs changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

UNCOUNTED = {"filling", "native", "inlined", "outlined"}
MARKS = {"kernel", *UNCOUNTED}
MAKE = {
    "arange",
    "array",
    "concatenate",
    "copy",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "sort",
    "zeros",
    "zeros_like",
}
NO_ARRAYS = {"None", "Any", "bool", "int", "tuple"}


@pytest.fixture(scope="module")
def marked(modules: list[Path]) -> list[tuple[Path, ast.Module]]:
    """The modules in which something bears a mark, parsed."""
    bears = re.compile(rf"^@(?:{'|'.join(MARKS)})$", re.MULTILINE)
    texts = ((path, path.read_text(encoding="utf-8")) for path in modules)
    return [(path, ast.parse(text)) for path, text in texts if bears.search(text)]


def loops(module: ast.Module, marks: set[str] = MARKS) -> Iterator[ast.FunctionDef]:
    """The loops of a module and their parts."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and {ast.unparse(mark) for mark in node.decorator_list} & marks:
            yield node


def test_no_loop_holds_a_threshold(marked: list[tuple[Path, ast.Module]]) -> None:
    """Thresholds are given to loops: one that was changed would else stand in kept code as it was (``_behind``)."""
    seen, wrong = 0, []
    for path, module in marked:
        imports = [node for node in module.body if isinstance(node, ast.ImportFrom) and node.module]
        limits = {alias.name for node in imports if node.module.endswith(".limits") for alias in node.names}
        for loop in loops(module):
            seen += 1
            used = {node.id for node in ast.walk(loop) if isinstance(node, ast.Name)}
            wrong += [f"{path.name}: {loop.name} holds {name}" for name in used & limits]
    assert wrong == []
    assert seen > 100


def test_what_belongs_together_is_given_to_loops_by_name(marked: list[tuple[Path, ast.Module]]) -> None:
    """More than three arrays in one argument are a NamedTuple: by position they would be taken for each other."""
    wrong = []
    for path, module in marked:
        for loop in loops(module):
            wrong += [f"{path.name}: {loop.name}, {one.arg}" for one in loop.args.args if _arrays_in(one) > 3]
    assert wrong == []


def test_loops_that_count_no_references_make_no_arrays(marked: list[tuple[Path, ast.Module]]) -> None:
    """An array that such a loop made or returned would have no owner: its memory would leak, or go too early."""
    seen, wrong = 0, []
    for path, module in marked:
        for loop in loops(module, UNCOUNTED):
            seen += 1
            made = {node.attr for node in ast.walk(loop) if isinstance(node, ast.Attribute)} & MAKE
            returned = set(re.findall(r"\w+", ast.unparse(loop.returns))) if loop.returns else set()
            wrong += [f"{path.name}: {loop.name} makes or returns {one}" for one in made | (returned - NO_ARRAYS)]
    assert wrong == []
    assert seen > 60


def _arrays_in(argument: ast.arg) -> int:
    match argument.annotation:
        case ast.Subscript(value=ast.Name("tuple"), slice=ast.Tuple(elts=held)):
            return len([one for one in held if ast.unparse(one) not in ("int", "float", "bool", "...")])
    return 0
