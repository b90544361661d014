"""Tables as columns beside what SQLite itself reads of them; and files that are cut, overwritten or hostile."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import InputError
from stepscope.formats.nsys.sqlite import UNREADABLE, Database
from stepscope.formats.nsys.sqlite.statement import declared
from stepscope.trace.tables import NULL

INTEGERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**k - 1 for k in (7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 62)]),
    st.sampled_from([-(2**k) for k in (7, 15, 23, 31, 47, 62)]),
)
TEXTS = st.one_of(st.text(max_size=8), st.integers(0, 9_000).map(lambda n: "name" * (n // 4)))
VALUES = st.one_of(INTEGERS, TEXTS, st.none(), st.floats(allow_nan=False), st.binary(max_size=2_000))
ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES, VALUES), max_size=60)


def made(*statements: str, page_size: int = 4096) -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"PRAGMA page_size={page_size}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        return connection.serialize()


def database(data: bytes) -> Database:
    return Database(np.frombuffer(data, np.uint8), "profile")


def filled(rows: list[tuple[Any, ...]], page_size: int, encoding: str = "UTF-8") -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"PRAGMA page_size={page_size}")
        connection.execute(f"PRAGMA encoding='{encoding}'")
        connection.execute("CREATE TABLE t (a, [end] INT, b TEXT, -- not, a, column\n c INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.commit()
        return connection.serialize()


def expected(data: bytes) -> list[tuple[Any, ...]]:
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(data)
        return connection.execute('SELECT a, "end", b, c FROM t').fetchall()


def as_number(value: Any) -> int:
    if value is None:
        return NULL
    return value if isinstance(value, int) else UNREADABLE


@given(rows=ROWS, page_size=st.sampled_from([512, 1024, 4096, 65_536]), encoding=st.sampled_from(["UTF-8", "UTF-16le"]))
def test_columns_hold_what_sqlite_reads(rows, page_size, encoding):
    data = filled(rows, page_size, encoding)
    read = database(data).read("t", ["a", "END", "b", "c", "missing"], ["a", "b", "missing"])
    wanted = expected(data)
    assert (read.broken_pages, read.broken_rows) == (0, 0)
    for column, at in (("a", 0), ("END", 1), ("b", 2), ("c", 3)):
        assert read.numbers[column].tolist() == [as_number(row[at]) for row in wanted]
    for column, at in (("a", 0), ("b", 2)):
        texts = read.texts[column]
        assert texts.decoded() == [row[at] if isinstance(row[at], str) else "" for row in wanted]
        assert (texts.start >= 0).tolist() == [isinstance(row[at], str) for row in wanted]
        codes, names = texts.distinct()
        assert [names[code] if code >= 0 else "" for code in codes.tolist()] == texts.decoded()
        assert len(set(names)) == len(names)
    assert (read.numbers["missing"] == NULL).all()
    assert (read.texts["missing"].start < 0).all()


def test_many_rows_over_several_levels_of_pages():
    data = filled([(k, -k, f"text {k % 50}", None) for k in range(20_000)], 512)
    read = database(data).read("t", ["end", "a"], ["b"])
    assert read.numbers["a"].tolist() == list(range(20_000))
    assert read.numbers["end"].tolist() == [-k for k in range(20_000)]
    assert len(read.texts["b"].distinct()[1]) == 50
    assert database(data).last_row("t") == 20_000


@pytest.mark.parametrize(
    ("columns", "rowid"),
    [
        ("id INTEGER PRIMARY KEY, v", 0),
        ("v, id INTEGER NOT NULL PRIMARY KEY", 1),
        ("v INT, id INTEGER, PRIMARY KEY (id)", 1),
        ("id INT PRIMARY KEY, v", -1),
        ("id INTEGER, v INTEGER, PRIMARY KEY (id, v)", -1),
    ],
)
def test_a_row_id_under_another_name_is_read(columns, rowid):
    data = made(f"CREATE TABLE t ({columns})", "INSERT INTO t (id, v) VALUES (7, 1), (9, 2)")
    layout = declared(f"CREATE TABLE t ({columns})")
    assert layout is not None
    assert layout.rowid == rowid
    assert database(data).read("t", ["id"]).numbers["id"].tolist() == [7, 9]


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ('CREATE TABLE "t x" ("a ""b""" INT, [c d], `e` TEXT DEFAULT \'x, y\')', ("a b" + '"', "c d", "e")),
        ("create table t(a decimal(10, 2) check (a > (1)), b, unique (a, b))", ("a", "b")),
        ("CREATE TABLE t (a /* , z */ INT, -- , y\n b REFERENCES u(c) ON DELETE CASCADE)", ("a", "b")),
    ],
)
def test_columns_of_a_statement(statement, columns):
    found = declared(statement)
    assert found is not None
    assert [name.replace('"', "") for name in found.columns] == [name.replace('"', "") for name in columns]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a, b AS (a + 1), c)",
        "CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "CREATE VIEW t AS SELECT 1",
        "CREATE TABLE t",
        "",
        "(((((",
    ],
)
def test_what_is_no_ordinary_table_is_left_out(statement):
    assert declared(statement) is None


