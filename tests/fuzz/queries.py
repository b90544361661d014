"""SQL: texts made of what is allowed and what is refused, and whether the engine is ever led beyond its tables."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

import polars as pl

from stepscope.errors import UsageError
from stepscope.sql.engine import Bounds, run
from stepscope.sql.functions import BEFORE_PARENTHESES, FUNCTIONS
from stepscope.sql.parsed import Parsed, parse
from tests import test_sql as known
from tests.fuzz.mutations import anyhow
from tests.fuzz.oracle import assert_sentence, words

SECRET, TOLD = "secret.csv", 918_273_645
"""A file that lies in the folder, and the number in it."""
_FRAMES = {
    "slices": pl.DataFrame({"id": [0, 1, 2], "name": ["a", "it's", "é"], "dur": [5, None, 9], "start": [0.5, 1.0, 7]}),
    "steps": pl.DataFrame({"id": [0, 1], "name": ["x", "y"], "slice": [1, 2]}),
}  # fmt: skip
_PLANNED = 400
"""The engine goes down as far as a text is long; of a longer one the parse is looked at alone."""
_READS = re.compile(r"^\s*(?:[A-Za-z]+ SCAN|PYTHON|ANONYMOUS)", re.MULTILINE)
"""How a plan begins to tell of what is no table in memory."""

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|--|/\*|\*/|\s+|.", re.DOTALL)
_REFUSED = (
    "read_csv", "READ_PARQUET", "scan_csv", "read_ipc", "glob", "read_json", "generate_series", "getenv", "unnest",
    "lateral", "TABLE", "INTO", "DROP TABLE slices", "INSERT INTO", "ATTACH", "COPY", "CREATE TABLE x AS", "EXPLAIN",
)  # fmt: skip
_MARKS = (
    "'", '"', "`", "--", "/*", "*/", ";", "$$", "E'", "U&'", "\\'", "#", "(", ")", "[", "]", ",", ".", "*", "::", "||",
    "//", "@", "?", ":x", "{{", "{%", "\0", "\u200b", "\ufeff", "ſ", "ｓ", "\udce9", "’", "\n", "=", "<", "-", "+", "~",
)  # fmt: skip
_PARTS = (
    "slices", "steps", '"slices"', "'slices'", "id", "name", "NULL", "0", "1e999", "9" * 30, "''", "UNION ALL",
    "SELECT", "FROM", "WITH x AS", "JOIN", "ON true", "WHERE", "GROUP BY ALL", "OVER ()", "EXISTS", "LIMIT", "x", "AS",
    "VALUES (1)",
)  # fmt: skip


def seeds() -> list[bytes]:
    """Queries that are answered."""
    return [sql.encode() for sql in known.ACCEPTED]


def tokens(random: Random, data: bytes, other: bytes) -> bytes:
    """Words and marks replaced, put in, left out and swapped; queries put into each other."""
    text = data.decode("utf-8", "surrogateescape")
    found = _TOKEN.findall(text)
    if not found:
        return anyhow(random, data, other)
    at, to = random.randrange(len(found)), random.randrange(len(found))
    match random.randrange(8):
        case 0:
            found[at] = _word(random)
        case 1:
            found.insert(at, f" {_word(random)} ")
        case 2:
            del found[at : at + random.choice((1, 1, 2, 5))]
        case 3:
            found[at], found[to] = found[to], found[at]
        case 4:
            found[at:at] = found[min(at, to) : max(at, to)] * random.choice((1, 1, 2, 30))
        case 5:
            called = random.choice((*_REFUSED, *sorted(FUNCTIONS)))
            found.insert(at, f"{called}{random.choice(('', ' ', chr(10), '/**/'))}('{SECRET}')")
        case 6:
            inner = other.decode("utf-8", "surrogateescape")
            found.insert(at, random.choice(("({})", "(SELECT * FROM ({}) q)", " {} ", "EXISTS ({})")).format(inner))
        case _:
            form = random.choice(known.FILES)
            return form.format(random.choice(_REFUSED[:6]), SECRET).encode("utf-8", "surrogateescape")
    return "".join(found).encode("utf-8", "surrogateescape")


def _word(random: Random) -> str:
    words = random.choice((_REFUSED, _MARKS, _PARTS, sorted(FUNCTIONS), sorted(BEFORE_PARENTHESES), (SECRET,)))
    word = random.choice(words)
    return random.choice((word, word, word.upper(), f"'{word}'", f'"{word}"'))


def answer(folder: Path, data: bytes, number: int) -> str:
    """A query refused in a sentence, or planned by the engine, which reads its tables and nothing else."""
    sql = data.decode("utf-8", "surrogateescape")
    try:
        found = parse(sql, _FRAMES)
    except UsageError as error:
        assert_sentence(error, beside=len(sql))
        return f"refused: {words(error.sentence)[:100]}"
    assert found.tables <= _FRAMES.keys()
    if len(_TOKEN.findall(sql)) > _PLANNED:
        return "partial: long"
    planned = _planned(sql, found)
    if number % 64 == 1:
        _asked(folder, sql, found)
    return planned


def _planned(sql: str, found: Parsed) -> str:
    """What the engine makes of a query that the parse lets through, without running it."""
    frames = {name: _FRAMES[name] for name in found.tables}
    try:
        plan = pl.SQLContext(frames, eager=False).execute(sql).explain(optimized=False)
    except Exception as error:  # noqa: BLE001  The engine refuses in its own ways, which its process turns into words.
        return f"partial: the engine says {type(error).__name__}"
    except BaseException as error:  # Its panics are no Exception.
        if type(error).__name__ != "PanicException":
            raise
        return "partial: the engine panics"
    assert not _READS.search(plan), plan
    return "read: " + " ".join(sorted({line.split()[0] for line in plan.splitlines() if line.split()}))[:200]


def _asked(folder: Path, sql: str, found: Parsed) -> None:
    """The same in the engine's own process, beside a file that it must not read."""
    (folder / SECRET).write_text(f"id,name\n{TOLD},x\n")
    try:
        rows = run(sql.replace(SECRET, str(folder / SECRET)), {name: _FRAMES[name] for name in found.tables}, _bounds())
    except ValueError:
        return
    except UsageError as error:
        assert_sentence(error)
        return
    assert str(TOLD) not in str(rows.rows()), "a file was read"


@cache
def _bounds() -> Bounds:
    return Bounds(10, 1 << 29)
