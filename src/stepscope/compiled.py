"""How loops that run per event are compiled.

A loop is plain Python until a process has so much to do that machine code pays: importing numba and loading what is
kept takes longer than a small profile in Python, and compiling a hundred times as long (``LOOPS``). Both give the
same results. Where numba is missing (a Python it does not support yet) loops stay Python for good, and the fast road of
``formats/chrome/scan`` stands aside for the tolerant one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any, Final, TypeVar, cast

import numpy as np

from stepscope.kept_code import cache_folder

PLAIN_S: Final = 0.5
"""CPU time that a process spends on loops in Python before it loads machine code that is kept: what that takes, too."""
PLAIN_UNCOMPILED_S: Final = 6.0
"""The same where machine code would have to be made first, which takes 25 s and more."""
LOADED_S: Final = 0.01
"""What a call may take in Python once numba is imported: loading one more loop takes as long."""
PLAIN_BYTES: Final = 4 << 20
PLAIN_UNCOMPILED_BYTES: Final = 32 << 20
"""The same of JSON, of which Python reads some 15 MB a second."""

PLAIN_FILE_BYTES: Final = 4 << 20
"""The same of a file of another format."""

PLAIN_ELEMENT_S: Final = 1.4e-6
"""What Python is expected to take for each element of a loop's largest array: a call that is begun is not given up."""

PLAIN_LARGEST: Final = 1 << 20
"""Elements of an array that Python does not begin on: compiling the loop is faster, even where nothing keeps it."""


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
        numba: Any = import_module("numba")
    finally:
        os.path.exists = exists
    numba.core.config._config_fname = ""  # No file has this name.
    return numba


Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
_UNCOUNTED: dict[str, Any] = {"_nrt": False}
"""Without counts of references to arrays: threads that share an array would wait for each other at every event."""
_PART = "_part_of_kernels"
"""The attribute of a function that kernels call, which makes no array: the options it is compiled with."""


def inlined(function: Function) -> Function:
    """Compile as part of every kernel that calls it."""
    setattr(function, _PART, {"forceinline": True, **_UNCOUNTED})
    return function


def outlined(function: Function) -> Function:
    """Compile as a function of its own: for rare work that would only bloat the loop."""
    setattr(function, _PART, _UNCOUNTED)
    return function


def kernel(function: Function) -> Function:
    """Compile a function that Python calls once that pays, and keep its machine code where a folder for it exists."""
    return cast(Function, CompiledLoop(function))


def filling(function: Function) -> Function:
    """The same of a loop that makes no array and returns none: it fills those that it is given."""
    return cast(Function, CompiledLoop(function, _UNCOUNTED))


def native(function: Function) -> Function:
    """The same of one that works on addresses, as Python cannot: it is compiled when it is first called."""
    return cast(Function, CompiledLoop(function, _UNCOUNTED, plain=False))


def _as_python(value: Any) -> Any:
    """What a loop returns, with numbers of Python's own types as machine code gives them."""
    if type(value) is tuple:
        return tuple(map(_as_python, value))
    return value.item() if isinstance(value, np.generic) else value


class CompiledLoop:
    """A loop that Python calls."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any] | None = None, *, plain: bool = True
    ) -> None:
        self.py_func = function
        self._options = options or {}
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
        flat = (part for one in arguments for part in (one if isinstance(one, tuple) else (one,)))
        largest = max((len(part) for part in flat if isinstance(part, np.ndarray)), default=0)
        more = largest * PLAIN_ELEMENT_S
        is_one_more = more > LOADED_S and compiler.cache_info().currsize > 0 and self.is_kept()
        return largest <= PLAIN_LARGEST and not is_one_more and LOOPS.takes(more, self.is_kept)

    @property
    def machine(self) -> Callable[..., Any]:
        """The compiled function; the Python one where it cannot be compiled."""
        if self._machine is None:
            self._machine = _kept(self.py_func, self._options) if compiler() is not None else self.py_func
        return self._machine

    def is_kept(self) -> bool:
        """Whether machine code of it is kept."""
        file, name = Path(self.py_func.__code__.co_filename), self.py_func.__code__.co_name
        return not must_compile(file.parent, f"{file.stem}.{name}")


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


def _kept(function: Any, options: dict[str, Any]) -> Any:
    folder = cache_folder(Path(function.__code__.co_filename).parent)
    if folder is None:
        return _machine(function, **options)
    numba: Any = compiler()
    with _SETTING:
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)  # numba reads it while decorating; the user's own setting comes back below
        try:
            return _loaded_alone(_kept_where_possible(_machine(function, cache=True, **options)))
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


def _loaded_alone(compiled: Any) -> Any:
    """The same function; machine code that is kept is loaded without what only compiling needs.

    Before it looks whether anything is kept, numba would import all that it can compile, and compile its own runtime:
    0.15 s and 35 MB. Where nothing is kept its compiler does so anyway.
    """
    cache: Any = getattr(compiled, "_cache", None)
    load = getattr(cache, "_load_overload", None)
    if load is not None and _runtime_is_told():
        cache.load_overload = load
    return compiled


@cache
def _runtime_is_told() -> bool:
    """Tell the loader where the functions of numba's runtime are that machine code calls; whether that is possible."""
    try:
        helpers = import_module("numba.core.runtime._nrt_python").c_helpers
        add_symbol = import_module("llvmlite.binding").add_symbol
    except (ImportError, AttributeError):
        return False
    for name, address in helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    return True


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
