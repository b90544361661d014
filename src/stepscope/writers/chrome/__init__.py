"""Kineto-flavoured Chrome-trace JSON, for Perfetto, chrome://tracing and whatever reads PyTorch's profiles."""

from stepscope.writers.chrome.file import write

__all__ = ["write"]
