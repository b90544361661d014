"""What PyTorch/XLA counts of itself: graphs compiled, transfers, ops that fall back to the CPU."""

from __future__ import annotations

from importlib import import_module

_KEPT = ("Metric:", "Counter:", "TotalSamples:", "Accumulator:", "Value:")
"""Beginnings of the lines that are sums; rates and percentiles are of the whole run, not of a window."""
_MOST_LINES = 10_000


def metrics_report() -> str:
    """``torch_xla.debug.metrics.metrics_report()`` without rates and percentiles; empty where it cannot be had."""
    try:
        lines = str(import_module("torch_xla.debug.metrics").metrics_report()).splitlines()
    except Exception:  # noqa: BLE001  A profile without counters is still a profile.
        return ""
    return "\n".join([line for line in lines if line.lstrip().startswith(_KEPT)][:_MOST_LINES])
