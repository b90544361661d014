"""The JSON Schema of the machine-readable report, shipped with the package."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

REPORT_SCHEMA = "stepscope.report/1"
"""What a report's ``schema`` key says."""


def load() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) of :data:`REPORT_SCHEMA`, as a fresh object."""
    text = resources.files(__package__).joinpath("report-1.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
