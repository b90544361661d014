"""How the kernels of this package are compiled, and where their machine code is kept.

The cache folder is ``$STEPSCOPE_CACHE``, else ``$NUMBA_CACHE_DIR``, else the user's cache folder, else a private
temporary folder; with none writable the kernels are compiled anew in every process. Inside it one folder is named
after everything the machine code depends on (sources, versions, processor): numba looks only at a file's time and
size, which reproducible wheels keep constant from release to release.

Importing this module imports numba; ``scan/__init__.py`` does so only when the fast road is taken.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import binding

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}


def inlined(function: Function) -> Function:
    """Compile as part of every kernel that calls it."""
    return numba.njit(forceinline=True, **_OPTIONS)(function)  # type: ignore[no-any-return]


def outlined(function: Function) -> Function:
    """Compile as a function of its own: for rare work that would only bloat the loop."""
    return numba.njit(**_OPTIONS)(function)  # type: ignore[no-any-return]


def kernel(function: Function) -> Function:
    """Compile a function that Python calls, and keep its machine code where a folder for it exists."""
    folder = cache_folder()
    if folder is None:
        return outlined(function)
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)  # numba reads it while decorating; the user's own setting comes back below
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)  # type: ignore[no-any-return]
    finally:
        numba.config.CACHE_DIR = previous


def cache_folder() -> Path | None:
    """The folder of this version's machine code, created; None where nothing can be written."""
    if not _FOLDER:
        _FOLDER.append(next((found for parent in _candidates() if (found := _usable(parent))), None))
    return _FOLDER[0]


_FOLDER: list[Path | None] = []


def disabled() -> bool:
    """Whether the user has switched numba's compiler off; the kernels cannot run then."""
    return bool(numba.config.DISABLE_JIT)


def must_compile() -> bool:
    """Whether the next read compiles the kernels first (some seconds), because no machine code is kept."""
    folder = cache_folder()
    return folder is None or not any(folder.glob("**/kernel.scan*.nbi"))


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


def _usable(parent: Path) -> Path | None:
    """A private, writable folder below ``parent``: machine code that others could replace must never be loaded."""
    folder = parent / f"kernels-{_fingerprint()}"
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return None
        if not stat.S_ISDIR(status.st_mode):
            return None
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def _fingerprint() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for text in (numba.__version__, sys.version, binding.get_host_cpu_name(), str(binding.get_host_cpu_features())):
        digest.update(text.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
