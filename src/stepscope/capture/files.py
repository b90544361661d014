"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress


def written(path: str, data: bytes) -> None:
    """Write a file; raises OSError, with its name, and removes what came of it, where the disk does."""
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        removed(path)
        raise OSError(error.errno, error.strerror, path) from error


def moved(path: str, to: str) -> None:
    """Rename a file in one step; raises OSError, and removes it, where the disk does."""
    try:
        os.replace(path, to)
    except OSError:
        removed(path)
        raise


def removed(path: str) -> None:
    """Remove a file, if that can be."""
    with suppress(OSError):
        os.unlink(path)
