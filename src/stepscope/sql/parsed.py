"""Takes a query apart, and allows what is on a list: one SELECT, declared tables, known functions.

Two parsers see a query, this one (sqlglot) and the engine's own, and must not take the same text for two things. What
the languages of the world read differently is therefore refused first: comments, escapes, other quotes than ``'`` and
``"``, and every character outside of quotes that is not ASCII.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from stepscope.errors import UsageError
from stepscope.record import record
from stepscope.regex import regex
from stepscope.sql.functions import BEFORE_PARENTHESES, FUNCTIONS
from stepscope.sql.limits import QUERY_CHARACTERS, QUERY_DEPTH, QUERY_STEPS

_PIECE = regex(
    r"""(?P<text>'(?:[^']|'')*') | (?P<name>"(?:[^"]|"")*") | (?P<word>[A-Za-z_][A-Za-z0-9_]*) | (?P<number>[0-9]\w*)
    | (?P<space>[ \t\r\n]+) | (?P<comment>--|/\*) | (?P<mark>\^@|[-+*/%<>=!|&^~.,:;()\[\]])""",
    re.VERBOSE | re.ASCII,
)
_DIALECT = "duckdb"
"""Of sqlglot's dialects the one nearest to polars' SQL: it alone knows ``//``, ``^@``, EXCLUDE and COLUMNS."""


@record
class Parsed:
    """What a query needs."""

    tables: frozenset[str]
    """The declared tables it reads."""
    columns: frozenset[str] | None
    """Every name in it, so that columns of other names need not be made ready; None where it may mean any."""


@record
class _Piece:
    kind: str
    text: str


def parse(sql: str, tables: Collection[str]) -> Parsed:
    """What a query needs. Raises UsageError with one sentence where it is no SELECT of these tables alone."""
    pieces = _pieces(sql)
    tree = _tree(sql)
    named = _check_tables(tree, tables)
    _check_calls(pieces, _renamed(tree))
    return Parsed(named, None if _takes_all(tree, pieces) else _names(pieces))


# --- the text ---------------------------------------------------------------------------------------------------------


def _pieces(sql: str) -> list[_Piece]:
    """The words, texts and marks of a query, without spaces."""
    if len(sql) > QUERY_CHARACTERS:
        raise UsageError(f"a query has at most {QUERY_CHARACTERS:,} characters, this one has {len(sql):,}")
    pieces = list(_split(sql))
    if not pieces or pieces[0].text.lower() not in ("select", "with", "from", "("):
        raise UsageError("a query begins with SELECT (or WITH)")
    depth = 0
    for piece in pieces:
        depth += (piece.text in ("(", "[")) - (piece.text in (")", "]"))
        if depth > QUERY_DEPTH:
            raise UsageError(f"a query has at most {QUERY_DEPTH} parentheses within each other")
    return pieces


def _split(sql: str) -> Iterator[_Piece]:
    at, before = 0, ""
    while at < len(sql):
        match = _PIECE.match(sql, at)
        if match is None or match["comment"]:
            mark = match[0] if match else sql[at]
            raise UsageError(f"a query cannot hold {_shown(mark)} outside of quotes")
        kind = match.lastgroup or ""
        if kind in ("text", "name"):
            _check_quoted(match[0], before)
        if kind != "space":
            yield _Piece(kind, match[0])
        at, before = match.end(), kind if kind != "mark" else match[0]


def _check_quoted(quoted: str, before: str) -> None:
    """``before`` is what stands right before it: E'…', U&'…' and r"…" have rules of their own."""
    if before in ("word", "number", "text", "name", "&"):
        raise UsageError("a query holds nothing right before a quote; a quote within a text is written twice")
    if re.search(r"""\\['"]""", quoted):
        raise UsageError("a query cannot hold a backslash before a quote; a quote within a text is written twice")
    if "\0" in quoted:
        raise UsageError("a query cannot hold a zero byte")


def _shown(mark: str) -> str:
    return mark if mark.isascii() and mark.isprintable() else f"U+{ord(mark):04X}"


# --- the parse --------------------------------------------------------------------------------------------------------


