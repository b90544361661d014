"""The JSON Schemas of the machine-readable documents, made from their declaration when they are asked for."""

from __future__ import annotations

import re
from typing import Any

from stepscope.document import COMPARISON_SCHEMA, REPORT_SCHEMA
from stepscope.document.comparison import ComparisonDocument
from stepscope.document.declared import DeclaredField, FieldShape, fields, objects, title
from stepscope.document.kinds import CATEGORY, ValueKind
from stepscope.document.report import Report

_ROOTS: dict[str, type] = {REPORT_SCHEMA: Report, COMPARISON_SCHEMA: ComparisonDocument}
_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}
_CLOSED = frozenset(
    [
        "Report",
        "Tool",
        "LoggedOp",
        "TwoShares",
        "Where",
        "File",
        "Loss",
        "Step",
        "AccountingRow",
        "Finding",
        "Option",
        "FixPart",
        "Evidence",
        "Xla",
        "DutyCycle",
        "GraphBuilding",
        "Compilation",
        "LazyMetrics",
        "Counted",
        "MemoryByCategory",
        "MemoryOverTime",
    ]
)
"""Objects of a report that are closed, so that a misspelt key fails a test; as are all of a comparison. The others stay
open for what later 1.x versions add."""


def load(name: str = REPORT_SCHEMA) -> dict[str, Any]:
    """A schema (JSON Schema 2020-12) by its name, as a fresh object. Raises KeyError for another name."""
    root = _ROOTS[name]
    closed = _CLOSED if root is Report else {title(one) for one in (root, *objects(root))}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name}
    named = {snake(one): _object(one, title(one) in closed) for one in objects(root)}
    return head | _object(root, closed=True) | {"$defs": {"category": {"enum": list(CATEGORY.values)}, **named}}


def snake(of: type) -> str:
    """What an object is called in a schema and on its page."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", title(of)).lower()


def _object(of: type, closed: bool) -> dict[str, object]:
    made: dict[str, object] = {
        "description": " ".join((of.__doc__ or "").split()),
        "type": "object",
        "required": [one.key for one in fields(of) if one.required],
        "properties": {one.key: _property(one) for one in fields(of)},
    }
    return made | {"additionalProperties": False} if closed else made


def _property(one: DeclaredField) -> dict[str, object]:
    of = one.field
    bounds = {"minItems": of.least, "maxItems": of.most, "uniqueItems": of.distinct or None}
    return {"description": of.meaning, **_value(one.shape), **_said(bounds | {"required": list(of.keys) or None})}


def _value(shape: FieldShape) -> dict[str, object]:
    if shape.of is not None:
        reference: dict[str, object] = {"$ref": f"#/$defs/{snake(shape.of)}"}
        return {"anyOf": [reference, {"type": "null"}]} if shape.null else reference
    if len(shape.words) == 1 and not shape.null:
        return {"const": shape.words[0]}
    if shape.words:
        return {"enum": [*shape.words, *([None] if shape.null else [])]}
    if shape.inner is None:
        return _plain(shape)
    inner = _value(shape.inner)
    if shape.holds == "list":
        return {"type": _nullable("array", shape), "items": inner}
    keys = {"propertyNames": {"$ref": "#/$defs/category"}} if shape.kind == CATEGORY else {}
    return {"type": _nullable("object", shape), **keys, "additionalProperties": inner}


def _plain(shape: FieldShape) -> dict[str, object]:
    assert shape.plain is not None
    assert shape.kind is not None
    if shape.kind == CATEGORY:
        return {"$ref": "#/$defs/category"}
    return {"type": _nullable(_TYPES[shape.plain], shape), **_bounds(shape.kind, shape.plain)}


def _bounds(kind: ValueKind, plain: type) -> dict[str, object]:
    least = "minLength" if plain is str else "minimum"
    return _said({least: kind.least, "maximum": kind.most})


def _nullable(name: str, shape: FieldShape) -> str | list[str]:
    return [name, "null"] if shape.null else name


def _said(values: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}
