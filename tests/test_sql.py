"""SQL over given tables: SELECT works, and nothing else can be reached."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.errors import UsageError
from stepscope.sql import query

MADE: list[str] = []


def table(name: str) -> pl.DataFrame:
    MADE.append(name)
    return pl.DataFrame({"id": [1, 2], "name": ["a", "it's"]})


TABLES = {name: (lambda name=name: table(name)) for name in ("slices", "steps")}


@pytest.fixture(autouse=True)
def forget() -> None:
    MADE.clear()


def test_a_select_yields_rows_and_only_named_tables_are_made():
    assert query("SELECT id FROM slices WHERE name = 'a'", TABLES).rows() == [(1,)]
    assert MADE == ["slices"]


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from SLICES",
        "WITH x AS (SELECT * FROM slices) SELECT COUNT(*) FROM x",
        "  \n SELECT COUNT(*) FROM slices WHERE name <> 'read_csv(1) -- /* $ # \"'",
        "SELECT COUNT(*) FROM slices WHERE name <> 'it''s not'",
        'SELECT COUNT("id") FROM "slices"',
    ],
)
def test_other_ways_to_write_it(sql):
    assert query(sql, TABLES).rows() == [(2,)]


def test_a_wrong_query_is_told_in_one_sentence():
    for sql, words in {
        "SELECT nope FROM slices": 'the query failed: unable to find column "nope"',
        "SELECT * FROM nope": "relation 'nope' was not found; the tables are slices, steps",
        "SELECT id FROM": "the query failed: sql parser error",
        "SELECT * FROM slices; SELECT * FROM slices": "the query failed",
        "SELECT * FROM 'slices.csv'": "the query failed",
    }.items():
        with pytest.raises(UsageError) as error:
            query(sql, TABLES)
        assert words in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {}('{}')",
        "SELECT * FROM slices, {}('{}')",
        "SELECT * FROM slices JOIN {} \n ('{}') ON true",
        'SELECT * FROM "{}"(\'{}\')',
        "SELECT * FROM `{}`('{}')",
        "SELECT * FROM {}/**/('{}')",
        "SELECT * FROM {}--\n('{}')",
        "SELECT 'a\\' ' FROM {}('{}') WHERE '' = ''",
        "SELECT $$ ' $$ FROM {}('{}') WHERE $$ ' $$ = ''",
        "SELECT (SELECT MAX(id) FROM {}('{}')) FROM slices",
        "WITH x AS (SELECT * FROM {}('{}')) SELECT * FROM x",
        "SELECT '''' FROM {}('{}')",
        "SELECT \"it's\" FROM {}('{}') WHERE \"it's\" = 1",
    ],
)
@pytest.mark.parametrize("function", ["read_csv", "READ_CSV", "read_parquet", "read_ipc", "read_json", "scan_csv"])
def test_files_cannot_be_read(sql, function, tmp_path):
    file = tmp_path / "secret.csv"
    file.write_text("id\n42\n")
    with pytest.raises(UsageError, match=r"a query (reads the tables of the profile, not files|cannot hold)"):
        query(sql.format(function, file), TABLES)


def test_the_list_of_functions_that_read_files_is_whole(tmp_path: Path):
    """Polars knows no other function that yields a table, by the names it could have."""
    for name in ("csv", "parquet", "ipc", "json", "glob", "delta", "iceberg", "avro", "database", "excel", "file"):
        with pytest.raises(pl.exceptions.PolarsError, match="not a supported table function"):
            pl.SQLContext().execute(f"SELECT * FROM {name}('{tmp_path}')", eager=True)


@pytest.mark.parametrize(
    "sql",
    ["CREATE TABLE x AS SELECT 1", "DROP TABLE slices", "DELETE FROM slices", "TRUNCATE TABLE slices", "SHOW TABLES",
     "EXPLAIN SELECT 1", "INSERT INTO slices VALUES (1, 'x')", "COPY slices TO 'x'", "", "  ",
     "; SELECT 1", "'SELECT'"],
)  # fmt: skip
def test_only_select_is_taken(sql):
    with pytest.raises(UsageError, match="begins with SELECT"):
        query(sql, TABLES)
    assert MADE == []
