"""``docs/report-schema.md``: the keys of the JSON report, from the schema that ships in the package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.markdown import section, table
from stepscope.report.schema import load

Schema = dict[str, Any]
Row = tuple[str, str, str]

UNITS = {
    "ns": "ns",
    "ns_or_null": "ns",
    "time": "ns",
    "bytes_or_null": "bytes",
    "share": "share of one",
    "share_or_null": "share of one",
}

INTRO = """\
# The JSON report

Made from `src/stepscope/report/schema/report-1.json` by `make docs`; change it there. The schema ships in the package:
`stepscope.report.schema.load()`. How to use the report: [in Python and CI](guides/in-python-and-ci.md).

{description}

`x[].y` is the key `y` of every element of the list `x`. Keys are in every report, but for those that may be absent.
"""


def page() -> str:
    """The root, then every named object in the order in which it is first referred to."""
    schema = load()
    named = schema["$defs"]
    parts = [section("The document", listing(schema, named))]
    for name in referred(schema, named):
        parts.append(section(f"`{name}`", named[name].get("description", ""), listing(named[name], named)))
    return "\n".join([INTRO.format(description=schema["description"]), *parts])


def listing(schema: Schema, named: dict[str, Schema]) -> str:
    """A row per key."""
    return table(("key", "type", "what it holds"), rows(schema, named, ""))


def rows(schema: Schema, named: dict[str, Schema], prefix: str) -> Iterator[Row]:
    """The keys of an object, and of the objects written out inside it."""
    required = schema.get("required", [])
    for key, value in schema["properties"].items():
        place = prefix + key
        kind = type_of(value, named)
        yield f"`{place}`", kind if key in required else f"{kind}, may be absent", meaning(value, named)
        inner, suffix = (value["items"], "[].") if "items" in value else (value, ".")
        for variant in (inner, *inner.get("anyOf", ())):
            if "properties" in variant:
                yield from rows(variant, named, place + suffix)


def meaning(value: Schema, named: dict[str, Schema]) -> str:
    """The description of a key; without one that of what it refers to, where that has no section of its own."""
    target = named.get(name_of(value), {})
    inherited = "" if "properties" in target else target.get("description", "")
    return value.get("description") or inherited or values_of(value) or values_of(target) or keys_of(value)


def keys_of(value: Schema) -> str:
    """The keys of an object that are required but not described one by one."""
    for variant in (value, *value.get("anyOf", ())):
        if "required" in variant and "properties" not in variant:
            return f"Keys: {', '.join(f'`{key}`' for key in variant['required'])}."
    return ""


def values_of(value: Schema) -> str:
    """The values of an enumeration, where there are few enough to list."""
    known = value.get("enum", [])
    return f"One of: {', '.join('null' if v is None else f'`{v}`' for v in known)}." if 0 < len(known) <= 8 else ""


def name_of(value: Schema) -> str:
    """The name of the definition a value refers to, empty where it is written out."""
    return str(value.get("$ref", "")).rpartition("/")[2]


def type_of(value: Schema, named: dict[str, Schema]) -> str:
    """The type of a key in words."""
    name = name_of(value)
    if name:
        return named_type(name, named)
    if "items" in value:
        return f"list of {type_of(value['items'], named)}"
    if "anyOf" in value:
        return " or ".join(type_of(variant, named) for variant in value["anyOf"])
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return "text" if None not in value["enum"] else "text or null"
    kinds = value["type"] if isinstance(value["type"], list) else [value["type"]]
    return " or ".join({"string": "text"}.get(kind, kind) for kind in kinds)


def named_type(name: str, named: dict[str, Schema]) -> str:
    """A link to an object's section, or the type and unit of a simple definition."""
    if "properties" in named[name]:
        return f"[{name}](#{name})"
    if name == "where_or_null":
        return "[where](#where) or null"
    if "propertyNames" in named[name]:
        return f"category to {type_of(named[name]['additionalProperties'], named)}"
    words = type_of(named[name], named)
    return f"{words}, {UNITS[name]}" if name in UNITS else words


def referred(schema: Schema, named: dict[str, Schema]) -> list[str]:
    """The named objects with keys, in the order of the first reference to them."""
    found: dict[str, None] = {}
    waiting = list(references(schema["properties"]))
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        found[name] = None
        waiting = [*references(named[name]), *waiting]
    return [name for name in found if "properties" in named[name]]


def references(value: Any) -> Iterator[str]:
    """Every definition that a piece of the schema refers to."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield name_of(value)
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)
