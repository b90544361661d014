"""``docs/guides-coverage.md``: what tuning guides promise, and the command that shows it, from the tests' own table."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

from generator.markdown import section, table

TESTS = Path(__file__).parents[2] / "tests" / "guides"

INTRO = """\
# What tuning guides promise

Made from `tests/guides/statements.py` by `make docs`.

The published tuning guides of four profilers, taken apart into {count} statements of what a tool captures, shows,
computes or advises. Each has a test in `tests/guides` that builds the situation, knows what is true of it, and asks
what the command prints; `pytest tests/guides -k a13_` runs the one of A13.

*Made* says that only a GPU or TPU writes such a profile: the test makes one, with the fields its profiler writes. The
others are shown on recordings of CPUs and of real jobs, or need no device.
"""
_TITLES = ("", "what is promised", "shown by", "profile", "test")


def page() -> str:
    """A table per guide."""
    told = runpy.run_path(str(TESTS / "statements.py"))
    statements, places = told["STATEMENTS"], _tests()
    parts = [INTRO.format(count=len(statements))]
    for letter, (title, link) in told["GUIDES"].items():
        rows = (_row(one, places[one.id]) for one in statements if one.id.startswith(letter))
        parts.append(
            section(title, f"More: <{link}>." if "://" in link else f"More: [{link}]({link}).", table(_TITLES, rows))
        )
    return "\n".join(parts)


def _row(statement: Any, place: str) -> tuple[str, ...]:
    return statement.id, statement.promise, f"`{statement.command}`", "made" if statement.gpu else "", place


def _tests() -> dict[str, str]:
    """Statement to the file of its test."""
    return {
        node.name.split("_")[1].upper(): f"[{path.stem.removeprefix('test_')}](../tests/guides/{path.name})"
        for path in sorted(TESTS.glob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
