"""The report room: makers arrange what was computed, renderers turn the document into text, and neither computes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import stepscope

REPORT = Path(stepscope.__file__).parent / "report"
MAKERS = frozenset({
    "analyses", "annotated", "critical", "document", "efficiency", "entries", "exchange", "input_pipeline", "memory",
    "op_costs", "op_tree", "over_ranks", "program_memory", "ranks", "serving",
})  # fmt: skip
"""What makes the document of facts; all else in the room sees the document alone."""
OF_JOBS = frozenset({"document", "exchange", "over_ranks", "ranks"})
"""Makers of what only jobs, or exchanges between devices, have."""
ARITHMETIC = ("numpy", "numba", "scipy")
COMPUTING = ("stepscope.analysis", "stepscope.cluster", "stepscope.whatif")


def imported(file: Path) -> set[str]:
    """Every module that a file names, where it is imported at once and where on use; for types alone none is."""
    found: set[str] = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def under(modules: set[str], rooms: tuple[str, ...]) -> list[str]:
    """Those of some rooms; thresholds are numbers, which no room keeps to itself."""
    found = (module for module in modules if any(f"{module}.".startswith(f"{room}.") for room in rooms))
    return sorted(module for module in found if ".limits" not in module)


def test_the_makers_are_there() -> None:
    assert {file.stem for file in REPORT.glob("*.py")} >= MAKERS >= OF_JOBS


@pytest.mark.parametrize("file", sorted(REPORT.glob("*.py")), ids=lambda file: file.stem)
def test_no_file_of_the_report_computes(file: Path) -> None:
    modules = imported(file)
    assert not under(modules, ARITHMETIC)
    if file.stem not in MAKERS:
        assert not under(modules, COMPUTING)
    if file.stem not in OF_JOBS:
        assert not under(modules, ("stepscope.cluster",))
