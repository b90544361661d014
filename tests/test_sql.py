"""SQL over given tables: SELECT works, and nothing else can be reached."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from stepscope.errors import UsageError
from stepscope.interpreter import OWN_FOLDER
from stepscope.sql import query
from stepscope.sql.engine import Bounds, run
from stepscope.sql.parsed import parse
from tests.kit.some import some

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
        "SELECT id FROM": "the query failed: Expected table name, at 'FROM'",
        "SELECT * FROM slices; SELECT * FROM slices": "a query is one SELECT, and no more",
        "SELECT * FROM 'slices.csv'": "relation 'slices.csv' was not found; the tables are slices, steps",
        "SELECT frobnicate(id) FROM slices": "a query cannot call 'frobnicate'",
    }.items():
        with pytest.raises(UsageError) as error:
            query(sql, TABLES)
        assert words in str(error.value)
        assert "Token" not in str(error.value)
        assert "\n" not in str(error.value)


FILES = [
    "SELECT * FROM {}('{}')",
    "SELECT * FROM slices, {}('{}')",
    "SELECT * FROM slices, LATERAL {}('{}')",
    "SELECT * FROM TABLE({}('{}'))",
    "SELECT * FROM slices JOIN {} \n ('{}') ON true",
    "SELECT * FROM \"{}\"('{}')",
    "SELECT * FROM `{}`('{}')",
    "SELECT * FROM {}/**/('{}')",
    "SELECT * FROM /* ' */ {}('{}') -- '",
    "SELECT * FROM /* /* */ ' */ {}('{}') --'",
    "SELECT * FROM {}--\n('{}')",
    "SELECT * FROM {}#\n('{}')",
    "SELECT 'a\\' ' FROM {}('{}') WHERE '' = ''",
    "SELECT E'a\\' ' FROM {}('{}') WHERE '' = ''",
    "SELECT e'\\' , ' FROM {}('{}') WHERE '' = ''",
    "SELECT U&'\\0027' FROM {}('{}')",
    "SELECT $$ ' $$ FROM {}('{}') WHERE $$ ' $$ = ''",
    "SELECT (SELECT MAX(id) FROM {}('{}')) FROM slices",
    "SELECT id FROM slices WHERE id IN (SELECT id FROM {}('{}'))",
    "SELECT id FROM slices WHERE EXISTS (FROM {}('{}'))",
    "SELECT id FROM slices UNION ALL SELECT id FROM {}('{}')",
    "WITH x AS (SELECT * FROM {}('{}')) SELECT * FROM x",
    "WITH {0} AS (SELECT 1) SELECT * FROM {0}('{1}')",
    "WITH {0}(a) AS (SELECT 1) SELECT * FROM {0}('{1}')",
    "SELECT * FROM slices AS {0}(a), {0}('{1}')",
    "FROM {}('{}')",
    "(SELECT * FROM {}('{}'))",
    "SELECT ''' FROM {}('{}')",
    "SELECT '''' FROM {}('{}')",
    "SELECT \"it's\" FROM {}('{}') WHERE \"it's\" = 1",
    "SELECT 'a'\"b\" FROM {}('{}')",
    "SELECT id FROM slices ORDER BY (SELECT 1 FROM {}('{}'))",
    "SELECT SUM(id) OVER (PARTITION BY (SELECT 1 FROM {}('{}'))) FROM slices",
    "SELECT * FROM {}('{}'\0)",
]


@pytest.mark.parametrize("sql", FILES)
@pytest.mark.parametrize(
    "function", ["read_csv", "READ_CSV", "read_parquet", "read_ipc", "read_json", "scan_csv", "glob"]
)
def test_files_cannot_be_read(sql, function, tmp_path):
    file = tmp_path / "secret.csv"
    file.write_text("id\n42\n")
    with pytest.raises(UsageError) as error:
        query(sql.format(function, file), TABLES)
    assert "42" not in str(error.value).replace(str(file), "")
    assert MADE == []


@pytest.mark.parametrize(
    "named",
    ["'{}'", '"{}"', "'{}'.x", "main.slices", "public.main.slices", '"file://{}"', "'http://127.0.0.1:9/x.csv'",
     "http://127.0.0.1:9/x.csv", "'s3://bucket/x.parquet'", "'/proc/self/fd/0'", "'../x.csv'", "'*.csv'", "slices.csv",
     "information_schema.tables", "sqlite_master", "'slices '", "generate_series(1, 9)", "range(9)", "sⅼices", "ſlices",
     "ｓlices", "slices\u200b", "\u202eslices", "'slıces'"],
)  # fmt: skip
def test_what_is_no_declared_table_is_refused(named, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("id\n42\n")
    for form in ("SELECT * FROM {}", "SELECT * FROM steps JOIN {} ON true", "SELECT (SELECT MAX(id) FROM {})"):
        with pytest.raises(UsageError):
            query(form.format(named.format(file)), TABLES)
    assert MADE == []


@pytest.mark.parametrize(
    "function",
    ["\uff52ead_csv", "reaԁ_csv", "READ_CSV\u0301", "generate_series", "range", "getenv", "read_text", "load_extension",
     "pg_read_file", "current_setting", '"upper"', "'upper'", "json_extract", "random"],
)  # fmt: skip
def test_only_listed_functions_are_called(function):
    with pytest.raises(UsageError) as error:
        query(f"SELECT {function}(name) FROM slices", TABLES)
    assert "<" not in str(error.value)
    assert MADE == []


WORDS = ("read_csv(1)", "-- x", "/* ", "ſlices", "$$", ";", "DROP TABLE slices", "\\d+", "`", "E")


@pytest.mark.parametrize("text", some(WORDS, 3))
def test_what_a_text_holds_is_no_matter(text: str):
    assert query(f"SELECT COUNT(*) FROM slices WHERE name <> '{text}'", TABLES).rows() == [(2,)]


def test_what_texts_hold_is_no_matter_to_the_parser():
    for text in WORDS:
        assert parse(f"SELECT COUNT(*) FROM slices WHERE name <> '{text}'", TABLES).tables == {"slices"}


ACCEPTED = """\
SELECT * EXCLUDE (id) FROM slices
SELECT COLUMNS('^i') FROM slices
SELECT name, COUNT(*) AS n FROM slices GROUP BY ALL HAVING COUNT(*) > 0 ORDER BY n DESC NULLS LAST LIMIT 3 OFFSET 0
SELECT id::DOUBLE // 2, CAST(id AS BIGINT), TRY_CAST(name AS DECIMAL(4, 2)) FROM slices
SELECT name ~ '^a', name ~* 'A', name !~ 'a', name ILIKE 'A_', name || 'x' FROM slices
SELECT a.id FROM slices a LEFT ANTI JOIN steps b ON a.id = b.id
SELECT a.id FROM slices a NATURAL JOIN steps b
SELECT id, SUM(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS r FROM slices QUALIFY r > 1
SELECT CASE WHEN id > 1 THEN 'x' ELSE 'y' END FROM slices
SELECT COUNT(DISTINCT name), SUM(id) FILTER (WHERE id > 1), MEDIAN(id), QUANTILE_CONT(id, 0.5) FROM slices
SELECT id FROM slices WHERE EXISTS (SELECT 1 FROM steps WHERE steps.id = slices.id) AND id IN (SELECT id FROM steps)
(SELECT id FROM slices) UNION ALL (SELECT id FROM steps)
SELECT x.v FROM (VALUES (1, 'a'), (2, 'b')) AS x(v, w)
WITH x(i) AS (SELECT id FROM slices), y AS (SELECT i FROM x) SELECT * FROM y JOIN x USING (i)
SELECT EXTRACT(year FROM DATE '2024-01-01') FROM slices
SELECT id FROM slices LIMIT 1;
SELECT name FROM slices GROUP BY ROLLUP(name)
FROM slices SELECT id
SELECT "id" AS "weird name" FROM "slices" AS "S"
SELECT slices.* FROM slices""".splitlines()


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_people_write_is_taken(sql):
    assert parse(sql, TABLES).tables <= {"slices", "steps"}


def test_columns_that_no_word_names_are_left_out():
    assert parse("SELECT id, \"name\" AS 'x y' FROM slices s WHERE s.dur > 1", TABLES).columns >= {"id", "name", "dur"}
    for sql in (
        "SELECT * FROM slices", "SELECT s.* FROM slices s", "SELECT COLUMNS('x') FROM slices", "FROM slices",
        "SELECT id FROM slices NATURAL JOIN steps", "SELECT id FROM slices WHERE id IN (SELECT * FROM steps)",
    ):  # fmt: skip
        assert parse(sql, TABLES).columns is None, sql
    assert query("SELECT COUNT(*) FROM slices", TABLES).rows() == [(2,)]


@pytest.mark.parametrize(
    "sql",
    ["CREATE TABLE x AS SELECT 1", "DROP TABLE slices", "DELETE FROM slices", "TRUNCATE TABLE slices", "SHOW TABLES",
     "EXPLAIN SELECT 1", "INSERT INTO slices VALUES (1, 'x')", "COPY slices TO 'x'", "", "  ", "ATTACH 'x'",
     "; SELECT 1", "'SELECT'", "\ufeffSELECT 1", "SET x = 1", "PRAGMA x", "CALL x()", "VALUES (1)"],
)  # fmt: skip
def test_only_select_is_taken(sql):
    with pytest.raises(UsageError, match=r"begins with SELECT|cannot hold U\+FEFF"):
        query(sql, TABLES)
    assert MADE == []


@pytest.mark.parametrize(
    "sql",
    ["WITH x AS (SELECT 1) DELETE FROM slices", "WITH x AS (SELECT 1) INSERT INTO slices SELECT * FROM x",
     "SELECT * INTO x FROM slices", "SELECT 1; DROP TABLE slices", "WITH x AS (DELETE FROM slices) SELECT 1",
     "SELECT * FROM slices FOR UPDATE", "FROM slices INSERT INTO steps SELECT *", "SELECT @x", "SELECT ?", "SELECT :x:",
     "SELECT {{ x }}", "SELECT {% x %}"],
)  # fmt: skip
def test_nothing_is_changed(sql):
    with pytest.raises(UsageError):
        query(sql, TABLES)
    assert MADE == []


@pytest.mark.parametrize(
    "sql",
    ["SELECT " + "(" * 3000 + "1" + ")" * 3000, "SELECT 1" + " + 1" * 40_000, "SELECT " + "- " * 9000 + "1",
     "SELECT " + "struct(" * 39 + "1" + ")" * 39, "SELECT * FROM slices, LATERAL count(" * 39],
    ids=["parentheses", "terms", "signs", "tried in two ways", "never closed"],
)  # fmt: skip
def test_what_is_too_deep_or_long_is_a_sentence(sql):
    with pytest.raises(UsageError) as error:
        query(sql, TABLES)
    assert len(str(error.value)) < 200


# --- the engine -------------------------------------------------------------------------------------------------------


def ask(sql: str, seconds: float = 60, memory: int = 1 << 30) -> pl.DataFrame:
    """The rows of what no parse has seen."""
    return run(sql, {"t": pl.DataFrame({"id": range(100_000)})}, Bounds(seconds, memory))


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of a process there")
def test_the_engine_can_open_no_file_and_no_connection(tmp_path: Path):
    file = tmp_path / "secret.csv"
    file.write_text("id\n42\n")
    with pytest.raises(ValueError, match="Too many open files"):
        ask(f"SELECT * FROM read_csv('{file}')")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        with pytest.raises(ValueError, match=r".+"):
            ask(f"SELECT * FROM read_csv('http://127.0.0.1:{server.getsockname()[1]}/x.csv')")
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where a process stands is read from /proc")
def test_the_process_of_a_query_stands_in_no_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    stood = []

    class Looked(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            stood.append(os.readlink(f"/proc/{self.pid}/cwd"))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", Looked)
    assert ask("SELECT COUNT(*) AS n FROM t")["n"].to_list() == [100_000]
    assert stood == [OWN_FOLDER]


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of a process there")
def test_a_query_that_takes_too_much_memory_is_ended():
    with pytest.raises(UsageError, match="needs more memory than the 256"):
        ask("SELECT a.id FROM t a, t b", memory=256 << 20)


def test_a_query_that_takes_too_long_is_ended():
    with pytest.raises(UsageError, match="took longer than 2 s"):
        ask("SELECT COUNT(*) FROM t a, t b WHERE a.id <> b.id AND a.id * b.id % 7 < b.id", seconds=2)


def test_rows_come_back_as_they_are():
    columns = {"a": [1, None], "b": ["x", None], "c": [1.5, float("nan")], "d": [[1, 2], []], "e": [b"x", None]}
    frame = pl.DataFrame(columns)
    assert run("SELECT * FROM t", {"t": frame}, Bounds(60, 1 << 30)).equals(frame)
    assert run("SELECT * FROM t WHERE a > 5", {"t": frame}, Bounds(60, 1 << 30)).schema == frame.schema
