"""The pages that are generated from the code are in step with it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def pages(root: Path) -> dict[str, str]:
    """Page name to text, as docs/generate.py makes them."""
    made: dict[str, str] = runpy.run_path(str(root / "docs" / "generate.py"))["pages"]()
    return made


def test_generated_pages_are_in_step_with_the_code(root: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert (root / "docs" / name).read_text(encoding="utf-8") == text, (
            f"docs/{name} is stale: run make docs"
        )


def test_the_tables_page_has_every_column(pages: dict[str, str]) -> None:
    """Read back from the page, so that a generator which drops rows is noticed."""
    from stepscope.trace.tables import TABLES

    sections = {part.split("\n", 1)[0].strip("` "): part for part in pages["tables.md"].split("\n## ")[1:]}
    for name, table in TABLES.items():
        rows = [
            line.split("|")[1].strip(" `") for line in sections[name].splitlines() if line.startswith("| `")
        ]
        assert rows == list(table.__dataclass_fields__)
