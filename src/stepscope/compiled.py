"""How loops that run per event are compiled, and where their machine code is kept.

The cache folder is ``$STEPSCOPE_CACHE``, else ``$NUMBA_CACHE_DIR``, else the user's cache folder, else a private
temporary folder; with none writable the kernels are compiled anew in every process. Inside it one folder is named
after everything the machine code depends on (sources, versions, processor): numba looks only at a file's time and
size, which reproducible wheels keep constant from release to release. Folders of other versions go once nobody has used
them for a month.

Where numba is missing (a Python it does not support yet) ``kernel`` leaves the function as it is: the same results,
slower. The fast road of ``readers/scan`` then stands aside for the tolerant one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from stepscope.limits import KERNELS_KEPT_S

_SETTINGS = ".numba_config.yaml"
"""Where one stands, numba looks for a file of this name at every start and every compilation, and does what it says."""


def _loaded() -> Any:
    """numba, without the settings that lie where one stands: that is often among profiles of others.

    Those of the environment, the user's own, count. Where the caller's program has loaded numba already, so it stays.
    """
    if "numba" in sys.modules:
        return sys.modules["numba"]
    exists = os.path.exists

    def without_settings(path: Any) -> bool:
        return path != _SETTINGS and exists(path)

    os.path.exists = without_settings
    try:
        found: Any = import_module("numba")
    finally:
        os.path.exists = exists
    found.core.config._config_fname = ""  # No file has this name.
    return found


numba: Any
try:
    numba = _loaded()
    binding: Any = import_module("llvmlite.binding")
except ImportError:
    numba = None

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}


def inlined(function: Function) -> Function:
    """Compile as part of every kernel that calls it."""
    if numba is None:
        return function
    return cast(Function, numba.njit(forceinline=True, **_OPTIONS)(function))


def outlined(function: Function) -> Function:
    """Compile as a function of its own: for rare work that would only bloat the loop."""
    if numba is None:
        return function
    return cast(Function, numba.njit(**_OPTIONS)(function))


def kernel(function: Function) -> Function:
    """Compile a function that Python calls, and keep its machine code where a folder for it exists."""
    if numba is None:
        return function
    folder = cache_folder(Path(function.__code__.co_filename).parent)
    if folder is None:
        return outlined(function)
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)  # numba reads it while decorating; the user's own setting comes back below
    try:
        return cast(Function, _kept_where_possible(numba.njit(cache=True, **_OPTIONS)(function)))
    finally:
        numba.config.CACHE_DIR = previous


def _kept_where_possible(compiled: Any) -> Any:
    """The same function; where the disk has no room for its machine code, it is compiled anew in every process."""
    cache: Any = getattr(compiled, "_cache", None)
    save = getattr(cache, "save_overload", None)
    if save is None:
        return compiled

    def saved(signature: object, code: object) -> None:
        with suppress(OSError):
            save(signature, code)

    cache.save_overload = saved
    return compiled


def cache_folder(sources: Path) -> Path | None:
    """The folder for the machine code of one package of this version, created; None where nothing can be written."""
    if sources not in _FOLDERS:
        name = _folder_name(sources)
        folder = next((found for parent in _candidates() if (found := _usable(parent, name))), None)
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


_KERNELS = re.compile(r"kernels-(?:[a-z_]+-)?[0-9a-f]{16}")


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


def disabled() -> bool:
    """Whether the user has switched numba's compiler off; kernels then run as Python, where they can."""
    return numba is not None and bool(numba.config.DISABLE_JIT)


def must_compile(sources: Path, kernel_name: str) -> bool:
    """Whether the next call of a kernel compiles it first, because no machine code of it is kept."""
    if numba is None or disabled():
        return False
    folder = cache_folder(sources)
    return folder is None or not any(folder.glob(f"**/{kernel_name}*.nbi"))


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
    return f"kernels-{sources.name}-{_fingerprint(sources)}"


def _fingerprint(sources: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for text in (numba.__version__, sys.version, binding.get_host_cpu_name(), str(binding.get_host_cpu_features())):
        digest.update(text.encode())
    # A kernel holds what it inlines, which may come from the package above its own.
    for path in (Path(__file__), *sorted(sources.glob("*.py")), *sorted(sources.parent.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()
