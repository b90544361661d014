"""The JSON Schemas of the machine-readable documents, shipped with the package."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

REPORT_SCHEMA = "stepscope.report/1"
"""What a report's ``schema`` key says."""

COMPARISON_SCHEMA = "stepscope.comparison/1"
"""What a comparison's ``schema`` key says."""

_FILES = {REPORT_SCHEMA: "report-1.json", COMPARISON_SCHEMA: "comparison-1.json"}


def load(name: str = REPORT_SCHEMA) -> dict[str, Any]:
    """A schema (JSON Schema 2020-12) by its name, as a fresh object. Raises KeyError for another name."""
    text = resources.files(__package__).joinpath(_FILES[name]).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
