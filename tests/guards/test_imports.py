"""Imports point one way, nothing inside imports the public names, and the public names are light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Container
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

HEAVY = ("numpy", "polars", "numba", "llvmlite", "msgspec", "isal", "rich", "click", "sqlglot")


def test_import_directions_hold(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    status = lint_imports(cache_dir=None)
    assert status == 0, capsys.readouterr().out


def test_nothing_inside_imports_the_public_names(modules: list[Path], root: Path) -> None:
    package = root / "src" / "stepscope"
    inner = {path.stem for path in package.iterdir()}
    wrong = []
    texts = {path: path.read_text(encoding="utf-8") for path in modules}
    for path, text in texts.items():
        if not re.search(r"import.*\bstepscope\b|from\s+stepscope\s+import", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import) and any(alias.name == "stepscope" for alias in node.names):
                wrong.append(f"{path.relative_to(root)}:{node.lineno}")
            if isinstance(node, ast.ImportFrom) and node.module == "stepscope":
                wrong += [
                    f"{path.relative_to(root)}:{node.lineno} {alias.name}"
                    for alias in node.names
                    if alias.name not in inner
                ]
    assert wrong == []


RENDERERS = ("terminal", "markdown", "json_", "sections")
COMPUTES = ("numpy", "polars", "numba", *(f"stepscope.{name}" for name in
            ("analysis", "cluster", "diagnosis", "whatif", "trace", "readers", "comparison", "sql")))  # fmt: skip


def test_renderers_compute_nothing(root: Path) -> None:
    """What makes text of a document, and what that is made of, imports nothing that could work figures out."""
    folder = root / "src" / "stepscope" / "report"
    waiting, seen, wrong = list(RENDERERS), set[str](), []
    while waiting:
        if (name := waiting.pop()) in seen:
            continue
        seen.add(name)
        for module in imported((folder / f"{name}.py").read_text(encoding="utf-8")):
            inner = module.removeprefix("stepscope.report.")
            if (folder / f"{inner}.py").exists():
                waiting.append(inner)
            computes = module.startswith(COMPUTES) and ".limits" not in module
            wrong += [f"{name}: {module}"] if computes else []
    assert wrong == []
    assert {"tables", "phrases", "rank_sections", "op_sections"} <= seen


def imported(source: str) -> list[str]:
    """Every module that a source imports, wherever it does, and what it takes from packages."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def test_no_two_modules_need_each_other(modules: list[Path], root: Path) -> None:
    """Within a room too, for types alone too, and where something is imported on use."""
    paths = {name_of(path, root): path for path in modules}
    needs = {name: taken(name, path, paths.keys()) - {name} for name, path in paths.items()}
    assert sum(map(len, needs.values())) > len(needs)
    TopologicalSorter(needs).prepare()  # Raises CycleError with the circle.


def name_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def taken(name: str, path: Path, modules: Container[str]) -> set[str]:
    """The modules of the package that a module takes something from."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    needed = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            needed |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            whole = resolve_name("." * node.level + (node.module or ""), package)
            parts = [f"{whole}.{alias.name}" for alias in node.names]
            needed |= {part if part in modules else whole for part in parts}
    return {module for module in needed if module in modules}


def test_importing_stepscope_loads_nothing_heavy() -> None:
    """A training job pays for what it imports; see sys.modules of a fresh interpreter."""
    script = f"import stepscope, sys; print(*(set({HEAVY!r}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == []


def test_the_heavy_list_names_real_modules() -> None:
    """A misspelt name would make the test above pass whatever happens."""
    script = f"import importlib, sys; [importlib.import_module(name) for name in {HEAVY!r}]"
    subprocess.run([sys.executable, "-c", script], check=True)
