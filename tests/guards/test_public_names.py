"""What is public is documented, in the code and in the documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import stepscope


def test_every_public_name_exists_and_is_documented(root: Path) -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (root / "README.md", *(root / "docs").rglob("*.md")))
    for name in stepscope.__all__:
        value = getattr(stepscope, name)
        assert isinstance(value, str) or value.__doc__, f"stepscope.{name} has no docstring"
        if name.startswith("__"):
            continue
        assert re.search(rf"\b{name}\b", pages), f"stepscope.{name} is in neither README.md nor docs/"


def test_dir_lists_the_public_names() -> None:
    assert set(stepscope.__all__) <= set(dir(stepscope))


def declares_rule(tree: ast.Module) -> bool:
    """Whether a module is a rule's."""
    return any(isinstance(node, ast.Assign) and ast.unparse(node).startswith("RULE = Rule(") for node in tree.body)


def test_every_module_class_and_public_function_has_a_docstring(modules: list[Path], root: Path) -> None:
    missing = []
    for path in modules:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        # An empty __init__.py has nothing to say, and a rule's file says it in its declaration.
        if tree.body and not ast.get_docstring(tree) and not declares_rule(tree):
            missing.append(str(path.relative_to(root)))
        missing += [f"{path.relative_to(root)}: {name}" for name in undocumented(tree)]
    assert missing == []


ONE_PER_FRAMEWORK = "ProfileCallback"
"""What users import from the integration of their framework, where its name says what it is."""


def test_a_public_class_has_its_name_alone(modules: list[Path], root: Path) -> None:
    homes: dict[str, list[str]] = {}
    for path in modules:
        text = path.read_text(encoding="utf-8")
        for name in public_classes(ast.parse(text)) if "\nclass " in text else ():
            homes.setdefault(name, []).append(str(path.relative_to(root)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1}.keys() == {ONE_PER_FRAMEWORK}


def public_classes(tree: ast.Module) -> list[str]:
    """The names of a module's public classes."""
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def undocumented(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[str]:
    """Public functions, classes and methods without a docstring."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and not is_overload(node):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node, f"{prefix}{node.name}.")


def is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether the function only declares one of several signatures."""
    return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_the_measure_sees_methods_and_skips_private_names() -> None:
    tree = ast.parse('class A:\n  """A."""\n  def f(self): ...\n  def _g(self): ...\ndef h(): ...\n')
    assert list(undocumented(tree)) == ["A.f", "h"]


def test_the_changelog_knows_this_version(root: Path) -> None:
    headings = re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == stepscope.__version__


def test_locals_say_what_they_hold(modules: list[Path]) -> None:
    """A function of some lines in which something is ``found`` names what: few are left, and they become fewer."""
    texts = {path: path.read_text(encoding="utf-8") for path in modules}
    holders = [
        f"{path.name}::{function.name}"
        for path, text in texts.items()
        if re.search(r"\bfound\b", text)
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef) and (function.end_lineno or 0) - function.lineno > 5
        if any(isinstance(one, ast.Name) and one.id == "found" for one in ast.walk(function))
    ]
    assert len(holders) <= 40, holders
