"""stepscope's own saved form (``trace/saved.py``): opens at once."""

from __future__ import annotations

from pathlib import Path

from stepscope.readers.recorded import proven
from stepscope.trace import saved
from stepscope.trace.trace import Trace
from stepscope.writers.replacing import replacing


def write(trace: Trace, path: Path) -> None:
    """Write one file, with the digest of the one that the trace was read from.

    Raises OSError where the disk does.
    """
    with replacing(path) as part, part.open("wb") as file:
        file.writelines(saved.pack(proven(trace)))
