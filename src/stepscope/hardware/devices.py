"""Which device a recorded name is, and what it can do at best."""

from __future__ import annotations

import re
from functools import lru_cache

from stepscope.hardware import amd, cloud, nvidia
from stepscope.hardware.peaks import DevicePeaks, Figure, Precision
from stepscope.regex import regex

__all__ = ["DevicePeaks", "Figure", "Precision", "lookup"]

_LONGEST = 200
_PREFIX = regex(r"(?:(?:NVIDIA|AMD|Tesla|GeForce|Radeon|Graphics|Instinct|Google|AWS|Cloud)[ -])*", re.I)
_SUFFIX = regex(r"(?: GPU| Tensor Core GPU| OAM)*\s*", re.I)
_DEVICES = tuple((regex(pattern, re.I), peaks) for pattern, peaks in (*nvidia.DEVICES, *amd.DEVICES, *cloud.DEVICES))


@lru_cache(maxsize=256)
def lookup(name: str, compute_capability: tuple[int, int] | None = None) -> DevicePeaks | None:
    """The peaks of the device of that name; None for a device that is not in the tables.

    The whole name must fit: a slice of a GPU ("... MIG 1g.5gb") or a sibling with other limits is not taken
    for the device it resembles. A compute capability that contradicts the table gives None too.

    >>> lookup("NVIDIA H100 80GB HBM3").matrix_flops("bf16")
    989400000000000
    """
    short = name.strip()[:_LONGEST]
    prefix = _PREFIX.match(short)
    short = short[prefix.end() :] if prefix else short
    for pattern, peaks in _DEVICES:
        match = pattern.match(short)
        if match and _SUFFIX.fullmatch(short, match.end()):
            known = peaks.compute_capability
            contradicted = None not in (compute_capability, known) and compute_capability != known
            return None if contradicted else peaks
    return None
