"""How StepStats and RunMetadata begin."""

from __future__ import annotations

from stepscope.regex import regex

_OPENED = regex(rb"\x0a[\x80-\xff]{0,8}[\x00-\x7f]")
"""Field 1 of a message: tag and size."""
_DEVICE = regex(rb"/[A-Za-z]{1,12}:[!-~]")


def recognise(head: bytes) -> bool:
    """Whether a file begins with a device's name, in ``DeviceStepStats``, in ``StepStats`` (in ``RunMetadata``)."""
    return levels_of(head) is not None


def levels_of(head: bytes) -> int | None:
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
