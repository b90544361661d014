"""Where the machine code of loops is kept.

The folder is ``$STEPSCOPE_CACHE``, else ``$NUMBA_CACHE_DIR``, else the user's cache folder, else a private temporary
folder; with none writable loops are compiled anew in every process. Inside it one folder is named after everything the
machine code depends on (sources, versions, processor): numba looks only at a file's time and size, which reproducible
wheels keep constant from release to release. Folders of other versions go once nobody has used them for a month.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from stepscope.regex import regex

KERNELS_KEPT_S: Final = 30 * 86_400
"""Machine code of another version is removed when no process has asked for it for so long: a version takes a few MB,
and compiling it again less than a minute."""


_COMPILED = Path(__file__).with_name("compiled.py")


def cache_folder(sources: Path) -> Path | None:
    """The folder for the machine code of one package of this version, created; None where nothing can be written."""
    if sources not in _FOLDERS:
        name = _folder_name(sources)
        folder = next((usable for parent in _candidates() if (usable := _usable(parent, name))), None)
        if folder is not None and folder.parent not in {known.parent for known in _FOLDERS.values() if known}:
            remove_unused(folder.parent)
        _FOLDERS[sources] = folder
    return _FOLDERS[sources]


_FOLDERS: dict[Path, Path | None] = {}


def remove_unused(parent: Path) -> None:
    """Remove the kernels of other versions that no process has asked for in ``KERNELS_KEPT_S``.

    Several processes may do so at once: a folder is renamed first, and named back where another one has just begun to
    use it. What is no folder of kernels of this user's own is left alone, links included.
    """
    try:
        with os.scandir(parent) as entries:
            old = [Path(entry.path) for entry in entries if _KERNELS.fullmatch(entry.name) and _is_unused(entry.path)]
        if not old:
            return
        package = Path(__file__).parent
        current = {_folder_name(sources) for sources in {path.parent for path in package.rglob("*.py")}}
        for folder in old:
            if folder.name in current:
                os.utime(folder)  # not asked for, but of this version: it need not be looked at again for a while
            else:
                _remove(folder)
    except OSError:
        return  # a folder that stays is no harm


_KERNELS = regex(r"kernels-(?:[a-z_]+-)?[0-9a-f]{16}")


def _is_unused(folder: str | Path) -> bool:
    status = os.lstat(folder)
    mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return mine and stat.S_ISDIR(status.st_mode) and status.st_mtime < time.time() - KERNELS_KEPT_S


def _remove(folder: Path) -> None:
    doomed = Path(tempfile.mkdtemp(prefix="removed-", dir=folder.parent))
    try:
        moved = folder.rename(doomed / folder.name)
        if not _is_unused(moved):
            moved.rename(folder)
    finally:
        shutil.rmtree(doomed, ignore_errors=True)


def _candidates() -> list[Path]:
    chosen = [Path(value) for name in ("STEPSCOPE_CACHE", "NUMBA_CACHE_DIR") if (value := os.environ.get(name))]
    if sys.platform == "win32":
        user = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        user = os.path.expanduser("~/Library/Caches")
    else:
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    private = Path(tempfile.gettempdir(), f"stepscope-{os.getuid() if hasattr(os, 'getuid') else 'kernels'}")
    return [*chosen, *([Path(user, "stepscope")] if os.path.isabs(user) else []), private]


def _usable(parent: Path, name: str) -> Path | None:
    """A private, writable folder below ``parent``: machine code that others could replace must never be loaded."""
    folder = parent / name
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return None
        if not stat.S_ISDIR(status.st_mode) or not _only_ours(folder):
            return None
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)  # it is in use: see remove_unused
    except OSError:
        return None
    return folder


def _only_ours(folder: Path) -> bool:
    """Whether nobody but this user and root can put another folder in the place of this one, or of one it lies in."""
    if not hasattr(os, "getuid"):
        return True
    absolute = Path(os.path.abspath(folder))
    above = {*absolute.parents, *absolute.resolve().parents}  # Of a link, where it lies and where it leads.
    # In a namespace that does not know root, what is root's is of an owner without a name, the root folder too.
    owners = {os.getuid(), 0, os.stat("/").st_uid}
    return all(_cannot_be_swapped(path.stat(), owners) for path in above)


def _cannot_be_swapped(status: os.stat_result, owners: set[int]) -> bool:
    """Whether names in a folder are changed by its trusted owner alone, or (as in /tmp) each by its own owner."""
    if status.st_uid not in owners:
        return False
    others = status.st_mode & 0o022
    if others == 0o020 and status.st_gid in (0, os.getgid()):
        return True  # The group that this user's files are of: on many systems a group of this user alone.
    return not others or bool(status.st_mode & stat.S_ISVTX)


def _folder_name(sources: Path) -> str:
    digest = hashlib.blake2b(_of_machine(), digest_size=8)
    for path in sorted(_behind(sources)):
        digest.update(path.read_bytes())
    return f"kernels-{sources.name}-{digest.hexdigest()}"


def _behind(sources: Path) -> set[Path]:
    """The modules that machine code of a folder's loops holds something of: those with loops or parts of them, and what
    such modules import, here and elsewhere in the package."""
    waiting, behind = [path for path in sources.glob("*.py") if _has_loops(path)], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in behind and path != _COMPILED:
            behind.add(path)
            waiting += _imported(path.read_text("utf-8")) if _has_loops(path) else ()
    return behind


def _has_loops(path: Path) -> bool:
    return b"from stepscope.compiled import" in path.read_bytes()


_IMPORT = regex(r"^from stepscope\.([\w.]+) import (\([^)]*\)|.+)$", re.MULTILINE)


def _imported(source: str) -> Iterator[Path]:
    """The package's modules that a module takes names from. No loop holds a threshold: it is given those it needs."""
    for package, names in _IMPORT.findall(source):
        home = Path(__file__).parent.joinpath(*package.split("."))
        places = (home, *(home / name for name in re.findall(r"\w+", names)), home / "__init__")
        yield from (file for place in places if (file := place.with_suffix(".py")).is_file() and place.name != "limits")


@cache
def _of_machine() -> bytes:
    """How loops are compiled, the compiler's versions and the processor, told without importing the compiler."""
    digest = hashlib.blake2b(sys.version.encode())
    for package in ("numba", "llvmlite"):
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            with suppress(OSError):
                digest.update(Path(place, "_version.py").read_bytes())
    digest.update(_COMPILED.read_bytes())
    digest.update(_processor())
    return digest.digest()


def _processor() -> bytes:
    """What tells this processor from others, of which a folder that machines share may hold machine code, too."""
    with suppress(OSError), open("/proc/cpuinfo", "rb") as file:
        told = file.read(1 << 14).split(b"\n\n")[0].splitlines()
        kept = (b"vendor_id", b"cpu family", b"model", b"model name", b"flags", b"CPU ", b"Features", b"cpu", b"isa")
        return b"\n".join(line for line in told if line.startswith(kept) and b"MHz" not in line)
    return platform.processor().encode() + platform.machine().encode()
