"""How files of each format begin: what recognises them, without what reads them. XPlane's is in its folder."""

from __future__ import annotations

import re

from stepscope.trace import saved

SQLITE = b"SQLite format 3\0"

_OPENED = re.compile(rb"\x0a[\x80-\xff]{0,8}[\x00-\x7f]")
"""Field 1 of a message: tag and size."""
_DEVICE = re.compile(rb"/[A-Za-z]{1,12}:[!-~]")


def is_saved(head: bytes) -> bool:
    """Whether a file begins like a saved trace of any version."""
    return head.startswith(saved.MAGIC)


def is_sqlite(head: bytes) -> bool:
    """Whether a file begins like an SQLite database."""
    return head.startswith(SQLITE)


def is_step_stats(head: bytes) -> bool:
    """Whether a file begins with a device's name, in ``DeviceStepStats``, in ``StepStats`` (in ``RunMetadata``)."""
    return step_stats_levels(head) is not None


def step_stats_levels(head: bytes) -> int | None:
    """How many messages lie around the first name of a device, from 2 (StepStats) to 3; None for another file."""
    at = 0
    for level in range(3):
        opened = _OPENED.match(head, at)
        if opened is None:
            return None
        at = opened.end()
        if level > 0 and _DEVICE.match(head, at):
            return level + 1
    return None


def is_json(head: bytes) -> bool:
    """Whether a file begins like Chrome-trace JSON: an object or a list, after blanks or a byte-order mark."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
