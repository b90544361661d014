"""Size ratchets: what grows unwatched is what makes code hard to read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 450
FUNCTION_LINES = 50

# What is larger for a good reason, by "file" or "file::function", with the reason. An entry that is no longer
# needed fails too.
LARGER = {
    "src/stepscope/formats/chrome/scan/kernel.py::scan": "one compiled loop: its variables stay in registers",
}


def test_files_and_functions_stay_small(root: Path, modules: list[Path]) -> None:
    large = {}
    for path in modules:
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        if (lines := len(text.splitlines())) > FILE_LINES:
            large[name] = lines
        for function, length in functions(ast.parse(text)):
            if length > FUNCTION_LINES:
                large[f"{name}::{function}"] = length
    assert {name: lines for name, lines in large.items() if name not in LARGER} == {}
    assert sorted(LARGER.keys() - large.keys()) == []


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Qualified name and number of lines of every function, decorators not counted."""
    for node in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}."
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield f"{prefix}{node.name}", node.end_lineno - node.lineno + 1
        yield from functions(node, name)


def test_the_measure_sees_nested_and_async_functions() -> None:
    tree = ast.parse("class A:\n  def f(self):\n    async def g():\n      pass\n      pass\n    return g\n")
    assert dict(functions(tree)) == {"A.f": 5, "A.f.g": 3}
