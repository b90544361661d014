"""What XLA's host events mean (placeholder for the first minutes)."""

from __future__ import annotations

from enum import StrEnum


class XlaRole(StrEnum):
    """What a stretch of host time is for."""

    GRAPH_BUILD = "graph_build"
    COMPILE = "compile"
    TRANSFER = "transfer"
    FETCH = "fetch"
    EXECUTE = "execute"
    DISPATCH = "dispatch"
    WAIT = "wait"
    INFEED = "infeed"
    OUTFEED = "outfeed"
    STEP_MARKER = "step_marker"
    INPUT = "input"
    NOISE = "noise"


def classify_xla_name(name: str, is_python: bool = False) -> XlaRole | None:
    """The role of a name, None for others."""
    return None


def compiled_module(name: str) -> str | None:
    """The module a compilation's name tells."""
    return None
