"""The shipped schema: itself valid, true to the frozen names, and strict where they are frozen."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, is_typeddict

import jsonschema
import pytest

from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.phases import PHASES
from stepscope.document import declared
from stepscope.document.comparison import ComparisonDocument
from stepscope.document.declared import fields, objects
from stepscope.document.report import Report
from stepscope.document.trials import TrialsDocument
from stepscope.report import labels, schema
from tests.report import documents

Document = dict[str, Any]


def _errors(document: Document) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema.load())
    return [error.json_path for error in validator.iter_errors(document)]


def test_the_schema_is_a_valid_schema_and_names_its_version():
    loaded = schema.load()
    jsonschema.Draft202012Validator.check_schema(loaded)
    assert loaded["properties"]["schema"]["const"] == schema.REPORT_SCHEMA == "stepscope.report/1"


def test_categories_are_the_frozen_names_everywhere():
    assert schema.load()["$defs"]["category"]["enum"] == [category.value for category in CATEGORIES]
    assert set(labels.CATEGORIES) == set(CATEGORIES)


def test_phases_are_the_same_everywhere():
    required = schema.load()["$defs"]["phases"]["required"]
    assert set(required) == set(labels.PHASES) == {*PHASES, "between_steps"}


def test_labels_agree_on_what_is_work():
    busy = {name for name, label in labels.CATEGORIES.items() if label.busy}
    assert busy == {*BUSY, Category.HOST_COMPUTE}


def test_every_label_is_distinct_and_fits_the_legend():
    words = [label.words for label in labels.CATEGORIES.values()]
    assert len(set(words)) == len(words)
    assert max(map(len, words)) <= 24  # Two legends fit side by side in 100 columns.


@pytest.mark.parametrize("name", documents.ALL)
def test_the_sample_documents_are_valid(name: str):
    assert documents.check(documents.ALL[name]())["schema"] == schema.REPORT_SCHEMA


def _set(path: str, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        *parents, last = path.split("/")
        node: Any = document
        for key in parents:
            node = node[int(key) if key.isdigit() else key]
        node[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_set("accounting/0/parts/input_wait", 5), "$.accounting[0].parts"),
        (_set("accounting/0/parts/compute", 1.5), "$.accounting[0].parts.compute"),
        (_set("accounting/0/parts/compute", -1), "$.accounting[0].parts.compute"),
        (_set("accounting/0/phase", "warmup"), "$.accounting[0].phase"),
        (_set("accounting/0/extra", 1), "$.accounting[0]"),
        (_set("summary/parts_share/busy", 0.5), "$.summary.parts_share"),
        (_set("summary/device_busy_share", 60.5), "$.summary.device_busy_share"),
        (_set("summary/step_basis", "gpu"), "$.summary.step_basis"),
        (_set("steps/0/dur_ns", None), "$.steps[0].dur_ns"),
        (_set("findings/0/confidence", "sure"), "$.findings[0].confidence"),
        (_set("findings/0/prediction_basis", "guess"), "$.findings[0].prediction_basis"),
        (_set("findings/0/where/0/path", "x"), "$.findings[0].where[0]"),
        (_set("findings/0/evidence/0/dur_ns", 0.5), "$.findings[0].evidence[0].dur_ns"),
        (_set("analyses/copies/0/launch_link", "guessed"), "$.analyses.copies[0].launch_link"),
        (_set("analyses/kernels/0/tensor_core", True), "$.analyses.kernels[0].tensor_core"),
        (_set("profile/notices/0/count", "many"), "$.profile.notices[0].count"),
        (_set("schema", "stepscope.report/2"), "$.schema"),
        (_set("verdict", "fine"), "$"),
    ],
)
def test_what_the_schema_refuses(change: Callable[[Document], None], where: str):
    document = documents.input_bound()
    change(document)
    assert _errors(document) == [where]


@pytest.mark.parametrize(
    "change",
    [
        _set("summary/step_time_ns/p95", None),
        _set("summary/device_busy_share", None),
        _set("summary/bottleneck", "checkpointing"),
        _set("analyses/another", {"anything": []}),
        _set("profile/python_version", "3.13"),
        _set("findings/0/where/0/line", None),
        _set("steps/0/start_ns", -12),
    ],
)
def test_what_the_schema_allows(change: Callable[[Document], None]):
    document = documents.input_bound()
    change(document)
    assert _errors(document) == []


@pytest.mark.parametrize("root", [Report, ComparisonDocument, TrialsDocument])
def test_every_field_and_object_says_what_it_holds(root: type):
    for of in (root, *objects(root)):
        assert (of.__doc__ or "").endswith("."), of
        for one in fields(of):
            assert re.search(r"[.)]$", one.field.meaning), f"{of.__name__}.{one.key}"


def test_every_declared_object_is_part_of_a_document():
    reached = {of.__name__ for root in (Report, ComparisonDocument, TrialsDocument) for of in (root, *objects(root))}
    modules = (f"stepscope.document.{path.stem}" for path in Path(declared.__file__).parent.glob("*.py"))
    written = {name for module in modules for name, of in vars(import_module(module)).items() if is_typeddict(of)}
    assert written == reached


def _objects(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = [path] if isinstance(node, dict) else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found += _objects(value, (*path, key))
    return found


def test_every_documented_key_is_required():
    whole, validator = documents.input_bound(), jsonschema.Draft202012Validator(schema.load())
    may_lack = {"parts", "parts_ns_per_step", "parts_share", "analyses"}
    for path in _objects(whole):
        if path and path[-1] in may_lack:
            continue
        node: Any = whole
        for step in path:
            node = node[step]
        for key in list(node):
            value = node.pop(key)
            assert not validator.is_valid(whole), f"{path} may lack {key}"
            node[key] = value
