"""What a command holds profiles to: the conditions it is given, else those of the project it is started in."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.errors import UsageError

if TYPE_CHECKING:
    from stepscope.comparison.budgets import Budget

_KEY = "fail-if"


def budgets_of(conditions: Sequence[str], folder: Path, *, changes: bool = True) -> list[Budget]:
    """The budgets of ``--fail-if``, where there are none those of the project that a folder lies in.

    Of a project's without ``changes`` those that hold of a single profile. Raises UsageError where one is no budget.
    """
    texts = conditions or of_project(folder)
    if not texts:
        return []
    from stepscope.comparison.budgets import parse

    return [budget for budget in map(parse, texts) if conditions or changes or not budget.relative]


def of_project(folder: Path) -> list[str]:
    """``fail-if`` of ``[tool.stepscope]`` in the pyproject.toml of a folder or the nearest above it; none without.

    Raises UsageError where it is not a list of conditions, and where the table holds anything else: a misspelt key is
    a gate that never fires.
    """
    path = next((p for p in (place / "pyproject.toml" for place in (folder, *folder.parents)) if p.is_file()), None)
    if path is None:
        return []
    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("stepscope", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.stepscope must be a table")
    unknown = sorted(set(table) - {_KEY})
    if unknown:
        raise UsageError(f"{path}: [tool.stepscope] knows {_KEY} only, not {', '.join(unknown)}")
    budgets = table.get(_KEY, [])
    if not isinstance(budgets, list) or not all(isinstance(text, str) for text in budgets):
        raise UsageError(f"{path}: {_KEY} in [tool.stepscope] must be a list of conditions")
    return budgets
