"""Thresholds that several formats share: each says where it comes from."""

from __future__ import annotations

from typing import Final

FAR_NS: Final = 86_400_000_000_000
"""Events a day away from the median of the file carry no usable time (zeroed or overflowed stamps, mixed epochs)."""
