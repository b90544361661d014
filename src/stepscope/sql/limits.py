"""Bounds of queries: each says where it comes from."""

from __future__ import annotations

from typing import Final

QUERY_S: Final = 120.0
"""A query that takes longer is ended: grouping ten million rows takes polars a second, and what takes minutes is a
product of tables that nobody meant."""

QUERY_BYTES: Final = 4 << 30
"""Memory that a query may take beside its tables (and half of what the machine has free, where that is less): joining
ten million rows by a key takes about 1 GB."""

QUERY_CHARACTERS: Final = 50_000
"""A query of more characters is not looked at: parsing takes time with the length, and people write a thousand."""

QUERY_DEPTH: Final = 40
"""Parentheses within each other: the engine itself gives up at 50."""

QUERY_STEPS: Final = 20
"""Steps of the parser per word or mark of a query: what people write takes one or two, and what it tries in several
ways at each depth takes twice as many with each."""
