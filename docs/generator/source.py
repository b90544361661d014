"""Reads texts out of the source, where they are not values one can import."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType

from stepscope import limits
from stepscope.diagnosis.rule import with_unit

_TEXTS = (ast.Constant, ast.JoinedStr)


def tree(module: ModuleType) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(inspect.getsource(module))


def calls(module: ModuleType, *names: str) -> Iterator[ast.Call]:
    """Calls of functions or methods of these names, in the order in which they are written."""
    found = [node for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
    for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in names:
            yield node


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """A keyword argument of a call."""
    return next((given.value for given in call.keywords if given.arg == name), None)


def text(node: ast.AST, module: ModuleType) -> str:
    """A text as one reads it; what is filled in becomes ‹its name›, the texts that can stand there, or …"""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text(part, module) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return filled(node.value, module)
    return f"‹{ast.unparse(node)}›"


def filled(node: ast.expr, module: ModuleType) -> str:
    """What stands in a place that is filled in."""
    if isinstance(node, ast.Subscript) and isinstance(table := getattr(module, ast.unparse(node.value), None), dict):
        return " / ".join(str(value) for value in table.values())
    if isinstance(node, ast.IfExp):
        return text(node.orelse if isinstance(node.orelse, _TEXTS) else node.body, module)
    if not isinstance(node, ast.Name):
        return "…"
    chosen = [assigned.value for assigned in assignments(module, node.id)]
    if chosen and all(is_choice_of_texts(value) for value in chosen):
        return filled(chosen[0], module)
    return f"‹{node.id}›"


def is_choice_of_texts(node: ast.expr) -> bool:
    """Whether an expression is one text or another, of which at least one stands there."""
    return isinstance(node, ast.IfExp) and (isinstance(node.body, _TEXTS) or isinstance(node.orelse, _TEXTS))


def assignments(module: ModuleType, name: str) -> Iterator[ast.Assign]:
    """Plain assignments to a name, anywhere in a module."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            yield node


def limit_texts() -> dict[str, str]:
    """What ``limits.py`` says below each limit; limits of one kind that stand together share the text."""
    found: dict[str, str] = {}
    open_names: list[str] = []
    for node in tree(limits).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            open_names.append(node.target.id)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            said = " ".join(str(node.value.value).replace("``", "`").split())
            kind = open_names[-1].split("_")[0] if open_names else ""
            found |= {name: said if name.startswith(kind) else "" for name in open_names}
            open_names = []
    return found


def limit_value(name: str) -> str:
    """A limit of ``limits.py`` with its unit."""
    return with_unit(name, getattr(limits, name))
