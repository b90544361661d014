"""Bounds of what the command line writes: each says where it comes from."""

from __future__ import annotations

from typing import Final

RANK_PAGES: Final = 8
"""Ranks of a job whose own pages stand beside it in one file: a choice, as many as one host often has."""

RANK_PAGES_BYTES: Final = 128 << 20
"""Bytes of their traces beyond which no further rank's pages are added: a choice, of a file that can still be sent; a
trace is a third larger as text."""
