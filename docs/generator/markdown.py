"""What the pages share: Markdown tables and placeholders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    lines = [titles, ["---"] * len(titles), *([cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Text on one line, safe inside a table."""
    return " ".join(text.split()).replace("|", "\\|")


def sentence(text: str) -> str:
    """With a capital at the start and a full stop at the end."""
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", ":")) else ".")


def section(title: str, *paragraphs: str) -> str:
    """A second-level section; empty paragraphs are left out."""
    return "\n\n".join([f"## {title}", *(part.strip("\n") for part in paragraphs if part.strip())]) + "\n"