def _tree(sql: str) -> Any:
    log = logging.getLogger("sqlglot")
    silent, log.disabled = log.disabled, True  # It warns of what is refused below.
    try:
        dialect = Dialect.get_or_raise(_DIALECT)
        tokens = dialect.tokenize(sql)
        parser = _bounded_parser()(dialect=dialect)
        parser.left = QUERY_STEPS * (len(tokens) + QUERY_DEPTH)
        statements = parser.parse(tokens, sql)
    except sqlglot.errors.SqlglotError as error:
        raise UsageError(f"the query failed: {_reason(error)}") from error
    except RecursionError as error:
        raise UsageError("the query failed: it is nested too deeply") from error
    finally:
        log.disabled = silent
    statements = [statement for statement in statements if statement is not None]
    if len(statements) != 1:
        raise UsageError("a query is one SELECT, and no more")
    [tree] = statements
    if not isinstance(tree, exp.Query) or any(isinstance(node, _CHANGES) for node in tree.walk()):
        raise UsageError("a query is one SELECT, which changes nothing")
    return tree


@cache
def _bounded_parser() -> Any:
    """sqlglot's parser, which tries one way after another at each depth, and so can take a time that doubles with each;
    this one gives up instead."""
    kind: Any = Dialect.get_or_raise(_DIALECT).parser_class

    def advance(self: Any, times: int = 1) -> None:
        self.left -= 1
        if self.left < 0:
            raise UsageError("the query failed: it is too tangled to be parsed; write it in simpler parts")
        kind._advance(self, times)

    return type("BoundedParser", (kind,), {"_advance": advance, "left": 0})


_CHANGES = tuple(
    kind
    for name in ("Command", "Create", "Delete", "Drop", "Insert", "Into", "Lock", "Merge", "Update")
    if (kind := getattr(exp, name, None)) is not None
)


def _reason(error: Exception) -> str:
    errors = getattr(error, "errors", None)
    if not errors:
        return str(error).split("\n", 1)[0].rstrip(".")
    told = str(errors[0].get("description")).split(" but got <", 1)[0].split(" for <", 1)[0].rstrip(".")
    near = str(errors[0].get("highlight") or "").strip()
    return told + (f", at {near[:40]!r}" if near else "")


def _check_tables(tree: Any, tables: Collection[str]) -> frozenset[str]:
    own = {node.alias.lower() for node in tree.find_all(exp.CTE)}
    named = set()
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            raise UsageError("a query reads the tables of the profile, not files, and no function makes a table")
        name = ".".join(part.name for part in table.parts)
        if name.lower() in tables:
            named.add(name.lower())
        elif name.lower() not in own:
            raise UsageError(f"the query failed: relation {name!r} was not found; the tables are {', '.join(tables)}")
    return frozenset(named)


def _renamed(tree: Any) -> frozenset[str]:
    """Names that a query gives to what it makes, whose columns may follow in parentheses."""
    return frozenset(node.name.lower() for node in tree.find_all(exp.TableAlias) if node.args.get("columns"))


def _check_calls(pieces: list[_Piece], renamed: frozenset[str]) -> None:
    for piece, following in pairwise(pieces):
        if following.text != "(" or piece.kind not in ("word", "name", "text"):
            continue
        name = piece.text.lower() if piece.kind == "word" else piece.text[1:-1].lower()
        if name in renamed or (piece.kind == "word" and (name in FUNCTIONS or name in BEFORE_PARENTHESES)):
            continue
        if re.match(r"(?:read|scan)_|glob$", name):
            raise UsageError("a query reads the tables of the profile, not files")
        raise UsageError(f"a query cannot call {name[:40]!r}: it is none of the functions that queries may use")


def _takes_all(tree: Any, pieces: list[_Piece]) -> bool:
    """Whether columns are meant that are not named."""
    if {"columns", "natural"} & {piece.text.lower() for piece in pieces if piece.kind == "word"}:
        return True
    stars = (star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count))
    from_first = any(not select.expressions for select in tree.find_all(exp.Select))
    return from_first or next(stars, None) is not None


def _names(pieces: list[_Piece]) -> frozenset[str]:
    words = {piece.text for piece in pieces if piece.kind == "word"}
    quoted = {piece.text[1:-1] for piece in pieces if piece.kind in ("name", "text")}
    return frozenset(words | quoted)
