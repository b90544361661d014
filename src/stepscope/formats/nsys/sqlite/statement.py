"""The columns that a ``CREATE TABLE`` statement declares: read as text, never run."""

from __future__ import annotations

import re

from stepscope.record import record
from stepscope.regex import regex

LONGEST = 1 << 18
"""Characters of a statement that are read: the widest table of Nsight Systems takes 5,000."""

_TOKEN = regex(
    r"""\s+|--[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"]|"")*"|`(?:[^`]|``)*`|'(?:[^']|'')*'|\[[^\]]*\]|\w+|.""", re.DOTALL
)
_TABLE_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}
_QUOTES = {'"': '"', "`": "`", "'": "'", "[": "]"}


@record
class DeclaredColumns:
    """The columns of a table in their order, and the one (or -1) that is another name of the row id."""

    columns: tuple[str, ...]
    rowid: int


def declared(statement: str) -> DeclaredColumns | None:
    """What a statement declares; None where its rows are not those of an ordinary table.

    >>> declared("CREATE TABLE t (id INTEGER PRIMARY KEY, -- a, b\\n [end] INT, PRIMARY KEY (id))")
    Declared(columns=('id', 'end'), rowid=0)
    """
    tokens = [t for t in _TOKEN.findall(statement[:LONGEST]) if not (t.isspace() or t.startswith(("--", "/*")))]
    if [token.upper() for token in tokens[:2]] != ["CREATE", "TABLE"] or "(" not in tokens:
        return None
    parts, rest = _split(tokens[tokens.index("(") + 1 :])
    if "WITHOUT" in (token.upper() for token in rest):
        return None
    columns = [part for part in parts if part and part[0].upper() not in _TABLE_CONSTRAINTS]
    if any(word in ("GENERATED", "AS") for part in columns for word in (token.upper() for token in part[1:])):
        return None  # A generated column may not be stored, so those behind it would be taken for others.
    names = tuple(_plain(part[0]) for part in columns)
    keys = [[_plain(token) for token in part] for part in parts if part and part[0].upper() in _TABLE_CONSTRAINTS]
    alone = [key[-2] for key in keys if [word.upper() for word in key[-5:-2]] == ["PRIMARY", "KEY", "("]]
    for at, part in enumerate(columns):
        words = [token.upper() for token in part[1:]]
        if words[:1] == ["INTEGER"] and (names[at] in alone or "PRIMARY KEY" in " ".join(words)):
            return DeclaredColumns(names, at)
    return DeclaredColumns(names, -1)


def _split(tokens: list[str]) -> tuple[list[list[str]], list[str]]:
    """What stands between the commas of a list, and what follows the bracket that closes it."""
    parts: list[list[str]] = [[]]
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if depth < 0:
            return parts, tokens[at + 1 :]
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts, []


def _plain(token: str) -> str:
    """A name without its quotes."""
    close = _QUOTES.get(token[0])
    return token[1:-1].replace(close * 2, close) if close else token
