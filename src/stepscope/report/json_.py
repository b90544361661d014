"""The machine-readable report: one JSON document, always the same bytes for the same document."""

from __future__ import annotations

import json
from typing import Any

_ORDER = (
    "schema", "tool", "profile", "steps", "accounting", "summary", "findings", "plan", "whatif", "analyses",
)  # fmt: skip


def render(document: dict[str, Any]) -> str:
    """The document as JSON text with a newline at its end; top-level keys in the order of the schema.

    The text is ASCII: a name may hold what no output encoding can carry, such as half of a surrogate pair.

    Raises:
        ValueError: the document holds NaN or an infinity, which JSON cannot say.
    """
    rest = [key for key in document if key not in _ORDER]
    ordered = {key: document[key] for key in (*_ORDER, *rest) if key in document}
    return json.dumps(ordered, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
