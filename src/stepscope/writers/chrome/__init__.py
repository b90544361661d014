"""Kineto-flavoured Chrome-trace JSON, for Perfetto, chrome://tracing and whatever reads PyTorch's profiles."""

from stepscope.writers.chrome.file import write
from stepscope.writers.lacks import Lack, notices, spelled, whole

LACKS = (
    whole("tensors", "tensors"),
    Lack("notices about what was lost or cut out", ("losses",), notices),
    spelled("slices without a category, or of one that Kineto does not have, get Kineto's", "slices.category"),
)

__all__ = ["LACKS", "write"]
