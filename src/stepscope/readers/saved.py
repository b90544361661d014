"""stepscope's own saved form (``trace/saved.py``)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.errors import InputError
from stepscope.readers.source import Source
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
