"""Ranges of steps and of time, as people type them."""

from __future__ import annotations

import math
from decimal import Decimal

from stepscope.errors import UsageError
from stepscope.regex import regex
from stepscope.units import NS_PER_MS, NS_PER_S, NS_PER_US

_UNITS = {"ns": 1, "us": NS_PER_US, "µs": NS_PER_US, "μs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}
_FURTHEST_NS = 1 << 62
_STEPS = regex(r"(?=.*[0-9])(?P<first>[0-9]{1,18})?(:(?P<stop>[0-9]{1,18})?)?")
_DURATION = regex(r"([0-9]{1,15}(?:\.[0-9]{1,18})?)\s*([a-zµμ]*)")


def steps(text: str) -> tuple[int | None, int | None]:
    """``10:13`` as (10, 13), a single ``10`` as (10, 11); an end left out is None.

    >>> steps("10:13"), steps("7"), steps(":5")
    ((10, 13), (7, 8), (None, 5))
    """
    match = _STEPS.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--steps {text}: give numbers as 10:13 (steps 10, 11 and 12) or 10")
    begin, end = (int(number) if number else None for number in match.group("first", "stop"))
    if begin is not None and ":" not in text:
        end = begin + 1
    if begin is not None and end is not None and end <= begin:
        raise UsageError(f"--steps {text}: the end is not behind the start")
    return begin, end


def time(text: str) -> tuple[int | None, int | None]:
    """``1.2s:1.5s`` in ns; an end left out is None.

    >>> time("1.2s:1.5s"), time("300us:")
    ((1200000000, 1500000000), (300000, None))
    """
    begin, colon, end = text.partition(":")
    if not colon or not (begin.strip() or end.strip()):
        raise UsageError(f"--time {text}: give a start and an end, as 1.2s:1.5s")
    start_ns = duration(begin, "--time") if begin.strip() else None
    end_ns = duration(end, "--time") if end.strip() else None
    if start_ns is not None and end_ns is not None and end_ns <= start_ns:
        raise UsageError(f"--time {text}: the end is not behind the start")
    return start_ns, end_ns


def duration(text: str, option: str) -> int:
    """A time in ns, from decimal text without a float in between; a part of a ns counts as a whole one.

    >>> duration("10us", "--min-dur"), duration("0.1 ms", "--min-dur"), duration("0", "--min-dur")
    (10000, 100000, 0)
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or (match[2] not in _UNITS and not (match[2] == "" and Decimal(match[1]) == 0)):
        right = f"{text.strip()}s or {text.strip()}ms" if match is not None and match[2] == "" else "2s or 1.5ms"
        raise UsageError(f"{option} {text}: a time is a number with a unit (ns, us, ms, s), as {right}")
    return min(math.ceil(Decimal(match[1]) * _UNITS.get(match[2], 1)), _FURTHEST_NS)
