"""What the recorder asks of a framework's profiler."""

from __future__ import annotations

import contextlib
import errno
import glob
import gzip
import os
import shutil
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

from .files import moved
from .options import Options
from .place import file_stem

_NO_ROOM = 1 << 20
"""With so few bytes free a disk is full."""


class Declined(Exception):
    """Nothing can be recorded, for a reason that a person should read."""


class Backend(ABC):
    """One window of one framework's profiler.

    ``prepare``, ``begin``, ``mark`` and ``stop`` are called on the thread that trains, between two steps; ``export`` on
    a thread of ours. Each may raise: the job goes on, and the manifest says why.
    """

    framework = ""
    warm_up = 0
    """Steps between ``prepare`` and ``begin``."""
    stops_anywhere = False
    """Whether another thread may stop it, in the middle of a step."""
    stops_on_export = False
    """Whether ``export`` is what stops it."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def prepare(self, number: int) -> None:  # noqa: B027  Some have nothing to get ready.
        """Get ready before step ``number``. Raises Declined where another profiler is at work."""

    @abstractmethod
    def begin(self, number: int | None) -> None:
        """Record from here on; step ``number`` begins, or nothing is known of steps."""

    def mark(self, number: int) -> None:  # noqa: B027  Some record steps without being told.
        """One step ends and step ``number`` begins."""

    @abstractmethod
    def stop(self) -> None:
        """Record no more."""

    def discard(self) -> None:
        """Record no more, and keep nothing."""
        self.stop()

    @abstractmethod
    def export(self, folder: str) -> list[str]:
        """Write what was recorded; the files."""

    def lighter(self) -> Backend | None:
        """The same with less recorded, for when this one could not start; None where there is none."""
        return None

    def version(self) -> str:
        """The framework's version."""
        return ""

    def facts(self) -> dict[str, Any]:
        """What else is known of the window, for the manifest."""
        return {}

    def switches(self) -> dict[str, dict[str, Any]]:
        """What could have enriched the profile: name -> {"on": whether it was, "adds": what it adds}."""
        return {}


def whole(part: str) -> None:
    """Raise OSError, and remove what was written, where a JSON file is cut short: Kineto only logs what the disk says.

    It writes beside (``.tmp``), and renames.
    """
    try:
        with open(part, "rb") as file:
            file.seek(max(os.path.getsize(part) - 64, 0))
            if file.read().rstrip().endswith(b"}"):
                return
    except FileNotFoundError:
        pass
    free, limit = shutil.disk_usage(os.path.dirname(part)).free, _longest()
    size = 0
    for path in glob.glob(glob.escape(part) + "*"):
        size += os.path.getsize(path)
        os.unlink(path)
    if free <= max(size, _NO_ROOM):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.path.dirname(part))
    if limit is not None and size >= limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), part)
    raise OSError(errno.EIO, "the profiler did not write its file whole", part)


def _longest() -> int | None:
    """How long a file of this process may be; None for any length."""
    try:
        resource: Any = import_module("resource")  # not on Windows
    except ImportError:
        return None
    limit: int = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def placed(part: str, folder: str, ending: str, limit: int, compress: bool = False) -> str:
    """Move a finished file to its exclusive name in a folder, in one step; its path there.

    Raises Declined, and removes the file, where it is larger than ``limit`` bytes.
    """
    size = os.path.getsize(part)
    if size > limit:
        os.unlink(part)
        raise Declined(f"the profile had {size} bytes, more than {limit}: record fewer steps, or no stacks")
    if compress:
        try:
            with open(part, "rb") as plain, gzip.open(part + ".gz", "wb", compresslevel=3) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)
        except OSError:  # No room for both: as it is, it is whole and on the disk.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part + ".gz")
            ending = ending.removesuffix(".gz")
        else:
            os.unlink(part)
            part += ".gz"
    path = os.path.join(folder, file_stem() + ending)
    moved(part, path)
    return path


def collected(scratch: str, folder: str, options: Options) -> list[str]:
    """Move the XPlane files of a scratch folder to exclusive names in a folder, and remove the scratch folder."""
    try:
        if options.tensorboard:
            folder = os.path.join(folder, "plugins", "profile", file_stem())
            os.makedirs(folder)
        paths = sorted(glob.glob(os.path.join(scratch, "**", "*.xplane.pb"), recursive=True))
        return [placed(path, folder, ".xplane.pb", options.max_bytes) for path in paths]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def quietly_closed(context: Any) -> None:
    """Leave a range that the profiler may have ended already."""
    if context is not None:
        with contextlib.suppress(Exception):
            context.__exit__(None, None, None)
