"""Bounds of inputs: each says where it comes from."""

from __future__ import annotations

from typing import Final

SHARD_BYTES: Final = 64 << 30
"""A larger file of an object store is not fetched: temporary folders of workers are hardly larger."""
