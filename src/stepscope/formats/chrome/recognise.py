"""How Chrome traces begin."""

from __future__ import annotations


def recognise(head: bytes) -> bool:
    """Whether a file begins like Chrome-trace JSON: an object or a list, after blanks or a byte-order mark."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
