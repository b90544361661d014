"""How exports of Nsight Systems begin: as any SQLite database."""

from __future__ import annotations

SQLITE = b"SQLite format 3\0"


def recognise(head: bytes) -> bool:
    """Whether a file begins like an SQLite database."""
    return head.startswith(SQLITE)