def test_views_virtual_tables_and_own_tables_are_not_listed():
    data = made(
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)",
        "INSERT INTO t VALUES (NULL)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE VIRTUAL TABLE f USING fts5(a)",
    )
    tables = set(database(data).tables)
    assert "t" in tables
    assert not {"v", "f", "sqlite_sequence"} & tables


def test_rows_from_before_a_column_was_added_are_read():
    data = made("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN b INT",
                "INSERT INTO t VALUES (2, 3)")  # fmt: skip
    assert database(data).read("t", ["a"]).numbers["a"].tolist() == [1, 2]


BIG = filled([(k, k * 1000, f"text {k}" * (1 + k % 40), k) for k in range(3_000)], 1024)


@given(cut=st.integers(100, len(BIG) - 1))
def test_a_cut_file_gives_the_rows_of_its_whole_pages(cut):
    try:
        read = database(BIG[:cut]).read("t", ["a", "end"])
    except InputError:
        assert cut < 2 * 1024
        return
    rows = read.numbers["a"].tolist()
    assert rows == sorted(set(rows))
    assert read.numbers["end"].tolist() == [1000 * row for row in rows]
    assert read.broken_pages > 0 or cut > len(BIG) - 1024
    # Interior pages are written among the leaves, so only what hangs on the last of them is lost besides.
    assert len(rows) > 3_000 * (cut / len(BIG)) - 1_000
    assert database(BIG[:cut]).missing_bytes == len(BIG) - cut


@given(page=st.integers(1, len(BIG) // 1024 - 1), noise=st.binary(min_size=1, max_size=1024))
def test_an_overwritten_page_costs_little_and_never_fails(page, noise):
    data = bytearray(BIG)
    data[page * 1024 : page * 1024 + len(noise)] = noise
    read = database(bytes(data)).read("t", ["a", "end"], ["b"])
    assert len(read) <= len(data) // 4
    read.texts["b"].distinct()


@given(st.lists(st.tuples(st.integers(0, len(BIG) - 1), st.integers(0, 255)), min_size=1, max_size=200))
def test_changed_bytes_never_fail(changes):
    data = bytearray(BIG)
    for at, value in changes:
        data[at] = value
    with suppress(InputError):
        opened = database(bytes(data))
        for name in opened.tables:
            read = opened.read(name, ["a", "end", "c"], ["b"])
            assert len(read) <= len(data) // 4
            read.texts["b"].distinct()
            opened.last_row(name)


def test_pages_that_point_to_each_other_end():
    # The root's children become the root itself: a loop, and one page many times.
    data = bytearray(BIG)
    root = database(BIG).tables["t"].root
    base = (root - 1) * 1024
    cells = int.from_bytes(data[base + 3 : base + 5])
    for k in range(cells):
        at = base + int.from_bytes(data[base + 12 + 2 * k : base + 14 + 2 * k])
        data[at : at + 4] = root.to_bytes(4)
    read = database(bytes(data)).read("t", ["a"])
    assert read.broken_pages == cells
    assert 0 < len(read) < 3_000


def test_one_row_pointed_to_many_times_counts_as_often_as_fits():
    data = bytearray(filled([(1, 2, "x" * 200, 3)], 4096))
    base = (database(bytes(data)).tables["t"].root - 1) * 4096
    data[base + 3 : base + 5] = (1_900).to_bytes(2)
    cell = bytes(data[base + 8 : base + 10])
    data[base + 8 : base + 8 + 3_800] = cell * 1_900
    assert len(database(bytes(data)).read("t", ["a"])) < 4096 // 200


@pytest.mark.parametrize(
    "data",
    [b"SQLite format 3\0", b"SQLite format 3\0" + bytes(200), BIG[:16] + b"\x03\xe8" + BIG[18:], BIG[:16] + bytes(84)],
)
def test_a_header_without_sense_is_refused_in_a_sentence(data):
    with pytest.raises(InputError, match="makes no sense"):
        database(data)


def test_a_damaged_list_of_tables_is_refused_in_a_sentence():
    data = bytearray(BIG)
    data[100:1024] = bytes(924)
    with pytest.raises(InputError, match="list of tables"):
        _ = database(bytes(data)).tables
