"""The datagrams between PyTorch (Kineto) and a daemon on its machine, seen from the daemon.

A message is ``{uint64 size; char type[32]}`` and so many bytes, in the machine's byte order (libkineto's
ipcfabric/FabricManager.h). Who sent one is the kernel's word, not the sender's.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass

TICK_S = 0.2
"""``receive`` waits this long."""
_HEADER = struct.Struct("=Q32s")
_CREDENTIALS = struct.Struct("=iii")
"""Process, user, group (unix(7), SCM_CREDENTIALS)."""
_LONGEST = 1 << 16
_NAME = "dynolog"


@dataclass(frozen=True)
class Datagram:
    """One datagram; ``pid`` and ``uid`` are its sender's."""

    type: bytes
    body: bytes
    pid: int
    uid: int
    address: str | bytes


class Fabric:
    """The socket that PyTorch asks: the abstract name ``dynolog``, or the file of that name in ``folder``.

    ``folder`` is the job's KINETO_IPC_SOCKET_DIR, as it is written there, empty where it has none: a job that gets an
    answer from a name that begins otherwise ends itself (PyTorch 2.13). Entering raises OSError where the socket is
    taken or cannot be made.
    """

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/{_NAME}" if folder else ""
        self._folder: int | None = None
        self._made: tuple[int, int] | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.settimeout(TICK_S)

    def __enter__(self) -> Fabric:
        try:
            if self._path:
                self._folder = _bind_file(self._socket, self._path)
                status = os.stat(_NAME, dir_fd=self._folder, follow_symlinks=False)
                self._made = status.st_dev, status.st_ino
            else:
                self._socket.bind(b"\0dynolog\0")
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        if self._folder is not None:
            if self._made is not None:
                _unlink(self._folder, self._made)
            os.close(self._folder)
            self._folder = None

    def receive(self) -> Datagram | None:
        """The next message; None where none comes for a moment, or what came is none."""
        try:
            data, ancillary, _, address = self._socket.recvmsg(_LONGEST, socket.CMSG_SPACE(_CREDENTIALS.size))
        except (TimeoutError, ConnectionError):
            return None
        wanted = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)
        known = [told for level, kind, told in ancillary if (level, kind) == wanted]
        if len(data) < _HEADER.size or not known or not address:
            return None
        _, kind = _HEADER.unpack_from(data)
        pid, uid, _ = _CREDENTIALS.unpack(known[0][: _CREDENTIALS.size])
        return Datagram(kind.rstrip(b"\0"), data[_HEADER.size :], pid, uid, address)

    def reply(self, message: Datagram, body: bytes) -> None:
        """Answer a message; a sender that has gone needs none."""
        with suppress(OSError):
            self._socket.sendto(_HEADER.pack(len(body), message.type) + body, message.address)


def _bind_file(bound: socket.socket, path: str) -> int:
    """Bind to a path, over what a daemon that has gone left there; a descriptor of the folder.

    The folder may be another user's, who can rename what lies in it at any moment: after the bind nothing is done by
    its path. Everyone may write to the socket, as PyTorch has it with its own: jobs of other users ask root's capture.
    """
    if _is_served(path):
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _unlink(folder, None)
        before = os.umask(0o111)
        try:
            bound.bind(path)
        finally:
            os.umask(before)
    except OSError:
        os.close(folder)
        raise
    return folder


def _unlink(folder: int, made: tuple[int, int] | None) -> None:
    """Remove a socket of the daemon's name, where it is the one that was made; anything else there is left alone."""
    with suppress(OSError):
        status = os.stat(_NAME, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISSOCK(status.st_mode) and made in (None, (status.st_dev, status.st_ino)):
            os.unlink(_NAME, dir_fd=folder)


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        return True
