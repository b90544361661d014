"""Thresholds of traces: each says where it comes from."""

from __future__ import annotations

from typing import Final

NAMES_LOST_SHARE: Final = 0.10
"""Where more events than this lost their names with the end of a cut file, no cause is told from the rest."""
