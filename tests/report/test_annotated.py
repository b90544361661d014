"""The table of annotations, and its place in the document."""

from __future__ import annotations

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.report import annotation_sections, document
from stepscope.report.limits import ANNOTATIONS_LISTED
from stepscope.report.sections import sections
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.report.documents import Document, check
from tests.support import trace_of


def report(drawing: TraceDrawing) -> Document:
    facts = analyse(trace_of(drawing.events()))
    return check(document.make(facts, diagnose(facts), [document.InputFile("a.json", 1, 1)]))


def loop(names: tuple[str, ...], devices: int = 1) -> TraceDrawing:
    """Steps of 1 ms; each name takes 200 µs and launches a kernel of 100 µs, on the first device alone."""
    drawing = TraceDrawing()
    for step in range(2):
        drawing.step(step, 1000 * step, 1000)
        for at, name in enumerate(names):
            begun = 1000 * step + 200 * at
            drawing.annotation(name, begun, 200)
            drawing.kernel(drawing.launch(begun + 10, 5), "gemm", begun + 20, 100)
        for device in range(1, devices):
            drawing.kernel(drawing.launch(1000 * step + 900, 5), "gemm", 1000 * step + 910, 80, Stream(device, 7))
    return drawing


def test_a_row_per_annotation_with_means_per_step():
    made = report(loop(("load", "train")))
    given = made["analyses"]["annotations"]
    assert (given["steps"], given["devices"], given["count"]) == (2, 1, 2)
    load = next(use for use in given["annotations"] if use["name"] == "load")
    assert (load["count"], load["per_step"]) == (2, 1.0)
    assert load["whole"]["host_ns"] == 2 * load["whole"]["per_step"]["host_ns"] == 400_000
    assert load["own"]["device_ns"] == 200_000
    table = annotation_sections.table(given)
    row = dict(zip((column.title for column in table.columns), table.rows[0], strict=False))
    assert row["annotation"] == "load"
    assert row["host"] == "200 µs"
    assert row["device works"] == "100 µs"
    assert "in none: 600 µs of the main thread" in table.note
    assert "Annotations of the program, per step" in [section.title for section in sections(made)]


def test_times_of_several_devices_are_means_over_them():
    made = report(loop(("train",), devices=2))
    given = made["analyses"]["annotations"]
    assert given["devices"] == 2
    (train,) = given["annotations"]
    assert train["whole"]["device_ns"] == 200_000
    assert train["whole"]["per_step"]["device_ns"] == 50_000
    assert "mean of 2 devices" in annotation_sections.table(given).note


def test_without_a_device_the_table_has_the_hosts_columns_alone():
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.annotation("load", 0, 400)
    drawing.host("aten::stack", 100, 100)
    (table,) = [one for one in sections(report(drawing)) if one.title.startswith("Annotations")]
    assert [column.title for column in table.columns] == ["annotation", "count", "host", "own"]
    assert table.rows == [("load", "1", "400 µs", "400 µs")]
    assert "device" not in table.note


def test_names_that_count_on_are_listed_up_to_a_limit():
    drawing = TraceDrawing()
    drawing.step(1, 0, 100_000)
    for at in range(ANNOTATIONS_LISTED + 5):
        drawing.annotation(f"request-{at:04}", 100 * at, 10 + at % 7)
    drawing.kernel(drawing.launch(99_000, 5), "gemm", 99_010, 100)
    given = report(drawing)["analyses"]["annotations"]
    assert given["count"] == ANNOTATIONS_LISTED + 5
    assert len(given["annotations"]) == ANNOTATIONS_LISTED


def test_a_profile_without_annotations_has_no_such_key():
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.kernel(drawing.launch(10, 5), "gemm", 20, 100)
    made = report(drawing)
    assert "annotations" not in made["analyses"]
    assert not [one for one in sections(made) if one.title.startswith("Annotations")]
