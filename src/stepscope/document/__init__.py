"""The documents that stepscope writes, declared once: every field with its type, unit, meaning and column.

Nothing runs here. The JSON Schemas, ``docs/report-schema.md``, the types of the pages' JavaScript and the tables of the
long report are made from it, by :mod:`stepscope.document.declared`.
"""

from typing import Final

REPORT_SCHEMA: Final = "stepscope.report/1"
"""What a report's ``schema`` key says."""

COMPARISON_SCHEMA: Final = "stepscope.comparison/1"
"""What a comparison's ``schema`` key says."""
