"""Tables come from the declaration of their rows: a column more is one field and its value."""

from __future__ import annotations

from typing import Annotated

import pytest

from stepscope.document.declared import DeclaredField, fields, objects
from stepscope.document.kernels import KernelEntry, RoofEntry
from stepscope.document.kinds import Field, Name, Ns
from stepscope.document.ops import FunctionUseEntry
from stepscope.document.ranks import RankRow
from stepscope.document.report import Report
from stepscope.document.waits import SyncEntry
from stepscope.report.section import Column, Section, name, number
from stepscope.report.tables import Look, inserted, table
from tests.report import documents


class Timed(KernelEntry):
    """A kernel of which one thing more is known."""

    usual_ns: Annotated[Ns | None, Field("The usual one.", "usual", null="not recorded")]


def kernels(**more: object) -> list[dict[str, object]]:
    return [kernel | more for kernel in documents.input_bound()["analyses"]["kernels"]]


def test_a_column_more_is_one_field_and_its_value():
    before, after = table("Kernels", KernelEntry, kernels()), table("Kernels", Timed, kernels(usual_ns=1_500))
    assert after.columns == (*before.columns, number("usual"))
    assert [row[-1] for row in after.rows] == ["1.50 µs"] * len(before.rows)
    assert table("Kernels", Timed, kernels(usual_ns=None)).rows[0][-1] == "not recorded"
    assert table("Kernels", Timed, kernels()).rows[0][-1] == "not recorded"


def test_columns_are_laid_out_by_what_they_hold():
    columns = {column.title: column for column in table("Kernels", KernelEntry, kernels()).columns}
    assert columns["kernel"] == name("kernel")
    assert columns["longest"] == number("longest")
    assert columns["precision"] == Column("precision")
    assert table("Waits", SyncEntry, []).columns[-1] == Column("where", name=True, path=True)


def test_a_view_has_its_own_columns():
    ops, kernels = (table("Roofline", RoofEntry, [], look=Look(view)) for view in ("ops", "kernels"))
    assert [column.title for column in ops.columns[:2]] == ["op", "shapes"]
    assert [column.title for column in kernels.columns[:2]] == ["kernel", "time"]


def test_a_map_has_a_column_for_each_key_that_is_shown():
    row = {one.key: None for one in fields(RankRow)} | {"rank": 3, "parts_ns_per_step": {"compute": 2_000}}
    made = table("Ranks", RankRow, [row], look=Look(keys={"compute": "compute", "input": "input"}))
    told = dict(zip((column.title for column in made.columns), made.rows[0], strict=True))
    assert (told["rank"], told["compute"], told["input"], told["host"]) == ("3", "2.00 µs", "–", "–")


def test_what_is_left_out_is_said_behind_the_note():
    rows = [{"name": f"k{at}", "self_ns": 1, "count": 1} for at in range(30)]
    made = table("Functions", FunctionUseEntry, rows, "of all threads", total=70)
    assert len(made.rows) == 20
    assert made.note == "of all threads; the first 20 of 70; --format json has all"


def test_a_column_can_be_put_between_others():
    made = inserted(Section("T", (name("a"), name("b")), [("1", "2")]), 1, number("c"), ["3", "of no row"])
    assert (made.columns, made.rows) == ((name("a"), number("c"), name("b")), [("1", "3", "2")])


@pytest.mark.parametrize("of", objects(Report), ids=lambda of: of.__name__)
def test_every_table_of_declared_rows_has_distinct_titles(of: type):
    views = {view for one in fields(of) for view in one.field.view.split()} or {""}
    for view in views:
        titles = [str(one.field.column) for one in fields(of) if _shown(one, view)]
        assert len(set(titles)) == len(titles)


def _shown(one: DeclaredField, view: str) -> bool:
    return one.field.column is not None and (not one.field.view or view in one.field.view.split())


def test_a_kind_of_text_is_shown_as_it_is():
    class Row(KernelEntry):
        """A row."""

        note: Annotated[Name, Field("A note.", "note")]

    globals()["Row"] = Row
    assert table("Rows", Row, kernels(note="1,000 µs")).rows[0][-1] == "1,000 µs"
