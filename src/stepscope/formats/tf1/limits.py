"""Thresholds of reading what TensorFlow 1 records: each says where it comes from."""

from __future__ import annotations

from typing import Final

RUN_SHARED_NODES: Final = 0.5
"""Runs of a session that share so much of their nodes are runs of one kind: one that also writes a summary is a step
too, one that fills a queue is none."""
