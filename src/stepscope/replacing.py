"""Outputs appear whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write a file or folder under, in a folder beside ``path``; it becomes ``path`` once the block is done.

    Where the block fails, what it wrote is removed and ``path`` is as it was. That folder is this user's alone and has
    a name that nobody can foresee: beside ``path`` others may write, and leave links. Raises OSError, with ``path`` as
    the file's name, where its folder does not exist, a file would take the place of a folder, or the disk, a quota or a
    limit lets it not be written.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    try:
        own = Path(tempfile.mkdtemp(prefix=".stepscope-", suffix=".part", dir=path.parent))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    beside = own / path.name
    try:
        yield beside
        if path.is_dir() and not beside.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        os.replace(beside, path)
    except OSError as error:
        raise _of(path, own, error) from error
    finally:
        shutil.rmtree(own, ignore_errors=True)  # What a disk that has become read-only keeps is under no name we read.


def _of(path: Path, own: Path, error: OSError) -> OSError:
    """The error, with the file that was asked for as its file: a write that fails names none, and one of what lies
    beside names a file that is gone by then."""
    named = error.filename
    if named is not None and not str(named).startswith(str(own)):
        return error
    told = re.search(r"\(os error (\d+)\)", str(error))  # polars' own, which has no number
    number = error.errno or (int(told[1]) if told else errno.EIO)
    return OSError(number, error.strerror or os.strerror(number), str(path))


def write_text(path: Path, text: str) -> None:
    """Write a report: whole or not at all, but for what is no file (a pipe, ``/dev/stdout``).

    Raises OSError where the disk does.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file():
        try:
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        return
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
