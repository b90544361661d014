"""``docs/report-schema.md``: the keys of the JSON report, from their declaration."""

from __future__ import annotations

import re
from collections.abc import Iterator

from generator.markdown import section, table
from stepscope.document.declared import DeclaredField, FieldShape, fields, objects
from stepscope.document.findings import EvidenceEntry
from stepscope.document.kinds import CATEGORY
from stepscope.document.profile import DeviceEntry, FileEntry, LossEntry
from stepscope.document.report import Report, Tool
from stepscope.document.steps import AccountingRow, StepEntry, StepTimeEntry, SummaryEntry
from stepscope.report.schema import snake

INTRO = """\
# The JSON report

{description}

What everybody reads is told here; what the other objects hold, those of [analyses](#analyses) above all, says the JSON
Schema:

```python
from stepscope.report.schema import load

for key, told in load()["$defs"]["kernel"]["properties"].items():
    print(key, told.get("type"), told["description"])
```

A key without a type is text. A ? marks what may be absent, [] a list; `ns-at` is since the trace's origin. `rank` is
null where the profile says none, `device`, the index of one, for the host's time. How to use the report:
[in Python and CI](guides/in-python-and-ci.md). Made from `src/stepscope/document/` by `make docs`.
"""

UNITS = {"ns from the trace's origin": "ns-at", "share of one": "share"}
"""As types; others are called as they are."""
LINK = re.compile(r"\[\w+\](\(#\w+\))")
"""How a type leads to an object."""
TOLD = ("report", "profile", "findings")
"""The files whose keys are told one by one."""
UNTOLD = (Report, Tool, FileEntry, DeviceEntry, LossEntry, EvidenceEntry)
"""Of these what speaks for itself, and the root, which stands first."""


def page() -> str:
    """The root, then the objects that are told, in the order in which they are first referred to."""
    parts = [section("The document", keys(Report))]
    parts += [section(f"`{snake(one)}`", one.__doc__ or "", keys(one)) for one in objects(Report) if is_told(one)]
    description = " ".join((Report.__doc__ or "").split())
    return "\n".join([INTRO.replace("{description}", description), *parts])


def is_told(of: type) -> bool:
    """Whether the page has the object's keys."""
    return of not in UNTOLD and (home(of) in TOLD or of in (StepEntry, AccountingRow, SummaryEntry, StepTimeEntry))


def home(of: type) -> str:
    """The file that declares an object."""
    return of.__module__.rpartition(".")[2]


def keys(of: type) -> str:
    """A row per key of an object."""
    return table(("key", "type", "holds"), rows(of))


def rows(of: type) -> Iterator[tuple[str, str, str]]:
    """The keys of an object, with what they mean."""
    for one in fields(of):
        told = LINK.search(words(one.shape))
        kind = words(one.shape).replace(told[0] if told else "text", "")
        yield _linked(one), kind + ("" if one.required else " ?"), meaning(one)


def _linked(one: DeclaredField) -> str:
    """A key, which leads to the object that it holds."""
    told = LINK.search(words(one.shape))
    return f"[`{one.key}`]{told[1]}" if told else f"`{one.key}`"


def meaning(one: DeclaredField) -> str:
    """What a key means, without when it is null; its values, where they are few enough to list."""
    values = one.shape.words
    listed = f" {', '.join(f'`{value}`' for value in values)}." if 1 < len(values) <= 8 else ""
    return "" if one.key in ("rank", "device") else re.sub(r"; (?:null|absent) [^;.]*", "", one.field.meaning) + listed


def words(shape: FieldShape) -> str:
    """A type in words, with its unit."""
    return f"{_plain(shape)}/null" if shape.null else _plain(shape)


def _plain(shape: FieldShape) -> str:
    if shape.of is not None:
        return f"[{snake(shape.of)}](#{snake(shape.of)})" if is_told(shape.of) else f"`{snake(shape.of)}`"
    if shape.words:
        return f"`{shape.words[0]}`" if len(shape.words) == 1 else "text"
    if shape.holds == "list" and shape.inner is not None:
        return f"({words(shape.inner)})[]" if shape.inner.null else f"{words(shape.inner)}[]"
    if shape.inner is not None:
        return f"{'category' if shape.kind == CATEGORY else 'text'} to {words(shape.inner)}"
    assert shape.plain is not None
    assert shape.kind is not None
    name = {int: "integer", float: "number", str: "text", bool: "boolean"}[shape.plain]
    return UNITS.get(shape.kind.unit or "", shape.kind.unit) or name
