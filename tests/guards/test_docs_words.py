"""Docs have a budget of words: what grows unwatched is read by nobody."""

from __future__ import annotations

from pathlib import Path

ALL = 28_500
PAGE = 1_200
LARGER = {
    "cli.md": 2_320,
    "formats.md": 1_930,
    "report-schema.md": 1_760,
    "rules.md": 1_300,
    "truth.md": 1_420,
}
"""References that are looked things up in, one line for each; a page that no longer needs its place here fails too."""


def words(text: str) -> int:
    """Words and figures: what has a letter or a digit in it."""
    return sum(any(character.isalnum() for character in word) for word in text.split())


def test_no_page_and_not_all_together_are_longer_than_is_read(root: Path) -> None:
    docs = root / "docs"
    counted = {page.relative_to(docs).as_posix(): words(page.read_text("utf-8")) for page in docs.rglob("*.md")}
    assert {page: count for page, count in counted.items() if count > LARGER.get(page, PAGE)} == {}
    assert sorted(page for page in LARGER if counted.get(page, 0) <= PAGE) == []
    assert sum(counted.values()) <= ALL


def test_rules_of_tables_are_no_words() -> None:
    assert words("| a 1 | — |\n| --- | ✓ |") == 2
