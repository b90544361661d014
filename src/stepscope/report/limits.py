"""Bounds of what reports list: each says where it comes from."""

from __future__ import annotations

from typing import Final

# --- many ranks ---------------------------------------------------------------------------------------------------

ANNOTATIONS_LISTED: Final = 500
"""Annotations a report lists: a choice; programs that name a range after its batch or request have thousands."""

# --- memory of compiled programs ----------------------------------------------------------------------------------

PROGRAM_BUFFER_BYTES: Final = 16 * 1024
"""Smaller buffers of a compiled program are not listed one by one (XProf's memory viewer has the same bound)."""

KEPT_BESIDE: Final = 2
"""A value that a compiled program computes is kept where at least so many others take memory before it goes: one that
the next op takes is used at once, and nothing is gained by computing it again."""
