"""A folder that is handed to another process, perhaps another user's, to leave a file in.

Whoever owns the place it lies in can rename it, put a link in its stead, or leave links and pipes inside, at any time.
Nothing here therefore goes by a path twice: the folder is made, given away and read through its descriptor, and what
lies in it is opened only as a plain file of the user it was given to.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from typing import BinaryIO

_TRIES = 100


class Handed:
    """A new folder in ``parent``, one's own alone until it is given. Raises OSError where none can be made."""

    def __init__(self, parent: str, prefix: str) -> None:
        self._parent = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.name = _made(self._parent, prefix)
            self._folder = _opened(self._parent, self.name)
        except OSError:
            os.close(self._parent)
            raise
        self._uid = os.geteuid()

    def write(self, name: str, content: bytes) -> None:
        """Leave a file for the other process, which has not been given the folder yet."""
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=self._folder)
        with os.fdopen(made, "wb") as file:
            file.write(content)

    def give(self, uid: int) -> None:
        """Make another user the owner."""
        if uid != self._uid:
            os.fchown(self._folder, uid, -1)
            self._uid = uid

    def names(self) -> list[str]:
        """What lies in it."""
        return sorted(os.listdir(self._folder))

    def open(self, name: str) -> BinaryIO:
        """A plain file of the user it was given to. Raises OSError for a link, a pipe, or another's file."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(name, flags, dir_fd=self._folder)
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != self._uid or status.st_nlink != 1:
            os.close(file)
            raise PermissionError(errno.EPERM, "what lies there is not a file that it wrote", name)
        return os.fdopen(file, "rb")

    def remove(self) -> None:
        """Remove it and what is in it, links as links."""
        shutil.rmtree(self.name, ignore_errors=True, dir_fd=self._parent)
        os.close(self._folder)
        os.close(self._parent)


def _made(parent: int, prefix: str) -> str:
    for _ in range(_TRIES):
        name = prefix + secrets.token_hex(8)
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
        except FileExistsError:
            continue
        return name
    raise FileExistsError(errno.EEXIST, "no name is free")


def _opened(parent: int, name: str) -> int:
    """The folder that was just made there, unless another lies in its stead by now."""
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077 or os.listdir(folder):
        os.close(folder)
        raise PermissionError(errno.EPERM, "another folder was put in place of the one made there")
    return folder
