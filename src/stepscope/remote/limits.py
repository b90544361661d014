"""Bounds of captures from running jobs: each says where it comes from."""

from __future__ import annotations

from typing import Final

CAPTURE_BYTES: Final = 1 << 30
"""A profile of more bytes is not received: it is held in memory once, and gRPC itself ends at 2 GiB. Two seconds of
eight busy devices take some 100 MB."""

CAPTURE_LONGEST_S: Final = 3600.0
"""No capture is longer: profiles grow by tens of MB a second."""

CAPTURE_WAIT_S: Final = 60.0
"""A profile is waited for so long once its recording is over, as TensorFlow's own client does."""
