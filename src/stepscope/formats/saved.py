"""stepscope's own saved form (``trace/saved.py``): opens at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from stepscope.errors import InputError
from stepscope.formats.recorded import proven
from stepscope.inputs.source import Source
from stepscope.replacing import replacing
from stepscope.trace import saved
from stepscope.trace.trace import Trace


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Open a saved trace; the columns of a file that is not compressed are mapped, not read.

    Raises InputError where the file is damaged, or of another version.
    """
    data, _ = source.data(mapped=True)  # A fault of the compression shows as missing bytes.
    try:
        return saved.unpack(data.view(np.ndarray))
    except saved.SavedError as error:
        raise InputError(f"{source.path}: {error}") from error


def write(trace: Trace, path: Path) -> None:
    """Write one file, with the digest of the one that the trace was read from.

    Raises OSError where the disk does.
    """
    with replacing(path) as part, part.open("wb") as file:
        file.writelines(saved.pack(proven(trace)))
