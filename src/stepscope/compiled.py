"""How loops that run per event are compiled, and where their machine code is kept.

The cache folder is ``$STEPSCOPE_CACHE``, else ``$NUMBA_CACHE_DIR``, else the user's cache folder, else a private
temporary folder; with none writable the kernels are compiled anew in every process. Inside it one folder is named
after everything the machine code depends on (sources, versions, processor): numba looks only at a file's time and
size, which reproducible wheels keep constant from release to release. Folders of other versions go once nobody has used
them for a month.

A loop is plain Python until a process has so much to do that machine code pays: importing numba and loading what is
kept takes longer than a small profile in Python, and compiling a hundred times as long (``LOOPS``). Both give the
same results. Where numba is missing (a Python it does not support yet) loops stay Python for good, and the fast road of
``formats/chrome/scan`` stands aside for the tolerant one.
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
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any, Final, TypeVar, cast

import numpy as np

PLAIN_S: Final = 0.5
"""CPU time that a process spends on loops in Python before it loads machine code that is kept: what that takes, too."""
PLAIN_UNCOMPILED_S: Final = 6.0
"""The same where machine code would have to be made first, which takes 25 s and more."""
PLAIN_BYTES: Final = 4 << 20
PLAIN_UNCOMPILED_BYTES: Final = 32 << 20
"""The same of JSON, of which Python reads some 15 MB a second."""

PLAIN_FILE_BYTES: Final = 4 << 20
"""The same of a file of another format."""

PLAIN_ELEMENT_S: Final = 1.4e-6
"""What Python is expected to take for each element of a loop's largest array: a call that is begun is not given up."""

PLAIN_LARGEST: Final = 1 << 20
"""Elements of an array that Python does not begin on: compiling the loop is faster, even where nothing keeps it."""

KERNELS_KEPT_S: Final = 30 * 86_400
"""Machine code of another version is removed when no process has asked for it for so long: a version takes a few MB,
and compiling it again less than a minute."""

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


Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
_PART = "_part_of_kernels"
"""The attribute of a function that kernels call: the options it is compiled with."""


def inlined(function: Function) -> Function:
    """Compile as part of every kernel that calls it."""
    setattr(function, _PART, {"forceinline": True})
    return function


def outlined(function: Function) -> Function:
    """Compile as a function of its own: for rare work that would only bloat the loop."""
    setattr(function, _PART, {})
    return function


def kernel(function: Function) -> Function:
    """Compile a function that Python calls once that pays, and keep its machine code where a folder for it exists."""
    return cast(Function, CompiledLoop(function))


def native(function: Function) -> Function:
    """The same of a function that works on addresses, as Python cannot: it is compiled when it is first called."""
    return cast(Function, CompiledLoop(function, plain=False))


def _as_python(found: Any) -> Any:
    """What a loop returns, with numbers of Python's own types as machine code gives them."""
    if type(found) is tuple:
        return tuple(map(_as_python, found))
    return found.item() if isinstance(found, np.generic) else found


class CompiledLoop:
    """A loop that Python calls."""

    def __init__(self, function: Callable[..., Any], *, plain: bool = True) -> None:
        self.py_func = function
        self._plain = plain
        self._machine: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop: as machine code where that pays."""
        if self._machine is not None:
            return self._machine(*arguments)
        if not self._plain or (available() and not self._pays_in_python(arguments)):
            return self.machine(*arguments)
        began = time.thread_time()
        try:
            with np.errstate(over="ignore"):  # As in machine code, where a hash wraps round and says nothing.
                return _as_python(self.py_func(*arguments))
        finally:
            LOOPS.done += time.thread_time() - began

    def _pays_in_python(self, arguments: tuple[Any, ...]) -> bool:
        largest = max((len(one) for one in arguments if isinstance(one, np.ndarray)), default=0)
        return largest <= PLAIN_LARGEST and LOOPS.takes(largest * PLAIN_ELEMENT_S, self.is_kept)

    @property
    def machine(self) -> Callable[..., Any]:
        """The compiled function; the Python one where it cannot be compiled."""
        if self._machine is None:
            self._machine = _kept(self.py_func) if compiler() is not None else self.py_func
        return self._machine

    def is_kept(self) -> bool:
        """Whether machine code of it is kept."""
        code = self.py_func.__code__
        name = f"{Path(code.co_filename).stem}.{code.co_name}"
        return not must_compile(Path(code.co_filename).parent, name)


class Plain:
    """How much a process has done in Python of what machine code would do faster."""

    def __init__(self, most: float, most_uncompiled: float) -> None:
        self.most = most
        """What is done in Python although machine code is kept."""
        self.most_uncompiled = most_uncompiled
        """What is done in Python where machine code would have to be made first."""
        self.done = 0.0
        self.missed = False
        """Whether something was done in Python for want of machine code."""

    def takes(self, more: float, is_kept: Callable[[], bool]) -> bool:
        """Whether so much more is to be done in Python."""
        done = self.done + more
        if done <= self.most:
            return True
        missed = done <= self.most_uncompiled and not is_kept()
        self.missed |= missed
        return missed

    def expect_much(self) -> None:
        """Machine code is made as soon as it would be loaded: so much is to be done that it pays at once."""
        self.most_uncompiled = min(self.most_uncompiled, self.most)


LOOPS = Plain(PLAIN_S, PLAIN_UNCOMPILED_S)
"""Seconds of CPU time."""
JSON = Plain(PLAIN_BYTES, PLAIN_UNCOMPILED_BYTES)
"""Bytes read by the tolerant road."""


def missed() -> bool:
    """Whether this process did in Python what it would have done with machine code, had there been any."""
    return LOOPS.missed or JSON.missed


@cache
def compiler() -> Any | None:
    """numba, None where it cannot be used."""
    try:
        return _loaded()
    except ImportError:
        return None


def available() -> bool:
    """Whether numba can be used, as far as it is known: it is not imported to tell."""
    return compiler() is not None if compiler.cache_info().currsize else _is_installed()


@cache
def _is_installed() -> bool:
    with suppress(ImportError, ValueError):
        return find_spec("numba") is not None and find_spec("llvmlite") is not None
    return False


@cache
def _part(function: FunctionType) -> Any:
    return _machine(function, **getattr(function, _PART))


def _machine(function: FunctionType, **options: Any) -> Any:
    """The compiled function: in its module's names those of kernels and their parts stand for compiled ones."""
    numba: Any = compiler()
    names = function.__globals__
    called = {name: names[name] for name in function.__code__.co_names if name in names}
    parts = {name: _part(one) for name, one in called.items() if hasattr(one, _PART)}
    parts |= {name: one.machine for name, one in called.items() if isinstance(one, CompiledLoop)}
    if parts:
        known = FunctionType(function.__code__, {**names, **parts}, function.__name__, function.__defaults__)
        known.__module__, known.__qualname__ = function.__module__, function.__qualname__
        function = known
    return numba.njit(**options, **_OPTIONS)(function)


