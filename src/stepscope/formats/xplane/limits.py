"""Thresholds of reading XPlane: each says where it comes from."""

from __future__ import annotations

from typing import Final

CLOCK_DRIFT_NS: Final = 1_000_000
"""A TPU's clock stays within this of a constant distance to the host's for minutes (14 parts in a million in the real
profile): times of its ops that run further off are estimates gone wrong, or a clock that drifts."""

CLOCK_AGREES_NS: Final = 100_000
"""Estimates of the distance of two clocks that lie within this agree: sound ones of one second lie within 20 µs."""

CLOCK_PAUSE_NS: Final = 10_000_000
"""Behind a pause of a device so long, the distance of its clock to the host's may be taken anew: what that adds to the
pause, less than ``CLOCK_DRIFT_NS`` as a rule, is a small part of it."""
