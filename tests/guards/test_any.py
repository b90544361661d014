"""Types say what values hold: `any` in a type is a value that nobody checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

BARE = {
    "src/stepscope/report/schema.py": 1,  # A JSON Schema, for whoever asks for one.
}
"""Where a dict of anything is meant, and how often."""

_TAGS = re.compile(r"@(?:type|param|returns|typedef|template)\s+\{")


def test_no_type_of_the_pages_is_any(root: Path) -> None:
    pages = root / "src" / "stepscope" / "web" / "static"
    told = {path.relative_to(pages).as_posix(): list(anys(path.read_text("utf-8"))) for path in pages.rglob("*.js")}
    assert len(told) > 100
    assert {name: types for name, types in told.items() if types} == {}


def test_what_makes_and_shows_documents_names_their_types(root: Path) -> None:
    rooms = [root / "src" / "stepscope" / room for room in ("document", "report")]
    told = {path.relative_to(root).as_posix(): path.read_text("utf-8") for room in rooms for path in room.rglob("*.py")}
    bare = {name: text.count("dict[str, Any]") for name, text in told.items() if "dict[str, Any]" in text}
    assert bare == BARE


def anys(text: str) -> Iterator[str]:
    """The types in comments of JavaScript that have an `any`."""
    for tag in _TAGS.finditer(text):
        depth, end = 1, tag.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if re.search(r"\bany\b", text[tag.end() : end - 1]):
            yield text[tag.end() : end - 1]


def test_the_measure_sees_nested_types_and_no_prose() -> None:
    text = "/** Of any kind. @param {{a: {b: any[]}}} x of any */ /** @type {number} any */ /** @returns {any} */"
    assert list(anys(text)) == ["{a: {b: any[]}}", "any"]