def _kept(function: Any) -> Any:
    folder = cache_folder(Path(function.__code__.co_filename).parent)
    if folder is None:
        return _machine(function)
    numba: Any = compiler()
    with _SETTING:
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)  # numba reads it while decorating; the user's own setting comes back below
        try:
            return _kept_where_possible(_machine(function, cache=True))
        finally:
            numba.config.CACHE_DIR = previous


_SETTING = RLock()
"""Held while numba's setting is another: two threads that ask at once would give one of them the user's, or none, and
numba then keeps and loads machine code where one stands. A kernel that calls others asks for theirs meanwhile."""


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
    if "numba" not in sys.modules:
        return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    numba = compiler()
    return numba is not None and bool(numba.config.DISABLE_JIT)


def must_compile(sources: Path, kernel_name: str) -> bool:
    """Whether the next call of a kernel compiles it first, because no machine code of it is kept."""
    if not available():
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
    digest = hashlib.blake2b(_of_machine(), digest_size=8)
    for path in sorted(_behind(sources)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _behind(sources: Path) -> set[Path]:
    """The modules that machine code of a folder's loops holds something of: those with loops or parts of them, and what
    such modules import, here and elsewhere in the package."""
    waiting, behind = [path for path in sources.glob("*.py") if _has_loops(path)], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in behind and path != Path(__file__):
            behind.add(path)
            waiting += _imported(path.read_text("utf-8")) if _has_loops(path) else ()
    return behind


def _has_loops(path: Path) -> bool:
    return b"from stepscope.compiled import" in path.read_bytes()


_IMPORT = re.compile(r"^from stepscope\.([\w.]+) import (\([^)]*\)|.+)$", re.MULTILINE)


def _imported(source: str) -> Iterator[Path]:
    """The package's modules that a module takes names from. No loop holds a threshold: it is given those it needs."""
    for package, names in _IMPORT.findall(source):
        home = Path(__file__).parent.joinpath(*package.split("."))
        places = (home, *(home / name for name in re.findall(r"\w+", names)), home / "__init__")
        yield from (file for place in places if (file := place.with_suffix(".py")).is_file() and place.name != "limits")


@cache
def _of_machine() -> bytes:
    """This module, the compiler's versions and the processor, told without importing the compiler."""
    digest = hashlib.blake2b(sys.version.encode())
    for package in ("numba", "llvmlite"):
        found = find_spec(package)
        for place in (found.submodule_search_locations or ()) if found is not None else ():
            with suppress(OSError):
                digest.update(Path(place, "_version.py").read_bytes())
    digest.update(Path(__file__).read_bytes())
    digest.update(_processor())
    return digest.digest()


def _processor() -> bytes:
    """What tells this processor from others, of which a folder that machines share may hold machine code, too."""
    with suppress(OSError), open("/proc/cpuinfo", "rb") as file:
        told = file.read(1 << 14).split(b"\n\n")[0].splitlines()
        kept = (b"vendor_id", b"cpu family", b"model", b"model name", b"flags", b"CPU ", b"Features", b"cpu", b"isa")
        return b"\n".join(line for line in told if line.startswith(kept) and b"MHz" not in line)
    return platform.processor().encode() + platform.machine().encode()
