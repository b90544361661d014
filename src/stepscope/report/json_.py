"""The machine-readable report: one JSON document, always the same bytes for the same document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.document.report import Report as Document

_ORDER = (
    "schema", "tool", "profile", "steps", "accounting", "summary", "findings", "plan", "whatif", "analyses",
)  # fmt: skip


def render(document: Document) -> str:
    """The document as JSON text with a newline at its end; top-level keys in the order of the schema.

    The text is ASCII: a name may hold what no output encoding can carry, such as half of a surrogate pair.

    Raises:
        ValueError: the document holds NaN or an infinity, which JSON cannot say.
    """
    values: Mapping[str, object] = document
    rest = [key for key in values if key not in _ORDER]
    ordered = {key: values[key] for key in (*_ORDER, *rest) if key in values}
    return json.dumps(ordered, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
