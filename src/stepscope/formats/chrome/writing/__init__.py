"""Kineto-flavoured Chrome-trace JSON, for Perfetto, chrome://tracing and whatever reads PyTorch's profiles."""

from stepscope.formats.chrome.writing.file import write
from stepscope.formats.lacks import Lack, notices, programs, spelled, whole
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Trace

_OF_BLOCKS = ("limit", "available", "fragmentation", "op", "region", "dtype", "shape")


def _told_of_blocks(trace: Trace) -> int:
    """Memory events of which an allocator tells its limit or the op."""
    return int(((trace.memory.limit != NULL) | (trace.memory.op >= 0)).sum())


LACKS = (
    whole("tensors", "tensors"),
    Lack(
        "memory events whose op, tensor or allocator's limit is known",
        tuple(f"memory.{column}" for column in _OF_BLOCKS),
        _told_of_blocks,
    ),
    programs(),
    whole("iterators", "settings of tf.data's iterators"),
    whole("metrics", "counters of PyTorch/XLA"),
    whole("placements", "logged placements of ops"),
    Lack("notices about what was lost or cut out", ("losses",), notices),
    spelled("slices without a category, or of one that Kineto does not have, get Kineto's", "slices.category"),
)

__all__ = ["LACKS", "write"]
